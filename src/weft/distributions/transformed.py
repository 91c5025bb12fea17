"""Distributions of transformed values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._tensor.limits import finfo
from weft.autograd.grad_mode import no_grad
from weft.distributions import constraints
from weft.distributions.continuous import Cauchy, Exponential, Normal, Uniform
from weft.distributions.distribution import Distribution, Size
from weft.distributions.gamma import Gamma
from weft.distributions.independent import Independent
from weft.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    PowerTransform,
    StickBreakingTransform,
    Transform,
)
from weft.distributions.utils import _sum_rightmost, broadcast_all, euler_constant


class TransformedDistribution(Distribution):
    """The distribution of transforms of what another distribution draws.

    >>> base = weft.distributions.Uniform(0.0, 1.0)
    >>> double = weft.distributions.AffineTransform(0.0, 2.0)
    >>> weft.distributions.TransformedDistribution(base, [double]).log_prob(weft.tensor(1.5))
    tensor(-0.6931)
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(transforms, list | tuple):
            transforms = [transforms]  # type: ignore[list-item]
        self.transforms = list(transforms)
        if not all(isinstance(each, Transform) for each in self.transforms):
            raise ValueError(
                f"{type(self).__name__}: expected a transform or several, got {transforms!r}"
            )
        whole = ComposeTransform(self.transforms)
        needed, own = whole.domain.event_dim, len(base_distribution.event_shape)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(base_shape) < needed:
            raise ValueError(
                f"{type(self).__name__}: expected a base of at least {needed} dimensions, "
                f"got {base_distribution!r}"
            )
        shape = Size(whole.forward_shape(base_shape))
        expanded = Size(whole.inverse_shape(shape))
        if expanded != base_shape:  # parameters of the transforms have a larger batch
            base_distribution = base_distribution.expand(expanded[: len(expanded) - own])
        if needed > own:
            base_distribution = Independent(base_distribution, needed - own)
        self.base_dist = base_distribution
        cut = len(shape) - whole.codomain.event_dim - max(own - needed, 0)
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample, doc="As the base.")

    @constraints.dependent_property
    def support(self) -> Any:
        """The codomain of the last transform."""
        if not self.transforms:
            return self.base_dist.support
        codomain, dims = self.transforms[-1].codomain, len(self.event_shape)
        more = dims - codomain.event_dim
        return constraints.independent(codomain, more) if more > 0 else codomain

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        shape = Size(batch_shape) + self.event_shape
        inner = Size(ComposeTransform(self.transforms).inverse_shape(shape))
        new.base_dist = self.base_dist.expand(inner[: len(inner) - len(self.base_dist.event_shape)])
        return new

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, value: Tensor) -> Tensor:
        for transform in self.transforms:
            value = transform(value)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        event_dim, total = len(self.event_shape), _C.zeros(())
        for transform in reversed(self.transforms):
            before = transform.inv(value)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            term = transform.log_abs_det_jacobian(before, value)
            total = total - _sum_rightmost(term, event_dim - transform.domain.event_dim)
            value = before
        inner = self.base_dist.log_prob(value)
        return total + _sum_rightmost(inner, event_dim - len(self.base_dist.event_shape))

    def _mirrored(self, value: Tensor) -> Tensor:
        """Probabilities, counted from the other end where the transforms decrease."""
        sign = math.prod([1, *(transform.sign for transform in self.transforms)])
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self.base_dist._validate_args:
            self.base_dist._validate_sample(value)
        return self._mirrored(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._mirrored(value)))


