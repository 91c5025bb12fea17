"""The Kullback-Leibler divergence, by pairs of distributions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.distributions.continuous import Cauchy, Laplace, Normal
from weft.distributions.counts import Binomial, Geometric, Poisson
from weft.distributions.cross_entropy import PAIRS, cross_entropy, outside
from weft.distributions.discrete import Bernoulli, Categorical
from weft.distributions.distribution import Distribution
from weft.distributions.exp_family import ExponentialFamily
from weft.distributions.gamma import Dirichlet
from weft.distributions.independent import Independent
from weft.distributions.multivariate import NormalVectors
from weft.distributions.transformed import HalfNormal, TransformedDistribution
from weft.nn import functional as F

__all__ = ["kl_divergence", "register_kl"]

Divergence = Callable[[Any, Any], Tensor]
_DIVERGENCES: dict[tuple[type, type], Divergence] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """Registers the divergence of a pair of classes and of those derived from them.

    A class need not derive from Distribution: libraries register bases of their own. TypeError for
    what is no class."""
    for cls in (type_p, type_q):
        if not isinstance(cls, type):
            raise TypeError(f"register_kl: expected classes, got {cls!r}")

    def register(function: Divergence) -> Divergence:
        _DIVERGENCES[type_p, type_q] = function
        return function

    return register


def _found(type_p: type, type_q: type) -> Divergence | None:
    """The function of the nearest pair, first by p, then by q; a warning where the other order
    finds another."""
    bases_p, bases_q = type_p.__mro__, type_q.__mro__
    by_p = ((p, q) for p in bases_p for q in bases_q)
    by_q = ((p, q) for q in bases_q for p in bases_p)
    first = next((pair for pair in by_p if pair in _DIVERGENCES), None)
    second = next((pair for pair in by_q if pair in _DIVERGENCES), None)
    if first is None or second is None:
        return None
    if _DIVERGENCES[first] is not _DIVERGENCES[second]:
        names = [f"({p.__name__}, {q.__name__})" for p, q in (first, second)]
        warnings.warn(
            f"kl_divergence: expected one nearest pair, got {names[0]}, which is taken, and "
            f"{names[1]}",
            RuntimeWarning,
            stacklevel=3,
        )
    return _DIVERGENCES[first]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The expected value under p of log p(x) - log q(x), of the shape of the batches.

    The nearest registered pair of base classes decides. NotImplementedError without one.

    >>> d = weft.distributions
    >>> kl_divergence(d.Exponential(1.0), d.Gamma(1.0, 1.0))
    tensor(0.)
    """
    function = _found(type(p), type(q))
    if function is None:
        names = f"{type(p).__name__} and {type(q).__name__}"
        raise NotImplementedError(f"kl_divergence: expected a registered pair, got {names}")
    return function(p, q)


def _by_cross_entropy(p: Distribution, q: Distribution) -> Tensor:
    known = cross_entropy(p, q)
    divergence = _C.zeros_like(p.mean) if known is None else known - p.entropy()
    return _C.where(outside(p, q), math.inf, divergence)


for _pair in PAIRS:
    register_kl(*_pair)(_by_cross_entropy)


@register_kl(ExponentialFamily, ExponentialFamily)
def _bregman(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log normaliser (Nielsen and Nock, 2010)."""
    if type(p) is not type(q):
        names = f"{type(p).__name__} and {type(q).__name__}"
        raise NotImplementedError(f"kl_divergence: expected a registered pair, got {names}")
    params = p._differentiable_params()
    normalizer, means = p._normalizer_and_means(params)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for of_p, of_q, mean in zip(params, q._natural_params, means):
        term = (of_q - of_p) * mean
        result = result - term.reshape(*term.shape[: len(q.batch_shape)], -1).sum(-1)
    return result


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


register_kl(HalfNormal, HalfNormal)(lambda p, q: _normal(p.base_dist, q.base_dist))


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * _C.exp(-away / p.scale) - 1


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    z = (p.loc - q.loc) / p.scale
    density = math.sqrt(2 / math.pi) * (-0.5 * z.pow(2)).exp()
    distance = p.scale * (density + z * _C.erf(z / math.sqrt(2)))
    return (2 * q.scale).log() + distance / q.scale - p.entropy()


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    total = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return (total / (4 * p.scale * q.scale)).log()


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    softplus = F.softplus
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    ones = _C.where(q.probs == 0, math.inf, ones)
    zeros = _C.where(q.probs == 1, math.inf, zeros)
    return _C.where(p.probs == 0, 0.0, ones) + _C.where(p.probs == 1, 0.0, zeros)


register_kl(Bernoulli, Poisson)(lambda p, q: q.rate - p.probs * q.rate.log() - p.entropy())


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "kl_divergence: expected no larger total_count of the second Binomial, got "
            f"{p.total_count} and {q.total_count}"
        )
    ones = p.probs * (p.logits - q.logits)
    result = p.total_count * (ones + (-p.probs).log1p() - (-q.probs).log1p())
    return _C.where(p.total_count > q.total_count, math.inf, result)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = _C.where((q.probs == 0).expand_as(terms), math.inf, terms)
    return _C.where((p.probs == 0).expand_as(terms), 0.0, terms).sum(-1)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Poisson, Bernoulli)
@register_kl(Poisson, Binomial)
def _unbounded(p: Distribution, q: Distribution) -> Tensor:
    return _C.full_like(p.mean, math.inf)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    normalizers = _C.lgamma(total) - _C.lgamma(b.sum(-1)) + (b.lgamma() - a.lgamma()).sum(-1)
    return normalizers + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(NormalVectors, NormalVectors)
def _normal_vectors(p: NormalVectors, q: NormalVectors) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"kl_divergence: expected equal event shapes, got {tuple(p.event_shape)} and "
            f"{tuple(q.event_shape)}"
        )
    determinants = q._half_log_det() - p._half_log_det()
    distance = q._squared_norm((p.loc - q.loc).unsqueeze(-1))
    return determinants + 0.5 * (q._squared_norm(p._factor()) + distance - p.event_shape[0])


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            f"kl_divergence: expected equal transforms and event shapes, got {p.transforms} and "
            f"{q.transforms}"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence: expected events of as many dimensions, got "
            f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return p.summed(kl_divergence(p.base_dist, q.base_dist))
