"""Draws from the gamma, Dirichlet and binomial distributions, in operators on whole tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Size, Tensor
from weft._functions.incomplete_gamma import beta_derivative, gamma_derivative
from weft._functions.shapes import broadcast_tensors
from weft._tensor.limits import finfo
from weft.autograd import Function
from weft.autograd.function import once_differentiable

Proposal = Callable[[Tensor], tuple[Tensor, Tensor]]


def rejection(shape: Any, propose: Proposal) -> Tensor:
    """Values of rejection sampling, as float64 of the shape.

    `propose` takes the flat indices of elements that have no value yet and gives a candidate for
    each, and whether it is accepted.
    """
    count = Size(shape).numel()
    values, pending = _C.empty(count, dtype=_C.float64), _C.arange(count)
    while pending.numel():
        candidates, accepted = propose(pending)
        values[pending[accepted]] = candidates[accepted]
        pending = pending[~accepted]
    return values.reshape(shape)


def _floating(name: str, *values: Tensor) -> None:
    for value in values:
        if not value.is_floating_point():
            raise RuntimeError(f"{name}: expected floating dtypes, got {value.dtype}")


class _StandardGamma(Function):
    @staticmethod
    def forward(ctx: Any, concentration: Tensor, generator: Any) -> Tensor:
        _floating("_standard_gamma", concentration)
        drawn = _gamma(concentration.to(_C.float64), generator)
        result = drawn.to(concentration.dtype).clamp(min=finfo(concentration.dtype).tiny)
        ctx.save_for_backward(result, concentration)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad * gamma_derivative(*ctx.saved_tensors), None


def _standard_gamma(concentration: Tensor, generator: Any = None) -> Tensor:
    """Samples of gamma distributions of rate 1, one for each concentration, with gradients."""
    return _StandardGamma.apply(concentration, generator)


def _gamma(concentration: Tensor, generator: Any) -> Tensor:
    """By the method of Marsaglia and Tsang, 2000: a cube of a normal number, accepted nearly
    always. Below 1 a sample of concentration + 1 is multiplied by a power of a uniform number."""
    boosted = concentration < 1
    d = (concentration + boosted - 1 / 3).reshape(-1)

    def propose(pending: Tensor) -> tuple[Tensor, Tensor]:
        here = d[pending]
        normal = _C.randn(here.shape, dtype=here.dtype, generator=generator)
        uniform = 1 - _C.rand(here.shape, dtype=here.dtype, generator=generator)
        v = (1 + normal / (9 * here).sqrt()) ** 3
        bound = 0.5 * normal**2 + here * (1 - v + v.log())
        # nan, where v is negative, refuses; a concentration of nan is its own result
        return here * v, (uniform.log() < bound) | here.isnan()

    drawn = rejection(concentration.shape, propose)
    uniform = 1 - _C.rand(drawn.shape, dtype=drawn.dtype, generator=generator)
    return _C.where(boosted, drawn * uniform ** (1 / concentration), drawn)


class _Dirichlet(Function):
    @staticmethod
    def forward(ctx: Any, concentration: Tensor, generator: Any) -> Tensor:
        _floating("_sample_dirichlet", concentration)
        gammas = _gamma(concentration.to(_C.float64), generator)
        gammas = gammas.clamp(min=finfo(gammas.dtype).tiny)
        result = (gammas / gammas.sum(-1, keepdim=True)).to(concentration.dtype)
        ctx.save_for_backward(result, concentration)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        x, concentration = ctx.saved_tensors
        total = concentration.sum(-1, keepdim=True).expand_as(concentration)
        along = grad - (x * grad).sum(-1, keepdim=True)  # within the simplex
        return beta_derivative(x, concentration, total) * along, None


def _sample_dirichlet(concentration: Tensor, generator: Any = None) -> Tensor:
    """Samples of Dirichlet distributions, whose last dimension is one value, with gradients."""
    return _Dirichlet.apply(concentration, generator)


class _Binomial(Function):
    @staticmethod
    def forward(ctx: Any, count: Tensor, prob: Tensor, generator: Any) -> Tensor:
        _floating("binomial", count, prob)
        n, p = broadcast_tensors(count.to(_C.float64), prob.to(_C.float64))
        fewer = _C.where(p > 0.5, 1 - p, p).clamp(min=0)
        n = n.floor().clamp(min=0)
        often = n * fewer >= 10
        drawn = _C.where(often, 0.0, _waiting(n * ~often, fewer, generator))
        flat = often.reshape(-1)
        drawn = drawn.reshape(-1)
        drawn[flat] = _transformed(n.reshape(-1)[flat], fewer.reshape(-1)[flat], generator)
        drawn = drawn.reshape(n.shape)
        drawn = _C.where(p > 0.5, n - drawn, drawn)
        ctx.shapes = count.shape, prob.shape
        return _C.where(p.isnan(), math.nan, drawn).to(count.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        count, prob = ctx.shapes
        return grad.new_zeros(count), grad.new_zeros(prob), None


def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """How many of `count` trials of probability `prob` succeed, drawn for each element.

    Tensors of floating dtypes broadcast. The gradient is zero.

    >>> weft.binomial(weft.tensor([3.0, 4.0]), weft.tensor([0.0, 1.0]))
    tensor([0., 4.])
    """
    return _Binomial.apply(count, prob, generator)


def _waiting(n: Tensor, p: Tensor, generator: Any) -> Tensor:
    """Adds up the numbers of trials until a success (Devroye, 1986, X.4): as many steps as there
    are successes, which are few."""
    trials, successes = _C.zeros_like(n), _C.zeros_like(n)
    rate = (-p).log1p()
    while True:
        uniform = 1 - _C.rand(n.shape, dtype=n.dtype, generator=generator)
        trials = trials + (uniform.log() / rate).ceil().clamp(min=1)
        within = trials <= n  # false for the nan of a probability of 0
        if not within.any():
            return successes
        successes = successes + within


def _transformed(n: Tensor, p: Tensor, generator: Any) -> Tensor:
    """The transformed rejection with squeeze of Hoermann, 1993, algorithm BTRS."""
    root = (n * p * (1 - p)).sqrt()
    b = 1.15 + 2.53 * root
    a = -0.0873 + 0.0248 * b + 0.01 * p
    alpha, ratio = (2.83 + 5.1 / b) * root, (p / (1 - p)).log()
    mode = ((n + 1) * p).floor()
    top = _C.lgamma(mode + 1) + _C.lgamma(n - mode + 1)

    def propose(pending: Tensor) -> tuple[Tensor, Tensor]:
        size, width, bend = n[pending], b[pending], a[pending]
        u = _C.rand(size.shape, dtype=size.dtype, generator=generator) - 0.5
        v = 1 - _C.rand(size.shape, dtype=size.dtype, generator=generator)
        edge = 0.5 - u.abs()
        k = ((2 * bend / edge + width) * u + size * p[pending] + 0.5).floor()
        inside = (k >= 0) & (k <= size)
        held = _C.where(inside, k, 0.0)
        ways = _C.lgamma(held + 1) + _C.lgamma(size - held + 1)
        bound = top[pending] - ways + (held - mode[pending]) * ratio[pending]
        v = (v * alpha[pending] / (bend / (edge * edge) + width)).log()
        return k, inside & (v <= bound)

    return rejection(n.shape, propose)
