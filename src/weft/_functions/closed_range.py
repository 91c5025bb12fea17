"""range, the older sister of arange: its end is included."""

from __future__ import annotations

import math
import warnings
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.out import factory_takes_out
from weft._runtime.torch_function import declare as _declare


@factory_takes_out
def range(
    start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """start, start + step, ..., up to and with `end`, in the default dtype.
    Warns that arange is newer.

    Raises RuntimeError for a step of 0, and for one that leads away from the end.

    >>> range(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000, 2.5000])
    """
    warnings.warn("range is deprecated: use arange, which leaves its end out", stacklevel=3)
    if end is None:
        raise TypeError("range: expected start and end, got one of them")
    if step == 0 or (end - start) / step < 0:
        raise RuntimeError(f"range: expected a step other than 0 from {start} to {end}, got {step}")
    kind = _C.get_default_dtype() if dtype is None else dtype
    count = math.floor((end - start) / step) + 1
    wide = _C.float64 if kind.is_floating_point else _C.int64
    result = (_C.arange(count, dtype=wide, device=device) * step + start).to(kind)
    return result.requires_grad_() if requires_grad else result


_declare(globals())
