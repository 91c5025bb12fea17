"""Distributions of numbers of events, and the continuous relative of one of them."""

from __future__ import annotations

import math
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.samples import whole
from weft._tensor.limits import finfo
from weft.autograd.grad_mode import no_grad
from weft.distributions import constraints
from weft.distributions.discrete import Categorical, Odds
from weft.distributions.distribution import Distribution, Size
from weft.distributions.exp_family import ExponentialFamily
from weft.distributions.gamma import Gamma
from weft.distributions.utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs
from weft.nn import functional as F


class Poisson(ExponentialFamily):
    """The number of events that happen `rate` times on average.

    >>> weft.distributions.Poisson(2.0).log_prob(weft.tensor(0.0))
    tensor(-2.)
    """

    arg_constraints = {"rate": constraints.nonnegative}  # noqa: RUF012
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, rate=rate)

    mean = variance = property(lambda self: self.rate, doc="rate.")
    mode = property(lambda self: self.rate.floor(), doc="floor(rate).")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return _C.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    _natural_params = property(lambda self: (_C.log(self.rate),), doc="log(rate).")

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.exp()


class _Trials(Odds):
    """Trials of a probability, with the shapes of the parameter and of total_count broadcast."""

    total_count: Tensor

    def _take_trials(
        self, total_count: Any, probs: Any, logits: Any, validate_args: bool | None
    ) -> None:
        given = self._one_of(probs, logits)
        self.total_count, given = broadcast_all(total_count, given)
        self.total_count = self.total_count.type_as(given)
        setattr(self, "probs" if logits is None else "logits", given)
        Distribution.__init__(self, given.shape, validate_args=validate_args)

    @property
    def _log_chances(self) -> tuple[Tensor, Tensor]:
        """log(probs) and log(1 - probs)."""
        return F.logsigmoid(self.logits), F.logsigmoid(-self.logits)


