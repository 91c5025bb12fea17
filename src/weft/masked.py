"""Reductions, cumulations and normalizations of the elements that a mask keeps: `torch.masked`.

`mask` is True where an element counts, and broadcasts to `input`; without one all elements count.
What is masked out takes no part in the gradient either. Where a mask keeps nothing, a reduction
gives its identity (0, 1, an infinity), a mean nan.
"""

from __future__ import annotations

import math
from typing import Any

from weft import _C, linalg
from weft._C import Tensor
from weft._functions.shapes import checked_dims as _checked_dims
from weft._runtime.exports import list_own as _list_own
from weft._tensor.limits import iinfo as _iinfo

_INFINITY = float("inf")


def _filled(
    name: str, input: Tensor, mask: Tensor | None, fill: float, dtype: Any = None
) -> Tensor:
    """`input` in `dtype`, with `fill` where the mask is False.

    An infinity becomes the limit of a dtype of integers. NotImplementedError for an infinity among
    bools.
    """
    values = input if dtype is None else input.to(dtype)
    if mask is None:
        return values
    if fill in (_INFINITY, -_INFINITY) and not _is_inexact(values):
        fill = _limit(name, values.dtype, fill > 0)
    return _C.where(_kept(name, input, mask), values, _C.full((), fill, dtype=values.dtype))


def _kept(name: str, input: Tensor, mask: Tensor) -> Tensor:
    """The mask as bools in the shape of `input`. TypeError and IndexError for what is none."""
    if not isinstance(mask, Tensor):
        raise TypeError(f"{name}: expected mask as a tensor, got {type(mask).__name__}")
    if mask.dim() > input.dim():
        raise IndexError(f"{name}: expected a mask of {input.dim()} dims at most, got {mask.dim()}")
    return mask.to(_C.bool).expand(input.shape)


def _is_inexact(values: Tensor) -> bool:
    """Whether a tensor is floating or complex."""
    return values.is_floating_point() or values.is_complex()


def _dims_of(dim: Any) -> list[int]:
    """Dimensions as a list; none of them means all."""
    if dim is None:
        return []
    return [dim] if isinstance(dim, int) else list(dim)


def _limit(name: str, dtype: Any, most: bool) -> int:
    if dtype == _C.bool:
        raise NotImplementedError(f"{name}: expected no mask for bools, got one")
    limits = _iinfo(dtype)
    return limits.max if most else limits.min


_sum, _ones = _C.sum, _C.ones


