"""Cross entropies of distributions over numbers: -E[log q(x)] under p.

log q is linear in few functions of x: x, x**2, log(x), log(1 - x), exp(-t * x). So each q has one
formula of their means under p, and each p has the means.
"""

from __future__ import annotations

import math
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.shapes import broadcast_shapes
from weft.distributions.continuous import Exponential, Laplace, Normal, Uniform
from weft.distributions.counts import ContinuousBernoulli
from weft.distributions.distribution import Distribution
from weft.distributions.gamma import Beta, Gamma
from weft.distributions.transformed import Gumbel, Pareto
from weft.distributions.utils import euler_constant

_CLASSES = {
    cls.__name__: cls
    for cls in (
        *(Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel),
        *(Laplace, Normal, Pareto, Uniform),
    )
}
_NAMES = {
    "Beta": "Beta ContinuousBernoulli Exponential Gamma Normal Pareto Uniform",
    "ContinuousBernoulli": "ContinuousBernoulli Exponential Normal Pareto Uniform",
    "Exponential": "Beta ContinuousBernoulli Exponential Gamma Gumbel Normal Pareto Uniform",
    "Gamma": "Beta ContinuousBernoulli Exponential Gamma Gumbel Normal Pareto Uniform",
    "Gumbel": "Beta ContinuousBernoulli Exponential Gamma Gumbel Normal Pareto Uniform",
    "Laplace": "Beta ContinuousBernoulli Exponential Gamma Normal Pareto Uniform",
    "Normal": "Beta ContinuousBernoulli Exponential Gamma Gumbel Pareto Uniform",
    "Pareto": "Beta ContinuousBernoulli Exponential Gamma Normal Pareto Uniform",
    "Uniform": "Beta ContinuousBernoulli Exponential Gamma Gumbel Normal Pareto Uniform",
}
PAIRS = [(_CLASSES[p], _CLASSES[q]) for p, names in _NAMES.items() for q in names.split()]
"""The pairs for which `cross_entropy` or `outside` knows the answer."""


def _log_range(low: Tensor, high: Tensor) -> Tensor:
    """The mean of log(x) between two numbers."""
    return (_C.xlogy(high, high) - _C.xlogy(low, low)) / (high - low) - 1


# the mean of log(x)
_LOG: dict[type, Any] = {
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Exponential: lambda p: -euler_constant - p.rate.log(),
    Gamma: lambda p: p.concentration.digamma() - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: lambda p: _log_range(p.low, p.high),
}
# the mean of log(1 - x)
_LOG_REST: dict[type, Any] = {
    Beta: lambda p: p.concentration0.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Uniform: lambda p: _log_range(1 - p.high, 1 - p.low),
}
# the logarithm of the mean of exp(-t * x)
_LOG_EXP: dict[type, Any] = {
    Exponential: lambda p, t: -(t / p.rate).log1p(),
    Gamma: lambda p, t: -p.concentration * (t / p.rate).log1p(),
    Gumbel: lambda p, t: (1 + t * p.scale).lgamma() - t * p.loc,
    Normal: lambda p, t: 0.5 * (t * p.scale) ** 2 - t * p.loc,
    Uniform: lambda p, t: _log_exp_range(t * p.low, t * (p.high - p.low)),
}


def _log_exp_range(low: Tensor, width: Tensor) -> Tensor:
    return (-_C.expm1(-width) / width).log() - low


def _of_gamma(p: Any, q: Gamma) -> Tensor:
    constant = q.concentration.lgamma() - q.concentration * q.rate.log()
    return constant + q.rate * p.mean - (q.concentration - 1) * _LOG[_class_of(p)](p)


def _of_beta(p: Any, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    constant = a.lgamma() + b.lgamma() - (a + b).lgamma()
    return constant - (a - 1) * _LOG[_class_of(p)](p) - (b - 1) * _LOG_REST[_class_of(p)](p)


def _of_normal(p: Any, q: Normal) -> Tensor:
    squared = (p.variance + (p.mean - q.loc) ** 2) / q.scale**2
    return 0.5 * squared + q.scale.log() + 0.5 * math.log(2 * math.pi)


def _of_gumbel(p: Any, q: Gumbel) -> Tensor:
    t = q.scale.reciprocal()
    return q.scale.log() + t * (p.mean - q.loc) + (_LOG_EXP[_class_of(p)](p, t) + t * q.loc).exp()


def _of_pareto(p: Any, q: Pareto) -> Tensor:
    return (q.alpha + 1) * _LOG[_class_of(p)](p) - q.alpha.log() - q.alpha * q.scale.log()


_CROSS: dict[type, Any] = {
    Beta: _of_beta,
    ContinuousBernoulli: lambda p, q: (
        -q._log_constant() - (-q.probs).log1p() - q.probs.logit() * p.mean
    ),
    Exponential: lambda p, q: q.rate * p.mean - q.rate.log(),
    Gamma: _of_gamma,
    Gumbel: _of_gumbel,
    Normal: _of_normal,
    Pareto: _of_pareto,
    Uniform: lambda p, q: (q.high - q.low).log() + _C.zeros_like(p.mean),
}
_BOUNDS: dict[type, Any] = {
    Beta: lambda p: (0.0, 1.0),
    ContinuousBernoulli: lambda p: (0.0, 1.0),
    Exponential: lambda p: (0.0, math.inf),
    Gamma: lambda p: (0.0, math.inf),
    Pareto: lambda p: (p.scale, math.inf),
    Uniform: lambda p: (p.low, p.high),
}


def _class_of(p: Distribution) -> type:
    return next(cls for cls in type(p).__mro__ if cls in _CROSS or cls is Laplace)


def cross_entropy(p: Any, q: Any) -> Tensor | None:
    """-E[log q(x)] under p, where q's density is above 0; None for a mean that is not known, where
    p is never within the support of q."""
    try:
        return _CROSS[_class_of(q)](p, q)
    except KeyError:
        return None


def outside(p: Any, q: Any) -> Tensor:
    """Whether p draws values that q cannot have."""
    everywhere = (-math.inf, math.inf)
    low_p, high_p = _BOUNDS.get(_class_of(p), lambda _: everywhere)(p)
    low_q, high_q = _BOUNDS.get(_class_of(q), lambda _: everywhere)(q)
    shape = broadcast_shapes(p.batch_shape, q.batch_shape)
    beyond = _C.as_tensor(low_p < low_q) | _C.as_tensor(high_p > high_q)
    return beyond.expand(shape)
