"""The Kullback-Leibler divergence, by pairs of distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft
from weft import Tensor
from weft.distributions.continuous import Exponential, Laplace, Normal, Uniform
from weft.distributions.discrete import Bernoulli, Categorical, Poisson
from weft.distributions.distribution import Distribution
from weft.distributions.independent import Independent

Divergence = Callable[[Any, Any], Tensor]
_DIVERGENCES: dict[tuple[type, type], Divergence] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """Registers the divergence of a pair of classes and of those derived from them."""
    for cls in (type_p, type_q):
        if not (isinstance(cls, type) and issubclass(cls, Distribution)):
            raise TypeError(f"register_kl: expected classes of distributions, got {cls!r}")

    def register(function: Divergence) -> Divergence:
        _DIVERGENCES[type_p, type_q] = function
        return function

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The expected value under p of log p(x) - log q(x), of the shape of the batches.

    The nearest registered pair of base classes decides. NotImplementedError without one.
    """
    pairs = [
        (first, second)
        for first in type(p).__mro__
        for second in type(q).__mro__
        if (first, second) in _DIVERGENCES
    ]
    if not pairs:
        names = f"{type(p).__name__} and {type(q).__name__}"
        raise NotImplementedError(f"kl_divergence: expected a registered pair, got {names}")
    return _DIVERGENCES[pairs[0]](p, q)


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * weft.exp(-away / p.scale) - 1


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return weft.where((q.low > p.low) | (q.high < p.high), weft.inf, result)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    softplus = weft.nn.functional.softplus
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    return ones + (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = weft.where((q.probs == 0).expand_as(terms), weft.inf, terms)
    return weft.where((p.probs == 0).expand_as(terms), 0.0, terms).sum(-1)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence: expected events of as many dimensions, got "
            f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return p.summed(kl_divergence(p.base_dist, q.base_dist))
