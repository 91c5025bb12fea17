"""make_tensor: tensors of drawn numbers for tests."""

from __future__ import annotations

import math
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._tensor.limits import finfo, iinfo


def make_tensor(
    *shape: Any,
    dtype: _C.dtype,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of numbers drawn evenly from [low, high), by default about [-9, 9).

    Default limits: [0, 2) for bool, [0, 10) for uint8, [-9, 10) for other integers. noncontiguous:
    every other element of a last dimension twice as long. exclude_zero: zeros become the smallest
    positive number, or 1.

    >>> x = make_tensor((2, 3), dtype=weft.float32, low=0, high=1)
    >>> x.shape, bool((x >= 0).all() and (x < 1).all())
    (torch.Size([2, 3]), True)
    """
    if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "make_tensor: expected noncontiguous or memory_format, got both: "
            f"memory_format={memory_format}"
        )
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"make_tensor: expected a dtype with gradients, got {dtype}")
    first, last = _limits(dtype, low, high)
    if noncontiguous and math.prod(shape) > 1:
        wide = _drawn((*shape[:-1], 2 * shape[-1]), dtype, device, first, last)
        result = wide[..., 1::2]
    else:
        result = _drawn(shape, dtype, device, first, last)
    if memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        floating = dtype.is_floating_point or dtype.is_complex
        result[result == 0] = finfo(dtype).tiny if floating else 1
    return result.requires_grad_() if requires_grad else result


def _limits(dtype: _C.dtype, low: float | None, high: float | None) -> tuple[float, float]:
    floating = dtype.is_floating_point or dtype.is_complex
    if floating:
        defaults: tuple[float, float] = (-9, 9)
        bounds: tuple[float, float] = (finfo(dtype).min, finfo(dtype).max)
    elif dtype == _C.bool:
        defaults, bounds = (0, 2), (0, 2)
    else:
        info = iinfo(dtype)
        defaults, bounds = (max(-9, info.min), 10), (info.min, info.max + 1)
    first = defaults[0] if low is None else low
    last = defaults[1] if high is None else high
    if math.isnan(first) or math.isnan(last):
        raise ValueError(f"make_tensor: expected low and high as numbers, got {first} and {last}")
    if not first < last and not (floating and first == last):
        raise ValueError(f"make_tensor: expected low below high, got {first} and {last}")
    first, last = max(first, bounds[0]), min(last, bounds[1])
    return (first, last) if floating else (math.floor(first), math.ceil(last))


def _drawn(shape: Any, dtype: _C.dtype, device: Any, low: float, high: float) -> Tensor:
    if dtype.is_complex:
        made = _C.empty(shape, dtype=dtype, device=device)
        _C.view_as_real(made).copy_(_drawn((*shape, 2), dtype.to_real(), device, low, high))
        return made
    if dtype.is_floating_point and high - low > finfo(dtype).max:  # no width of a uniform_
        return 2 * _drawn(shape, dtype, device, low / 2, high / 2)
    if dtype.is_floating_point:
        return _C.empty(shape, dtype=dtype, device=device).uniform_(low, high)
    return _C.randint(int(low), int(high), shape, dtype=dtype, device=device)
