"""Distributions over numbers, by location and scale."""

from __future__ import annotations

import math
from typing import Any

import weft
from weft import Tensor
from weft.distributions import constraints
from weft.distributions.distribution import Distribution
from weft.distributions.utils import broadcast_all


class Normal(Distribution):
    """The normal distribution of a mean and a standard deviation.

    >>> weft.distributions.Normal(1.0, 2.0).variance
    tensor(4.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    support: constraints.Constraint = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc, doc="loc.")
    stddev = property(lambda self: self.scale, doc="scale.")
    variance = property(lambda self: self.scale.pow(2), doc="scale**2.")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with weft.no_grad():
            return weft.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = weft.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + noise * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = (value - self.loc) ** 2 / (2 * self.scale**2)
        return -distance - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 0.5 * (1 + weft.erf((value - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * weft.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()


class LogNormal(Normal):
    """The distribution of exp(x) of normal x."""

    support: constraints.Constraint = constraints.positive
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp(), doc="The mean.")
    mode = property(lambda self: (self.loc - self.scale.square()).exp(), doc="The mode.")
    stddev = property(lambda self: self.variance.sqrt(), doc="The standard deviation.")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with weft.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return super().rsample(sample_shape).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logarithm = value.log()
        return Normal(self.loc, self.scale, validate_args=False).log_prob(logarithm) - logarithm

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return Normal(self.loc, self.scale, validate_args=False).cdf(value.log())

    def icdf(self, value: Tensor) -> Tensor:
        return super().icdf(value).exp()

    def entropy(self) -> Tensor:
        return super().entropy() + self.loc


class Laplace(Distribution):
    """The distribution whose density falls exponentially on both sides of loc."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc, doc="loc.")
    variance = property(lambda self: 2 * self.scale.pow(2), doc="2 * scale**2.")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        eps = weft.finfo(self.loc.dtype).eps
        shape = self._extended_shape(sample_shape)
        u = weft.empty(shape, dtype=self.loc.dtype).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * weft.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -weft.log(2 * self.scale) - weft.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * weft.expm1(-away.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        away = value - 0.5
        return self.loc - self.scale * away.sign() * weft.log1p(-2 * away.abs())

    def entropy(self) -> Tensor:
        return 1 + weft.log(2 * self.scale)


class Uniform(Distribution):
    """Equal density from low to high, which is not reached."""

    arg_constraints = {"low": constraints.real, "high": constraints.real}  # noqa: RUF012
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not (self.low < self.high).all():
            raise ValueError(f"Uniform: expected low < high, got {self.low} and {self.high}")

    support = property(lambda self: constraints.interval(self.low, self.high), doc="The values.")
    mean = property(lambda self: (self.high + self.low) / 2, doc="The middle.")
    mode = property(lambda self: weft.nan * self.high, doc="nan: all values are as probable.")
    variance = property(lambda self: (self.high - self.low).pow(2) / 12, doc="width**2 / 12.")
    stddev = property(lambda self: (self.high - self.low) / 12**0.5, doc="width / sqrt(12).")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = weft.rand(self._extended_shape(sample_shape), dtype=self.low.dtype)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        inside = (self.low <= value) & (self.high > value)
        return weft.log(inside.to(self.low.dtype)) - weft.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return weft.log(self.high - self.low)


class Exponential(Distribution):
    """The distribution of times between events that happen `rate` times in one unit."""

    arg_constraints = {"rate": constraints.positive}  # noqa: RUF012
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = stddev = property(lambda self: self.rate.reciprocal(), doc="1 / rate.")
    mode = property(lambda self: weft.zeros_like(self.rate), doc="0.")
    variance = property(lambda self: self.rate.pow(-2), doc="1 / rate**2.")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return weft.empty(shape, dtype=self.rate.dtype).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 1 - weft.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -weft.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1 - weft.log(self.rate)
