"""Running sums and products of what a mask keeps."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft.masked._filling import filled


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Sums of the elements up to each one along `dim`, in the dtype of input or the given one.

    >>> weft.masked.cumsum(weft.tensor([1, 2, 3]), 0, mask=weft.tensor([True, False, True]))
    tensor([1, 1, 4])
    """
    values = filled("cumsum", input, mask, 0, dtype)
    return _C.cumsum(values, dim, dtype=values.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Products of the elements up to each one along `dim`, in the dtype of input or the given one.

    >>> weft.masked.cumprod(weft.tensor([2, 3, 4]), 0, mask=weft.tensor([True, False, True]))
    tensor([2, 2, 8])
    """
    values = filled("cumprod", input, mask, 1, dtype)
    return _C.cumprod(values, dim, dtype=values.dtype)
