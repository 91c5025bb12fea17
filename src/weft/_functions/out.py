"""`out=` of functions that are written in Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft import _C


def takes_out(
    function: Callable[..., Any], factory: bool = False, casts: bool = False
) -> Callable[..., Any]:
    """Gives a function `out=`: a tensor that its result is written to, or a tuple of them.

    As with operators, they are resized where their shape is another one, and RuntimeError is raised
    where one of the tensors requires grad, or has another dtype than the result. A factory computes
    in the dtype of `out`, which keeps its shape where it has as many elements; with `casts` the
    result is converted to it.
    """

    @functools.wraps(function)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if factory and out is not None:
            kwargs.setdefault("dtype", out.dtype)
        result = function(*args, **kwargs)
        if factory and out is not None and out.numel() == result.numel():
            result = result.reshape(out.shape)
        return result if out is None else _written(function.__name__, result, out, casts)

    vars(call).setdefault("_weft_unwrapped", function)  # what programs compile
    return call


factory_takes_out = functools.partial(takes_out, factory=True)
casting_takes_out = functools.partial(takes_out, casts=True)


def _written(name: str, result: Any, out: Any, casts: bool) -> Any:
    if not isinstance(result, tuple):
        return _C._write_out(name, result, out, casts)
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        raise TypeError(f"{name}: expected out as a tuple of {len(result)} tensors, got {out!r}")
    outs = [_C._write_out(name, *pair, casts) for pair in zip(result, out)]
    return type(result)(*outs) if hasattr(result, "_fields") else type(result)(outs)
