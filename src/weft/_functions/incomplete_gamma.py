"""Incomplete gamma functions, and derivatives of samples for the parameters that they came from.

Both are integrals of a density up to a point, or from it on, over the density at that point: smooth
functions that decay on a half-line. One quadrature computes them all, in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.out import casting_takes_out
from weft._functions.shapes import broadcast_tensors
from weft._tensor.limits import finfo
from weft._tensor.promotion import result_type
from weft.autograd import Function

_STEP = 0.2


def _half_line(integrand: Callable[[Tensor], Tensor], near: Tensor, far: Tensor) -> Tensor:
    """The integral from 0 to infinity of a function that varies over `near` and has decayed by
    some multiples of `far`.

    u = near * exp(s - exp(-s)) makes the trapezoidal rule converge exponentially in its steps
    (Takahasi and Mori, 1974: double exponential formulas).
    """
    total = _C.zeros_like(near)
    ratio = float((far / near).nan_to_num(posinf=1.0).max()) if near.numel() else 1.0
    for node in range(-18, 20 + math.ceil(math.log(max(ratio, 1.0)) / _STEP)):
        s = _STEP * node
        u = near * math.exp(s - math.exp(-s))
        total = total + integrand(u) * u * (_STEP * (1 + math.exp(-s)))
    return total


def _width(slope: Tensor, curvature: Tensor) -> Tensor:
    """Where exp(-slope * u - curvature * u**2 / 2) has fallen to 1 / e, at most 1."""
    slope, curvature = slope.clamp(min=0), curvature.clamp(min=0)
    return (2 / (slope + (slope * slope + 2 * curvature).sqrt())).clamp(max=1)


class _Tail:
    """The integral of the gamma density on one side of x, over its value there times x.

    Below the mean, and up to 1, t = x * exp(-u); above it t = x * (1 + u).
    """

    def __init__(self, a: Tensor, x: Tensor) -> None:
        self.a, self.x, self.below = a, x, (x <= a) | (x <= 1)
        self._near = _C.where(self.below, _width(a - x, x), _width(x - a + 1, a - 1))
        self._far = _C.where(self.below, (1 + x) / a, 1 / x)

    def integral(self, factor: Callable[[Tensor], Tensor] = _C.ones_like) -> Tensor:
        """`factor` is a function of log(t / x)."""

        def integrand(u: Tensor) -> Tensor:
            away = _C.where(self.below, -u, u.log1p())
            decay = _C.where(self.below, _C.expm1(-u), u)
            power = _C.where(self.below, self.a, self.a - 1)
            return (power * away - self.x * decay).exp() * factor(away)

        return _half_line(integrand, self._near, self._far)


def _gamma_tails(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The regularised lower and upper incomplete gamma functions, for float64."""
    inner_a, inner_x = a.clamp(1e-300, 1e300), x.clamp(1e-300, 1e300)
    side = _Tail(inner_a, inner_x)
    tail = (inner_a * inner_x.log() - inner_x - _C.lgamma(inner_a)).exp() * side.integral()
    lower = _C.where(side.below, tail, 1 - tail)
    upper = _C.where(side.below, 1 - tail, tail)
    full, empty = (x == math.inf) | (a == 0), (x == 0) | (a == math.inf)
    wrong = (a < 0) | (x < 0) | (full & empty) | a.isnan() | x.isnan()
    lower = _C.where(empty, 0.0, _C.where(full, 1.0, lower.clamp(0, 1)))
    upper = _C.where(empty, 1.0, _C.where(full, 0.0, upper.clamp(0, 1)))
    return _C.where(wrong, math.nan, lower), _C.where(wrong, math.nan, upper)


