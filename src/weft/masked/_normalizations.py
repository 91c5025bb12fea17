"""Softmax and division by a norm, over what a mask keeps."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft.masked._filling import INFINITY, filled
from weft.masked._reductions import norm


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """softmax along `dim` of what the mask keeps, 0 elsewhere; nan where it keeps nothing.

    >>> weft.masked.softmax(weft.zeros(3), 0, mask=weft.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return filled("softmax", input, mask, -INFINITY, dtype).softmax(dim)


def log_softmax(
    input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of softmax along `dim` of what the mask keeps, -inf elsewhere.

    >>> weft.masked.log_softmax(weft.zeros(3), 0, mask=weft.tensor([True, False, True]))
    tensor([-0.6931,    -inf, -0.6931])
    """
    return filled("log_softmax", input, mask, -INFINITY, dtype).log_softmax(dim)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """softmax of the negated elements along `dim` that the mask keeps, 0 elsewhere.

    >>> weft.masked.softmin(weft.zeros(3), 0, mask=weft.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return (-filled("softmin", input, mask, INFINITY, dtype)).softmax(dim)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """What the mask keeps divided by its norm of order `ord` along `dim`, or by eps where that is
    larger; 0 elsewhere. Floating and complex dtypes.

    >>> mask = weft.tensor([True, False, True])
    >>> weft.masked.normalize(weft.tensor([3.0, 9.0, 4.0]), 2, 0, mask=mask)
    tensor([0.6000, 0.0000, 0.8000])
    """
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return filled("normalize", input, mask, 0, dtype) / _C.maximum(length, length.new_full((), eps))
