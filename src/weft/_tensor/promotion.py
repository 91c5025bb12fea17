"""result_type: the dtype of arithmetic on tensors and numbers."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.torch_function import declare as _declare


def result_type(tensor: Any, other: Any) -> _C.dtype:
    """The dtype of arithmetic on both: of tensors with dimensions, unless one without, or a
    number, is of a higher kind (bool, integer, floating, complex).

    >>> weft.result_type(weft.tensor([1, 2]), 1.5)
    torch.float32
    """
    first, second = _dtype(tensor), _dtype(other)
    ranks = _rank(tensor), _rank(other)
    if ranks[0] == ranks[1]:
        return _C.promote_types(first, second)
    high, low = (first, second) if ranks[0] > ranks[1] else (second, first)
    return _as_number(low, high) if _kind(low) > _kind(high) else high


def _rank(value: Any) -> int:
    """2 for a tensor with dimensions, 1 for one without, 0 for a number."""
    if isinstance(value, Tensor):
        return 2 if value.dim() else 1
    return 0


def _dtype(value: Any) -> _C.dtype:
    """The dtype of a tensor, and what a number becomes by itself."""
    if isinstance(value, Tensor):
        return value.dtype
    if isinstance(value, bool):
        return _C.bool
    if isinstance(value, int):
        return _C.int64
    if isinstance(value, float):
        return _C.get_default_dtype()
    if isinstance(value, complex):
        return _complex_of(_C.get_default_dtype())
    raise TypeError(f"result_type: expected tensors and numbers, got {type(value).__name__}")


def _kind(dtype: Any) -> int:
    if dtype.is_complex or dtype.is_floating_point:
        return 3 if dtype.is_complex else 2
    return int(dtype != _C.bool)


def _complex_of(dtype: Any) -> Any:
    return _C.promote_types(dtype, _C.complex32)


def _as_number(dtype: Any, other: Any) -> Any:
    """A higher kind without dimensions: of a complex one, the precision of the floats beside it."""
    return _complex_of(other) if dtype.is_complex and other.is_floating_point else dtype


_declare(globals())
