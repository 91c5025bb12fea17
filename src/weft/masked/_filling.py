"""Operands with a number in the place of what is masked out."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft._tensor.limits import iinfo

INFINITY = float("inf")


def filled(name: str, input: Tensor, mask: Tensor | None, fill: float, dtype: Any = None) -> Tensor:
    """`input` in `dtype`, with `fill` where the mask is False.

    An infinity becomes the limit of a dtype of integers. NotImplementedError for an infinity among
    bools.
    """
    values = input if dtype is None else input.to(dtype)
    if mask is None:
        return values
    if fill in (INFINITY, -INFINITY) and not is_inexact(values):
        fill = _limit(name, values.dtype, fill > 0)
    return _C.where(kept(name, input, mask), values, _C.full((), fill, dtype=values.dtype))


def kept(name: str, input: Tensor, mask: Tensor) -> Tensor:
    """The mask as bools in the shape of `input`. TypeError and IndexError for what is none."""
    if not isinstance(mask, Tensor):
        raise TypeError(f"{name}: expected mask as a tensor, got {type(mask).__name__}")
    if mask.dim() > input.dim():
        raise IndexError(f"{name}: expected a mask of {input.dim()} dims at most, got {mask.dim()}")
    return mask.to(_C.bool).expand(input.shape)


def is_inexact(values: Tensor) -> bool:
    """Whether a tensor is floating or complex."""
    return values.is_floating_point() or values.is_complex()


def dims_of(dim: Any) -> list[int]:
    """Dimensions as a list; none of them means all."""
    if dim is None:
        return []
    return [dim] if isinstance(dim, int) else list(dim)


def _limit(name: str, dtype: Any, most: bool) -> int:
    if dtype == _C.bool:
        raise NotImplementedError(f"{name}: expected no mask for bools, got one")
    limits = iinfo(dtype)
    return limits.max if most else limits.min
