"""result_type: the dtype of arithmetic on tensors and numbers."""

from __future__ import annotations

import functools
from typing import Any

import weft
from weft import Tensor


def result_type(tensor1: Any, tensor2: Any) -> weft.dtype:
    """The dtype of arithmetic on both: of tensors with dimensions, unless one without, or a
    number, is of a higher kind (bool, integer, floating, complex).

    >>> weft.result_type(weft.tensor([1, 2]), 1.5)
    torch.float32
    """
    given = [_rank_and_dtype(each) for each in (tensor1, tensor2)]
    best: Any = None
    for rank in (2, 1, 0):
        of_rank = [dtype for each, dtype in given if each == rank]
        if of_rank:
            among = functools.reduce(weft.promote_types, of_rank)
            higher = best is None or _kind(among) > _kind(best)
            best = (among if best is None else _as_number(among, best)) if higher else best
    return best


def _rank_and_dtype(value: Any) -> tuple[int, Any]:
    """2 for a tensor with dimensions, 1 for one without, 0 for a number; and its dtype."""
    if isinstance(value, Tensor):
        return (2 if value.dim() else 1), value.dtype
    for kind, dtype in ((bool, weft.bool), (int, weft.int64), (float, weft.get_default_dtype())):
        if isinstance(value, kind):
            return 0, dtype
    if isinstance(value, complex):
        return 0, _complex_of(weft.get_default_dtype())
    raise TypeError(f"result_type: expected tensors and numbers, got {type(value).__name__}")


def _kind(dtype: Any) -> int:
    if dtype.is_complex or dtype.is_floating_point:
        return 3 if dtype.is_complex else 2
    return int(dtype != weft.bool)


def _complex_of(dtype: Any) -> Any:
    return weft.complex128 if dtype == weft.float64 else weft.complex64


def _as_number(dtype: Any, other: Any) -> Any:
    """A higher kind without dimensions: of a complex one, the precision of the floats beside it."""
    return _complex_of(other) if dtype.is_complex and other.is_floating_point else dtype
