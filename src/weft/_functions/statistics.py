"""Quantiles and covariances; `weft.functional` shows them."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions import elements
from weft._functions.out import takes_out
from weft._runtime.samples import whole
from weft._runtime.torch_function import declare as _declare
from weft._tensor.aliases import numpy_names

_BETWEEN = ("linear", "lower", "higher", "midpoint", "nearest")


def _check_quantile(values: Tensor, points: Tensor, how: str) -> None:
    if values.dtype not in (_C.float32, _C.float64) or points.dtype != values.dtype:
        raise RuntimeError(
            "quantile: expected input and q of one dtype, float32 or float64, got "
            f"{values.dtype} and {points.dtype}"
        )
    if values.numel() == 0 or points.dim() > 1:
        raise RuntimeError(
            "quantile: expected a non-empty input, and q a number or a vector, got shapes "
            f"{tuple(values.shape)} and {tuple(points.shape)}"
        )
    if how not in _BETWEEN:
        raise RuntimeError(
            f"quantile: expected interpolation among {', '.join(_BETWEEN)}, got {how!r}"
        )


def _quantile(values: Tensor, q: Any, dim: Any, keepdim: bool, how: str, skip_nan: bool) -> Tensor:
    points = q if isinstance(q, Tensor) else _C.tensor(float(q), dtype=values.dtype)
    _check_quantile(values, points, how)
    flat = points.reshape(-1)
    if flat.numel() and not bool(whole((flat >= 0) & (flat <= 1)).all()):
        raise RuntimeError(f"quantile: expected q in [0, 1], got {q}")
    kept = [1] * values.dim() if dim is None else list(values.shape)
    if dim is not None and kept:
        kept[dim] = 1
    rows = values.movedim(dim, -1) if dim is not None and kept else values.reshape(-1)
    rows = rows.sort(-1)[0]
    last = rows.size(-1) - 1
    holes = rows.isnan()
    count = holes.logical_not().sum(-1, keepdim=True) - 1
    place = flat * (count.clamp_min(0).to(rows.dtype) if skip_nan else last)
    place = place.expand(*rows.shape[:-1], flat.numel())
    if not skip_nan:  # sorted, NaNs come last
        place = place.masked_fill(holes.any(-1, keepdim=True), last)
    low, high = place.floor(), place.ceil()
    if how == "nearest":
        low = high = place.round()
    elif how == "lower":
        high = low
    elif how == "higher":
        low = high
    below, above = (rows.gather(-1, at.to(_C.int64)) for at in (low, high))
    weight = (high - low) * 0.5 if how == "midpoint" else place - low
    result = below if how not in ("linear", "midpoint") else below + (above - below) * weight
    result = result.movedim(-1, 0)
    if keepdim:
        result = result.reshape([flat.numel(), *kept])
    return result[0] if points.dim() == 0 else result


@numpy_names
@takes_out
def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """The value below which the share q of the elements lies; a vector q adds a first dimension.

    interpolation between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
    q and a non-empty input have one dtype, float32 or float64. Raises RuntimeError otherwise, for q
    outside [0, 1], and for another interpolation.

    >>> weft.quantile(weft.tensor([1.0, 2.0, 4.0]), weft.tensor([0.5, 0.75]))
    tensor([2., 3.])
    """
    return _quantile(input, q, dim, keepdim, interpolation, False)


@numpy_names
@takes_out
def nanquantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """quantile of what is not NaN.

    Arguments and errors are those of quantile.

    >>> weft.nanquantile(weft.tensor([1.0, float("nan"), 3.0]), 0.5)
    tensor(2.)
    """
    return _quantile(input, q, dim, keepdim, interpolation, True)


def _is_fractional(x: Tensor) -> bool:
    return x.is_floating_point() or x.is_complex() or x.dtype == _C.bool


def _check_weights(what: str, weights: Tensor, x: Tensor, fits: bool) -> None:
    if not fits or weights.dim() > 1 or weights.numel() != x.size(1) or bool((weights < 0).any()):
        raise RuntimeError(
            f"cov: expected {x.size(1)} {what} of at least 0, got {weights.dtype} of shape "
            f"{tuple(weights.shape)}"
        )


def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Covariances of the rows of a matrix (a vector is one row), columns being observations.

    fweights (integers): how often each column counts; aweights: how much; correction: what is taken
    from their sum in the divisor. [n, k] gives [n, n]. Raises RuntimeError for more than two
    dimensions and for weights that do not fit.

    >>> weft.cov(weft.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.dim() > 2 or input.dtype == _C.bool:
        raise RuntimeError(
            "cov: expected at most 2 dims and numbers, got shape "
            f"{tuple(input.shape)} and {input.dtype}"
        )
    x = input.reshape(1, -1) if input.dim() < 2 else input
    if fweights is not None:
        _check_weights("integer fweights", fweights, x, not _is_fractional(fweights))
    if aweights is not None:
        _check_weights("floating aweights", aweights, x, aweights.is_floating_point())
    if not x.is_floating_point() and not x.is_complex():
        x = x.to(_C.get_default_dtype())
    weights = fweights if aweights is None else aweights
    if fweights is not None and aweights is not None:
        weights = fweights * aweights
    if weights is None:
        centred = x - x.mean(1, keepdim=True)
        result = centred @ centred.mH / max(x.size(1) - correction, 0)
    else:
        w = weights.to(_C.promote_types(weights.dtype, x.dtype))
        sum_ = w.sum()
        centred = x - (x * w).sum(1, keepdim=True) / sum_
        less = correction * ((w if aweights is None else w * aweights).sum() / sum_)
        total = sum_ - less
        result = (centred * w) @ centred.mH / total.masked_fill(_C.real(total) <= 0, 0)
    return result.squeeze()


def corrcoef(input: Tensor) -> Tensor:
    """Correlations of the rows of a matrix.

    [n, k] gives [n, n]; integers become the default dtype. Raises RuntimeError for more than two
    dimensions.

    >>> weft.corrcoef(weft.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.dim() > 2:
        raise RuntimeError(f"corrcoef: expected at most 2 dims, got shape {tuple(input.shape)}")
    c = cov(input)
    if c.dim() == 0:
        return c / c
    spread = c.diagonal().sqrt()
    result = c / spread.unsqueeze(0) / spread.unsqueeze(1)
    if result.is_complex():
        return elements.complex(_C.real(result).clamp(-1, 1), _C.real(result * -1j).clamp(-1, 1))
    return result.clamp(-1, 1)


_declare(globals())