class LogNormal(TransformedDistribution):
    """The distribution of exp(x) of normal x."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.loc, doc="The mean of the logarithm.")
    scale = property(lambda self: self.base_dist.scale, doc="Its standard deviation.")
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp(), doc="The mean.")
    mode = property(lambda self: (self.loc - self.scale.square()).exp(), doc="The mode.")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class _Half(TransformedDistribution):
    """The distance from 0 of a symmetric distribution around 0."""

    arg_constraints = {"scale": constraints.positive}  # noqa: RUF012
    support = constraints.nonnegative
    has_rsample = True
    _whole: Any

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = self._whole(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)
        if self._validate_args and not (self.scale > 0).all():
            name = type(self).__name__
            raise ValueError(f"{name}: expected scale within {constraints.positive}, got {scale}")

    scale = property(lambda self: self.base_dist.scale, doc="That of the whole distribution.")
    mode = property(lambda self: _C.zeros_like(self.scale), doc="0.")

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value = _C.as_tensor(value, dtype=self.scale.dtype)
        whole = self.base_dist.log_prob(value) + math.log(2)
        return _C.where(value >= 0, whole, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """|x| of normal x around 0."""

    _whole = Normal
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi), doc="The mean.")
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi), doc="The variance.")


class HalfCauchy(_Half):
    """|x| of x from a Cauchy distribution around 0."""

    _whole = Cauchy
    mean = property(lambda self: _C.full_like(self.scale, math.inf), doc="inf.")
    variance = property(lambda self: self.base_dist.variance, doc="inf.")


class InverseGamma(TransformedDistribution):
    """The distribution of 1 / x of x from a gamma distribution."""

    arg_constraints = {  # noqa: RUF012
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        inverse = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, inverse, validate_args=validate_args)

    concentration = property(lambda self: self.base_dist.concentration, doc="Of the gamma.")
    rate = property(lambda self: self.base_dist.rate, doc="Of the gamma.")
    mode = property(lambda self: self.rate / (self.concentration + 1), doc="The mode.")

    @property
    def mean(self) -> Tensor:
        """inf where the concentration is at most 1."""
        a = self.concentration
        return _C.where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def variance(self) -> Tensor:
        """inf where the concentration is at most 2."""
        a = self.concentration
        finite = self.rate.square() / ((a - 1).square() * (a - 2))
        return _C.where(a > 2, finite, math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class Gumbel(TransformedDistribution):
    """The largest of many numbers whose tail is exponential."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits, ones = finfo(self.loc.dtype), _C.ones_like(self.loc)
        base = Uniform(ones * limits.tiny, ones - limits.eps, validate_args=validate_args)
        negative = AffineTransform(0, -ones)
        steps = [ExpTransform().inv, negative, ExpTransform().inv]
        steps.append(AffineTransform(self.loc, -self.scale))
        super().__init__(base, steps, validate_args=validate_args)

    mean = property(
        lambda self: self.loc + self.scale * euler_constant, doc="loc + Euler's gamma * scale."
    )
    mode = property(lambda self: self.loc, doc="loc.")
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale, doc="pi scale / sqrt(6).")
    variance = property(lambda self: self.stddev.pow(2), doc="The square of stddev.")

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)


class Kumaraswamy(TransformedDistribution):
    """A distribution like Beta whose cdf, 1 - (1 - x**a)**b, has a closed form."""

    arg_constraints = {  # noqa: RUF012
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        a, b = broadcast_all(concentration1, concentration0)
        self.concentration1, self.concentration0 = a, b
        base = Uniform(_C.zeros_like(a), _C.ones_like(a), validate_args=validate_args)
        steps = [PowerTransform(b.reciprocal()), AffineTransform(1.0, -1.0)]
        steps.append(PowerTransform(a.reciprocal()))
        super().__init__(base, steps, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """The mean of x**n, which is b * Beta(1 + n / a, b)."""
        first, b = 1 + n / self.concentration1, self.concentration0
        return (first.lgamma() + b.lgamma() - (first + b).lgamma() + b.log()).exp()

    mean = property(lambda self: self._moment(1), doc="The first moment.")
    variance = property(lambda self: self._moment(2) - self.mean.pow(2), doc="The variance.")

    @property
    def mode(self) -> Tensor:
        """nan where a concentration is below 1."""
        a, b = self.concentration1, self.concentration0
        inside = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return _C.where((a < 1) | (b < 1), math.nan, inside)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = _C.digamma(b + 1) + euler_constant
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class Pareto(TransformedDistribution):
    """A power law from scale on, of the exponent alpha."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}  # noqa: RUF012

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        steps = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From scale on."""
        return constraints.greater_than_eq(self.scale)

    mode = property(lambda self: self.scale, doc="scale.")

    @property
    def mean(self) -> Tensor:
        """inf where alpha is at most 1."""
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def variance(self) -> Tensor:
        """inf where alpha is at most 2."""
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(TransformedDistribution):
    """The time until a failure whose rate changes as a power of time."""

    arg_constraints = {  # noqa: RUF012
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(_C.ones_like(self.scale), validate_args=validate_args)
        steps = [PowerTransform(self.concentration.reciprocal()), AffineTransform(0, self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """The mean of (x / scale)**n."""
        return (1 + n / self.concentration).lgamma().exp()

    mean = property(lambda self: self.scale * self._moment(1), doc="The mean.")

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.scale.pow(2) * (self._moment(2) - self._moment(1).pow(2))

    def entropy(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1


class LogisticNormal(TransformedDistribution):
    """Vectors of probabilities by the stick-breaking transform of normal numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Tensor, scale: Tensor, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc, doc="Of the normal numbers.")
    scale = property(lambda self: self.base_dist.base_dist.scale, doc="Of the normal numbers.")