def sum(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum over `dim` (None: all) of what the mask keeps; of integers and bools as int64.

    >>> weft.masked.sum(weft.tensor([[1, 2], [3, 4]]), 1, mask=weft.tensor([True, False]))
    tensor([1, 3])
    """
    return _sum(_filled("sum", input, mask, 0, dtype), _dims_of(dim), keepdim, dtype=dtype)


def prod(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product over `dim` (None: all) of what the mask keeps; of integers and bools as int64.

    >>> weft.masked.prod(weft.tensor([[1, 2], [3, 4]]), 0, mask=weft.tensor([True, False]))
    tensor([3, 1])
    """
    values = _filled("prod", input, mask, 1, dtype)
    if dtype is None and not _is_inexact(values):
        values = values.to(_C.int64)
    for each in _from_last(values, dim):
        values = _C.prod(values, each, keepdim, dtype=dtype)
    return values


def _from_last(values: Tensor, dim: Any) -> list[int]:
    """The dimensions that are reduced; those before one that goes keep their places."""
    if dim is None or dim == ():
        return list(reversed(range(values.dim())))
    given = _checked_dims("prod", _dims_of(dim), values.dim())
    return sorted(given, reverse=True) if values.dim() else []


def amax(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The greatest over `dim` (None: all) of what the mask keeps; where it keeps nothing the least
    number of the dtype.

    >>> weft.masked.amax(weft.tensor([1.0, 9.0, 3.0]), mask=weft.tensor([True, False, True]))
    tensor(3.)
    """
    return _C.amax(_filled("amax", input, mask, -_INFINITY, dtype), _dims_of(dim), keepdim)


def amin(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The least over `dim` (None: all) of what the mask keeps; where it keeps nothing the greatest
    number of the dtype.

    >>> weft.masked.amin(weft.tensor([4.0, 1.0, 3.0]), mask=weft.tensor([True, False, True]))
    tensor(3.)
    """
    return _C.amin(_filled("amin", input, mask, _INFINITY, dtype), _dims_of(dim), keepdim)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The index along `dim` of the greatest that the mask keeps, in the dtype of input as in
    PyTorch; 0 where it keeps nothing.

    >>> weft.masked.argmax(weft.tensor([1, 9, 3]), mask=weft.tensor([True, False, True]))
    tensor(2)
    """
    values = _filled("argmax", input, mask, -_INFINITY, dtype)
    return _C.argmax(values, dim, keepdim).to(values.dtype)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The index along `dim` of the least that the mask keeps, in the dtype of input as in PyTorch;
    0 where it keeps nothing.

    >>> weft.masked.argmin(weft.tensor([4, 1, 3]), mask=weft.tensor([True, False, True]))
    tensor(2)
    """
    values = _filled("argmin", input, mask, _INFINITY, dtype)
    return _C.argmin(values, dim, keepdim).to(values.dtype)


def mean(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean over `dim` (None: all) of what the mask keeps, nan where it keeps nothing.

    Floating and complex dtypes; ValueError for others where no dtype is given.

    >>> weft.masked.mean(weft.tensor([1.0, 9.0, 3.0]), mask=weft.tensor([True, False, True]))
    tensor(2.)
    """
    if dtype is None and not _is_inexact(input):
        raise ValueError(f"mean: expected a floating or complex dtype, got {input.dtype}")
    if mask is None:
        return _C.mean(input, _dims_of(dim), keepdim, dtype=dtype)
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / _count(
        "mean", input, dim, keepdim, mask
    )


def _count(name: str, input: Tensor, dim: Any, keepdim: bool, mask: Tensor | None) -> Tensor:
    counted = _ones(input.shape, dtype=_C.bool) if mask is None else _kept(name, input, mask)
    return _sum(counted, _dims_of(dim), keepdim)


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The lower median along `dim` of what the mask keeps, nan where it keeps nothing.

    ValueError for integers of which nothing is kept somewhere. nan among what is kept is left out.

    >>> weft.masked.median(weft.tensor([1.0, 9.0, 3.0]), mask=weft.tensor([True, False, True]))
    tensor(1.)
    """
    values = input if dtype is None else input.to(dtype)
    if values.is_floating_point():
        return _C.nanmedian(_filled("median", values, mask, math.nan), dim, keepdim)[0]
    if mask is not None and not _kept("median", values, mask).any(dim).all():
        raise ValueError(
            f"median: expected a mask that keeps something of each row of {values.dtype}, got one "
            "that keeps nothing of some"
        )
    wide = _filled("median", values, mask, math.nan, _C.float64)
    return _C.nanmedian(wide, dim, keepdim)[0].to(values.dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of order `ord` over `dim` (None: all) of what the mask keeps.

    Floating and complex dtypes; the result is real.

    >>> weft.masked.norm(weft.tensor([3.0, 9.0, 4.0]), mask=weft.tensor([True, False, True]))
    tensor(5.)
    """
    order = 2.0 if ord is None else ord
    values = _filled("norm", input, mask, _INFINITY if order < 0 else 0, dtype)
    return linalg.vector_norm(values, order, _dims_of(dim) or None, keepdim)


def logsumexp(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """log(sum(exp(x))) over `dim` (None: all) of what the mask keeps, -inf where it keeps nothing.

    >>> weft.masked.logsumexp(weft.zeros(3), mask=weft.tensor([True, False, True]))
    tensor(0.6931)
    """
    values = _filled("logsumexp", input, mask, -_INFINITY, dtype)
    dims = _dims_of(dim) or list(range(values.dim()))
    return _C.logsumexp(values, dims, keepdim).to(values.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(input) + exp(other)), each operand with a mask of its own.

    >>> weft.masked.logaddexp(weft.zeros(2), weft.zeros(2), input_mask=weft.tensor([True, False]))
    tensor([0.6931, 0.0000])
    """
    pairs = ((input, input_mask), (other, other_mask))
    return _C.logaddexp(*(_filled("logaddexp", x, mask, -_INFINITY, dtype) for x, mask in pairs))


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance over `dim` (None: all) of what the mask keeps: squares over count - correction.

    Integers become the default dtype; of complex numbers it is complex, as in PyTorch.

    >>> weft.masked.var(weft.tensor([1.0, 9.0, 3.0]), mask=weft.tensor([True, False, True]))
    tensor(2.)
    """
    return _variance("var", input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The root of var, which says the rest.

    >>> weft.masked.std(weft.tensor([1.0, 9.0, 3.0]), mask=weft.tensor([True, False, True]))
    tensor(1.4142)
    """
    return _variance("std", input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


def _variance(
    name: str,
    input: Tensor,
    dim: Any,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool,
    dtype: Any,
    mask: Tensor | None,
) -> Tensor:
    if unbiased is not None and correction is not None:
        raise RuntimeError(f"{name}: expected unbiased or correction, got both")
    if correction is None:
        correction = 0 if unbiased is False else 1
    values = input if dtype is None else input.to(dtype)
    if not _is_inexact(values) and values.dtype != _C.bool:
        values = values.to(_C.get_default_dtype())
    values = _filled(name, values, mask, 0)
    count = _count(name, input, dim, True, mask)
    away = values - sum(values, dim, keepdim=True) / count
    squares = sum(away * away.conj(), dim, keepdim=keepdim, mask=mask)
    count = _count(name, input, dim, keepdim, mask)
    return squares / (count - correction).clamp(min=0).to(squares.dtype)


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Sums of the elements up to each one along `dim`, in the dtype of input or the given one.

    >>> weft.masked.cumsum(weft.tensor([1, 2, 3]), 0, mask=weft.tensor([True, False, True]))
    tensor([1, 1, 4])
    """
    values = _filled("cumsum", input, mask, 0, dtype)
    return _C.cumsum(values, dim, dtype=values.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Products of the elements up to each one along `dim`, in the dtype of input or the given one.

    >>> weft.masked.cumprod(weft.tensor([2, 3, 4]), 0, mask=weft.tensor([True, False, True]))
    tensor([2, 2, 8])
    """
    values = _filled("cumprod", input, mask, 1, dtype)
    return _C.cumprod(values, dim, dtype=values.dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """softmax along `dim` of what the mask keeps, 0 elsewhere; nan where it keeps nothing.

    >>> weft.masked.softmax(weft.zeros(3), 0, mask=weft.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return _filled("softmax", input, mask, -_INFINITY, dtype).softmax(dim)


def log_softmax(
    input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of softmax along `dim` of what the mask keeps, -inf elsewhere.

    >>> weft.masked.log_softmax(weft.zeros(3), 0, mask=weft.tensor([True, False, True]))
    tensor([-0.6931,    -inf, -0.6931])
    """
    return _filled("log_softmax", input, mask, -_INFINITY, dtype).log_softmax(dim)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """softmax of the negated elements along `dim` that the mask keeps, 0 elsewhere.

    >>> weft.masked.softmin(weft.zeros(3), 0, mask=weft.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return (-_filled("softmin", input, mask, _INFINITY, dtype)).softmax(dim)


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
    return _filled("normalize", input, mask, 0, dtype) / _C.maximum(
        length, length.new_full((), eps)
    )


_list_own(vars())