class _IncompleteGamma(Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, x: Tensor, upper: bool) -> Tensor:
        ctx.save_for_backward(a, x)
        ctx.upper = upper
        dtype = result_type(a, x)
        dtype = dtype if dtype.is_floating_point else _C.get_default_dtype()
        pair = broadcast_tensors(a.to(_C.float64), x.to(_C.float64))
        return _gamma_tails(*pair)[upper].to(dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
        a, x = ctx.saved_tensors
        if ctx.needs_input_grad[0]:
            raise NotImplementedError(
                "igamma: expected no gradient for input, got one that requires it"
            )
        density = ((a - 1) * x.log() - x - _C.lgamma(a)).exp()
        slope = grad * density
        return None, (-slope if ctx.upper else slope).sum_to_size(x.shape), None


@casting_takes_out
def igamma(input: Tensor, other: Tensor) -> Tensor:
    """The regularised lower incomplete gamma function of `input` at `other`.

    Tensors of floating dtypes broadcast; computed in float64. nan for negative numbers. The
    gradient is that for `other`; NotImplementedError for one for `input`.

    >>> weft.igamma(weft.tensor([1.0, 2.0]), weft.tensor([0.5, 3.0]))
    tensor([0.3935, 0.8009])
    """
    return _IncompleteGamma.apply(*_tensors("igamma", input, other), False)


@casting_takes_out
def igammac(input: Tensor, other: Tensor) -> Tensor:
    """The regularised upper incomplete gamma function: 1 - igamma, without cancellation.

    >>> weft.igammac(weft.tensor(1.0), weft.tensor(50.0))
    tensor(1.9287e-22)
    """
    return _IncompleteGamma.apply(*_tensors("igammac", input, other), True)


def igamma_(self: Tensor, other: Tensor) -> Tensor:
    """igamma in place.

    >>> igamma_(weft.tensor([1.0]), weft.tensor([2.0]))
    tensor([0.8647])
    """
    return _C._aten._write_back(self, igamma(self.clone(), other), "igamma_")


def igammac_(self: Tensor, other: Tensor) -> Tensor:
    """igammac in place.

    >>> igammac_(weft.tensor([1.0]), weft.tensor([2.0]))
    tensor([0.1353])
    """
    return _C._aten._write_back(self, igammac(self.clone(), other), "igammac_")


def _tensors(name: str, *values: Any) -> tuple[Tensor, ...]:
    for value in values:
        if not isinstance(value, Tensor) or value.is_complex():
            got = value.dtype if isinstance(value, Tensor) else type(value).__name__
            raise TypeError(f"{name}: expected tensors of real dtypes, got {got}")
    return values


def gamma_derivative(x: Tensor, concentration: Tensor) -> Tensor:
    """dx/da of a sample x of the gamma distribution of concentration a and rate 1, by implicit
    differentiation of the distribution function (Figurnov, Mohamed, Mnih, 2018).

    Both of one shape.
    """
    a = concentration.to(_C.float64)
    z = x.to(_C.float64).clamp(min=finfo(_C.float64).tiny)
    offset, side = z.log() - _C.digamma(a), _Tail(a, z)
    total = z * side.integral(lambda away: offset + away)
    return _C.where(side.below, -total, total).to(x.dtype)


def beta_derivative(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """(dx/da) / (1 - x) of a sample x of Beta(alpha, total - alpha), in the same way.

    Below the mean t = x * exp(-u), and above it 1 - t = (1 - x) * exp(-u).
    """
    a, s = alpha.to(_C.float64), total.to(_C.float64)
    z = x.to(_C.float64).clamp(min=finfo(_C.float64).tiny)
    below = z * s <= a
    e, f = _C.where(below, a, s - a), _C.where(below, s - a, a)
    odds = _C.where(below, z / (1 - z), (1 - z) / z)
    near = _width(e - (f - 1) * odds, (f - 1) * odds * (1 + odds))
    far = (1 + (f - 1).clamp(min=0) * odds.log1p()) / e
    offset = z.log() - _C.digamma(a) + _C.digamma(s)

    def integrand(u: Tensor) -> Tensor:
        bend = (-odds * _C.expm1(-u)).log1p()
        return ((f - 1) * bend - e * u).exp() * (offset + _C.where(below, -u, bend))

    integral = _half_line(integrand, near, far)
    return _C.where(below, -odds * integral, integral).to(x.dtype)
