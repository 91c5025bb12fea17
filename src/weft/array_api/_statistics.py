"""Reductions, running sums, sorting and sets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from weft._C import Tensor
from weft._runtime.public import weft
from weft.array_api._dtypes import KINDS, same_dtype
from weft.array_api._shapes import Axes, _only_axis, axes_of


def _sum_dtype(x: Tensor, dtype: Any) -> Any:
    """Sums of integers are of 64 bits, those of unsigned ones unsigned."""
    if dtype is not None:
        return dtype
    if x.dtype in KINDS["unsigned integer"]:
        return weft.uint64
    return weft.int64 if x.dtype in (*KINDS["signed integer"], weft.bool) else x.dtype


def _over(
    name: str, function: Callable[..., Tensor], x: Tensor, axis: Axes, keepdims: bool
) -> Tensor:
    """A function of one axis, over several: they are flattened."""
    axes = axes_of(name, x.dim(), axis)
    if x.dim() == 0:
        return function(x.reshape(1), 0)
    kept = [at for at in range(x.dim()) if at not in axes]
    shape = [x.shape[at] for at in kept]
    count = math.prod(x.shape[at] for at in axes)
    result = function(weft.permute(x, [*kept, *axes]).reshape(*shape, count), -1)
    for at in axes if keepdims else ():
        result = result.unsqueeze(at)
    return result


def sum(x: Tensor, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sums over axes; None: of all elements."""
    if axis == ():
        return x.to(_sum_dtype(x, dtype))
    return weft.sum(x, axes_of("sum", x.dim(), axis), keepdim=keepdims, dtype=_sum_dtype(x, dtype))


def prod(x: Tensor, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The products over axes; None: of all elements."""
    x = x.to(_sum_dtype(x, dtype))
    return _over("prod", lambda v, at: weft.prod(v, at, dtype=v.dtype), x, axis, keepdims)


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The greatest elements over axes; None: of all."""
    return x.clone() if axis == () else weft.amax(x, axes_of("max", x.dim(), axis), keepdims)


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The least elements over axes; None: of all."""
    return x.clone() if axis == () else weft.amin(x, axes_of("min", x.dim(), axis), keepdims)


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The means over axes; None: of all elements."""
    return x.clone() if axis == () else weft.mean(x, axes_of("mean", x.dim(), axis), keepdims)


def var(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The variances over axes; the sum of squares is divided by n - correction."""
    axes = axes_of("var", x.dim(), axis)
    if not axes:
        rest = 1 - correction
        return (x - x) / (rest if rest > 0 else 0)
    return weft.var(x, axes, correction=correction, keepdim=keepdims)


def std(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The square roots of var."""
    return weft.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether all elements over axes are true."""
    mask = x != 0
    return mask if axis == () else _over("all", weft.all, mask, axis, keepdims)


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether an element over axes is true."""
    mask = x != 0
    return mask if axis == () else _over("any", weft.any, mask, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """How many elements over axes are not zero."""
    return sum((x != 0).to(weft.int64), axis=axis, keepdims=keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the greatest element along an axis is; None: in the flattened array."""
    return _place(weft.argmax, x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the least element along an axis is; None: in the flattened array."""
    return _place(weft.argmin, x, axis, keepdims)


def _place(function: Any, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    if axis is not None:
        return function(x, axis, keepdims)
    found = function(x.reshape(-1), 0)
    return found.reshape((1,) * x.dim()) if keepdims else found


# ---- running sums ----


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The sums of the elements so far along an axis; behind a zero with include_initial."""
    return _running(weft.cumsum, "cumulative_sum", 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The products of the elements so far along an axis; behind a one with include_initial."""
    return _running(weft.cumprod, "cumulative_prod", 1, x, axis, dtype, include_initial)


def _running(
    function: Any, name: str, first: int, x: Tensor, axis: int | None, dtype: Any, initial: bool
) -> Tensor:
    axis = _only_axis(name, x, axis)
    kind = _sum_dtype(x, dtype)
    result = function(x.to(kind), axis, dtype=kind)
    if not initial:
        return result
    shape = list(x.shape)
    shape[axis] = 1
    return weft.cat([weft.full(shape, first, dtype=kind), result], axis)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The differences of neighbours along an axis, n times."""
    return weft.diff(x, n, axis, prepend, append)


# ---- order ----


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis."""
    return weft.sort(x, dim=axis, descending=descending, stable=stable)[0]


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """The indices that bring the elements in order along an axis."""
    return weft.sort(x, dim=axis, descending=descending, stable=stable)[1]


def searchsorted(
    x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Where elements of x2 would go in the sorted x1: before their equals on the left. ValueError
    for another side."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: expected side 'left' or 'right', got {side!r}")
    ordered, wanted = same_dtype(x1 if sorter is None else x1[sorter], x2)
    return weft.searchsorted(ordered, wanted, right=side == "right")


# ---- sets ----


class UniqueAll(NamedTuple):
    """Values, the first place of each, which of them each element is, and how often each occurs."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Values and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Values and which of them each element is."""

    values: Tensor
    inverse_indices: Tensor


def _ordered(x: Tensor) -> Tensor:
    """Elements with an order, equal where those of x are: of a complex array whole numbers."""
    if not x.dtype.is_complex:
        return x
    parts = weft.real(x), weft.imag(x)
    real, imag = (weft.unique(part, return_inverse=True)[1] for part in parts)
    return real * x.numel() + imag


def unique_all(x: Tensor, /) -> UniqueAll:
    """The values of an array, each once, and where and how often they occur."""
    _, inverse, counts = weft.unique(_ordered(x), return_inverse=True, return_counts=True)
    order = weft.sort(inverse.reshape(-1), stable=True)[1]
    first = order[weft.cumsum(counts, 0) - counts]
    return UniqueAll(x.reshape(-1)[first], first, inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The values of an array, each once, and how often they occur."""
    if x.dtype.is_complex:
        return UniqueCounts(*unique_all(x)[::3])
    return UniqueCounts(*weft.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The values of an array, each once, and which of them each element is."""
    if x.dtype.is_complex:
        return UniqueInverse(*unique_all(x)[::2])
    return UniqueInverse(*weft.unique(x, return_inverse=True))


def unique_values(x: Tensor, /) -> Tensor:
    """The values of an array, each once."""
    return unique_all(x).values if x.dtype.is_complex else weft.unique(x)


__all__ = [
    "all", "any", "argmax", "argmin", "argsort", "count_nonzero", "cumulative_prod",
    "cumulative_sum", "diff", "max", "mean", "min", "prod", "searchsorted", "sort", "std", "sum",
    "unique_all", "unique_counts", "unique_inverse", "unique_values", "var",
]  # fmt: skip