class Geometric(Odds):
    """The number of failures before the first success."""

    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (given,) = broadcast_all(self._one_of(probs, logits))
        setattr(self, "probs" if logits is None else "logits", given)
        super().__init__(given.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not whole(given > 0).all():
            raise ValueError(f"Geometric: expected probs above 0, got {given}")

    mean = property(lambda self: 1.0 / self.probs - 1.0, doc="1 / probs - 1.")
    mode = property(lambda self: _C.zeros_like(self.probs), doc="0.")
    variance = property(
        lambda self: (1.0 / self.probs - 1.0) / self.probs, doc="(1 / probs - 1) / probs."
    )

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape, dtype = self._extended_shape(sample_shape), self.probs.dtype
        with no_grad():
            u = _C.empty(shape, dtype=dtype).uniform_(finfo(dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        failure = _C.where((probs == 1) & (value == 0), 0.0, -probs)
        return value * failure.log1p() + probs.log()

    def entropy(self) -> Tensor:
        logits = self.logits
        return F.binary_cross_entropy_with_logits(logits, self.probs, reduction="none") / self.probs


class Binomial(_Trials):
    """The number of successes of total_count trials."""

    arg_constraints = {  # noqa: RUF012
        "total_count": constraints.nonnegative_integer,
        **Odds.arg_constraints,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take_trials(total_count, probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """From 0 to total_count."""
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs, doc="total_count * probs.")
    mode = property(
        lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count),
        doc="The most probable number.",
    )
    variance = property(
        lambda self: self.total_count * self.probs * (1 - self.probs),
        doc="total_count * probs * (1 - probs).",
    )

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return _C.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self.total_count
        ways = _C.lgamma(n + 1) - _C.lgamma(value + 1) - _C.lgamma(n - value + 1)
        return ways + value * self.logits - n * F.softplus(self.logits)

    def entropy(self) -> Tensor:
        total = int(self.total_count.max())
        if not (self.total_count == total).all():
            raise NotImplementedError(
                f"Binomial.entropy: expected one total_count for all, got {self.total_count}"
            )
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError(
                f"Binomial.enumerate_support: expected one total_count, got {self.total_count}"
            )
        return self._all_values(_C.arange(1 + total, dtype=self._param.dtype), expand)


class NegativeBinomial(_Trials):
    """The number of successes before total_count failures; total_count may be a fraction."""

    arg_constraints = {  # noqa: RUF012
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take_trials(total_count, probs, logits, validate_args)

    mean = property(lambda self: self.total_count * self.logits.exp(), doc="count * odds.")
    mode = property(
        lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0),
        doc="The most probable number.",
    )
    variance = property(
        lambda self: self.mean / _C.sigmoid(-self.logits), doc="mean / (1 - probs)."
    )

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            rates = Gamma(self.total_count, (-self.logits).exp(), validate_args=False)
            return _C.poisson(rates.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n, (success, failure) = self.total_count, self._log_chances
        ways = _C.lgamma(n + value) - _C.lgamma(1.0 + value) - _C.lgamma(n)
        ways = _C.where(n + value == 0.0, 0.0, ways)  # no trial: one way
        return n * failure + value * success + ways


class Multinomial(Distribution):
    """How often each category is drawn in total_count draws.

    total_count: one number for the whole batch.
    """

    arg_constraints = Categorical.arg_constraints
    total_count: int

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError(
                f"Multinomial: expected an int as total_count, got {type(total_count).__name__}"
            )
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts that add up to total_count."""
        return constraints.multinomial(self.total_count)

    probs = property(lambda self: self._categorical.probs, doc="Probabilities of the categories.")
    logits = property(lambda self: self._categorical.logits, doc="Their logarithms.")
    param_shape = property(lambda self: self._categorical.param_shape, doc="Of the parameter.")
    mean = property(lambda self: self.probs * self.total_count, doc="total_count * probs.")
    variance = property(
        lambda self: self.total_count * self.probs * (1 - self.probs),
        doc="total_count * probs * (1 - probs).",
    )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Multinomial:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *Size(sample_shape)))
        numbers = drawn.movedim(0, -1)
        counts = self.probs.new_zeros(self._extended_shape(sample_shape))
        return counts.scatter_add(-1, numbers, _C.ones_like(numbers, dtype=counts.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        logits = _C.where((value == 0) & (logits == -math.inf), 0.0, logits)
        ways = _C.lgamma(value.sum(-1) + 1) - _C.lgamma(value + 1).sum(-1)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        """A sum over the numbers that each category may be drawn, which are binomial."""
        n = _C.tensor(self.total_count)
        binomial = Binomial(total_count=self.total_count, probs=self.probs)
        numbers = binomial.enumerate_support(expand=False)[1:]
        weights = binomial.log_prob(numbers).exp()
        repeated = (weights * _C.lgamma(numbers + 1)).sum((0, -1))
        return n * self._categorical.entropy() - _C.lgamma(n + 1) + repeated


class ContinuousBernoulli(Odds, ExponentialFamily):
    """Numbers between 0 and 1 whose density is proportional to probs**x * (1 - probs)**(1 - x)
    (Loaiza-Ganem and Cunningham, 2019). Within lims around 1/2 Taylor series replace formulas."""

    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        (given,) = broadcast_all(self._one_of(probs, logits))
        checked = self._validate_args if validate_args is None else validate_args
        if logits is None:
            if checked and not whole(constraints.unit_interval.check(given)).all():
                raise ValueError(f"ContinuousBernoulli: expected probs within 0 and 1, got {given}")
            given = clamp_probs(given)
        setattr(self, "probs" if logits is None else "logits", given)
        self._lims = lims
        super().__init__(given.shape, validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities, kept off 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, True))

    def _off_center(self) -> tuple[Tensor, Tensor]:
        """Where formulas hold, and probabilities that are outside of lims everywhere."""
        low, high = self._lims
        outside = (self.probs <= low) | (self.probs > high)
        return outside, _C.where(outside, self.probs, low)

    def _log_constant(self) -> Tensor:
        """log(2 * atanh(1 - 2 * probs) / (1 - 2 * probs))."""
        outside, probs = self._off_center()
        ratio = ((-probs).log1p() - probs.log()) / (1 - 2 * probs)
        x = (self.probs - 0.5) ** 2
        return _C.where(outside, ratio.log(), math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        outside, probs = self._off_center()
        exact = probs / (2 * probs - 1) + 1 / ((-probs).log1p() - probs.log())
        x = self.probs - 0.5
        return _C.where(outside, exact, 0.5 + (1 / 3 + 16 / 45 * x**2) * x)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        outside, probs = self._off_center()
        odds = (-probs).log1p() - probs.log()
        exact = probs * (probs - 1) / (1 - 2 * probs) ** 2 + 1 / odds**2
        x = (self.probs - 0.5) ** 2
        return _C.where(outside, exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(_C.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        entropy = F.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._log_constant() - entropy

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        outside, probs = self._off_center()
        power = probs**value * (1 - probs) ** (1 - value)
        exact = (power + probs - 1) / (2 * probs - 1)
        result = _C.where(outside, exact, value)
        return _C.where(value <= 0, 0.0, _C.where(value >= 1, 1.0, result))

    def icdf(self, value: Tensor) -> Tensor:
        outside, probs = self._off_center()
        base = (-probs).log1p()
        exact = ((value * (2 * probs - 1) - probs).log1p() - base) / (probs.log() - base)
        return _C.where(outside, exact, value)

    def entropy(self) -> Tensor:
        none, one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (none - one) - self._log_constant() - none

    _natural_params = property(lambda self: (self.logits,), doc="The logits.")

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        near = (x > self._lims[0] - 0.5) & (x <= self._lims[1] - 0.5)
        away = _C.where(near, 1.0, x)
        exact = _C.expm1(away).abs().log() - away.abs().log()
        return _C.where(near, 0.5 * x + x**2 / 24 - x**4 / 2880, exact)
