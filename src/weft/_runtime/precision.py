"""Composed functions under autocast: what the tags "autocast_float32" and "autocast_lower" are to
rows of the operator table. Programs compile the functions as they are written. Outermost of the
decorators of a function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from weft import _C

_autograd: Any = _C._autograd
_HALVES = (_C.bfloat16, _C.float16)
_Function = TypeVar("_Function", bound=Callable[..., Any])


def _autocast_to(function: _Function, chosen: Any, concerned: tuple[Any, ...]) -> _Function:
    """The function, of whose tensors autocast takes those of some dtypes to one dtype (None: its
    own); inside it is off."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        lower = _autograd._autocast_dtype()
        if lower is None:
            return function(*args, **kwargs)
        dtype = chosen or lower

        def converted(value: Any) -> Any:
            concerns = isinstance(value, _C.Tensor) and value.dtype in concerned
            return value.to(dtype) if concerns else value

        values = [converted(value) for value in args]
        named = {name: converted(value) for name, value in kwargs.items()}
        before = _autograd._set_autocast(None)
        try:
            return function(*values, **named)
        finally:
            _autograd._restore_autocast(before)

    vars(run)["_weft_unwrapped"] = getattr(function, "_weft_unwrapped", function)
    return cast(_Function, run)


def full_precision(function: _Function) -> _Function:
    """Under autocast the function computes in float32."""
    return _autocast_to(function, _C.float32, _HALVES)


def given_precision(function: _Function) -> _Function:
    """Under autocast the function computes as without it."""
    return _autocast_to(function, None, ())


def lower_precision(function: _Function) -> _Function:
    """Under autocast the function computes in autocast's dtype."""
    return _autocast_to(function, None, (*_HALVES, _C.float32))
