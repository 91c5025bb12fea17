"""Distributions over numbers, by location and scale."""

from __future__ import annotations

import math
from typing import Any

from weft import _C, special
from weft._C import Tensor
from weft._runtime.samples import whole
from weft._tensor.limits import finfo
from weft.autograd.grad_mode import no_grad
from weft.distributions import constraints
from weft.distributions.distribution import Distribution
from weft.distributions.exp_family import ExponentialFamily
from weft.distributions.utils import lazy_property


class Normal(ExponentialFamily):
    """The normal distribution of a mean and a standard deviation.

    >>> weft.distributions.Normal(1.0, 2.0).variance
    tensor(4.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    support = constraints.real
    _mean_carrier_measure = 0
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, scale=scale)

    mean = mode = property(lambda self: self.loc, doc="loc.")
    stddev = property(lambda self: self.scale, doc="scale.")
    variance = property(lambda self: self.scale.pow(2), doc="scale**2.")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return _C.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = _C.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + noise * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        distance = (value - self.loc) ** 2 / (2 * self.scale**2)
        return -distance - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 0.5 * (1 + _C.erf((value - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * _C.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return -0.25 * x.pow(2) / y + 0.5 * _C.log(-math.pi / y)


class Laplace(Distribution):
    """The distribution whose density falls exponentially on both sides of loc."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, scale=scale)

    mean = mode = property(lambda self: self.loc, doc="loc.")
    variance = property(lambda self: 2 * self.scale.pow(2), doc="2 * scale**2.")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        eps = finfo(self.loc.dtype).eps
        shape = self._extended_shape(sample_shape)
        u = _C.empty(shape, dtype=self.loc.dtype).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * _C.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -_C.log(2 * self.scale) - _C.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * _C.expm1(-away.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        away = value - 0.5
        return self.loc - self.scale * away.sign() * _C.log1p(-2 * away.abs())

    def entropy(self) -> Tensor:
        return 1 + _C.log(2 * self.scale)


class Uniform(Distribution):
    """Equal density from low to high, which is not reached."""

    arg_constraints = {"low": constraints.dependent, "high": constraints.dependent}  # noqa: RUF012
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, low=low, high=high)
        if self._validate_args and not whole(self.low < self.high).all():
            raise ValueError(f"Uniform: expected low < high, got {self.low} and {self.high}")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        """The values from low to high."""
        return constraints.interval(self.low, self.high)

    mean = property(lambda self: (self.high + self.low) / 2, doc="The middle.")
    mode = property(lambda self: math.nan * self.high, doc="nan: all values are as probable.")
    variance = property(lambda self: (self.high - self.low).pow(2) / 12, doc="width**2 / 12.")
    stddev = property(lambda self: (self.high - self.low) / 12**0.5, doc="width / sqrt(12).")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = _C.rand(self._extended_shape(sample_shape), dtype=self.low.dtype)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        inside = (self.low <= value) & (self.high > value)
        return _C.log(inside.to(self.low.dtype)) - _C.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return _C.log(self.high - self.low)


class Exponential(ExponentialFamily):
    """The distribution of times between events that happen `rate` times in one unit."""

    arg_constraints = {"rate": constraints.positive}  # noqa: RUF012
    support = constraints.nonnegative
    _mean_carrier_measure = 0
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, rate=rate)

    mean = stddev = property(lambda self: self.rate.reciprocal(), doc="1 / rate.")
    mode = property(lambda self: _C.zeros_like(self.rate), doc="0.")
    variance = property(lambda self: self.rate.pow(-2), doc="1 / rate**2.")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return _C.empty(shape, dtype=self.rate.dtype).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 1 - _C.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -_C.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1 - _C.log(self.rate)

    _natural_params = property(lambda self: (-self.rate,), doc="-rate.")

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return -_C.log(-x)


class Cauchy(Distribution):
    """The ratio of two normal numbers, around loc: neither mean nor variance exist."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, scale=scale)

    mean = property(lambda self: _C.full_like(self.loc, math.nan), doc="nan.")
    mode = property(lambda self: self.loc, doc="loc.")
    variance = property(lambda self: _C.full_like(self.loc, math.inf), doc="inf.")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + _C.empty(shape, dtype=self.loc.dtype).cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        squared = ((value - self.loc) / self.scale) ** 2
        return -math.log(math.pi) - self.scale.log() - squared.log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return _C.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return _C.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class GeneralizedPareto(Distribution):
    """What exceeds a high threshold loc: a tail of the index concentration, bounded where that is
    negative and exponential where it is 0."""

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self._take(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        """From loc on, up to a bound where the concentration is negative."""
        bound = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, _C.where(self.concentration < 0, bound, math.inf))

    mode = property(lambda self: self.loc, doc="loc.")

    @property
    def mean(self) -> Tensor:
        """nan where the concentration is 1 or more."""
        k = _C.where(self.concentration < 1, self.concentration, math.nan)
        return self.loc + self.scale / (1 - k)

    @property
    def variance(self) -> Tensor:
        """nan where the concentration is 1/2 or more."""
        k = _C.where(self.concentration < 0.5, self.concentration, math.nan)
        return self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k))

    def _index(self) -> tuple[Tensor, Tensor]:
        """Whether the concentration is 0, and one to divide by."""
        none = _C.isclose(self.concentration, _C.zeros_like(self.concentration))
        return none, _C.where(none, 1.0, self.concentration)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(_C.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        none, k = self._index()
        z = (value - self.loc) / self.scale
        power = 1 / k + 1
        bent = _C.where(power == 0, 0.0, power * (k * z).log1p())
        return -self.scale.log() - _C.where(none, z, bent)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """log(1 - cdf(value))."""
        self._check(value)
        none, k = self._index()
        z = (value - self.loc) / self.scale
        return -_C.where(none, z, (k * z).log1p() / k)

    def log_cdf(self, value: Tensor) -> Tensor:
        """log(cdf(value))."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        none, k = self._index()
        left = (-value).log1p()
        return self.loc + self.scale * _C.where(none, -left, _C.expm1(-k * left) / k)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1


class VonMises(Distribution):
    """The distribution of angles around loc, from -pi to pi."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}  # noqa: RUF012
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, concentration=concentration)

    mean = mode = property(lambda self: self.loc, doc="loc.")

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        k = self.concentration
        below = k * (_C.cos(value - self.loc) - 1)  # i0e is i0(k) * exp(-k)
        return below - math.log(2 * math.pi) - special.i0e(k).log()

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """By rejection from a wrapped Cauchy distribution (Best and Fisher, 1979)."""
        k = self.concentration.to(_C.float64)
        shape = self._extended_shape(sample_shape)
        tau = 1 + (1 + 4 * k * k).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        r = _C.where(k < 1e-5, 1 / k + k, (1 + rho * rho) / (2 * rho))
        angle, done = _C.zeros(shape, dtype=k.dtype), _C.zeros(shape, dtype=_C.bool)
        while not done.all():
            # all are drawn again, as PyTorch does: the random stream is the same
            turn, chance, half = _C.rand((3, *shape), dtype=k.dtype).unbind()
            z = _C.cos(math.pi * turn)
            f = (1 + r * z) / (r + z)
            c = k * (r - f)
            accepted = (c * (2 - c) > chance) | ((c / chance).log() + 1 - c >= 0) | k.isnan()
            angle = _C.where(accepted, (half - 0.5).sign() * f.acos(), angle)
            done = done | accepted
        turned = (angle + math.pi + self.loc.to(k.dtype)) % (2 * math.pi) - math.pi
        return turned.to(self.loc.dtype)
