"""The gamma distribution and those made of it."""

from __future__ import annotations

import math
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._tensor.limits import finfo
from weft.distributions import constraints
from weft.distributions.distribution import Distribution
from weft.distributions.exp_family import ExponentialFamily
from weft.distributions.utils import broadcast_all
from weft.nn import functional as F


class Gamma(ExponentialFamily):
    """The time until `concentration` events of a rate.

    >>> weft.distributions.Gamma(2.0, 4.0).mean
    tensor(0.5000)
    """

    arg_constraints = {  # noqa: RUF012
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.nonnegative
    _mean_carrier_measure = 0
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, concentration=concentration, rate=rate)

    mean = property(lambda self: self.concentration / self.rate, doc="concentration / rate.")
    mode = property(
        lambda self: ((self.concentration - 1) / self.rate).clamp(min=0),
        doc="(concentration - 1) / rate, at least 0.",
    )
    variance = property(
        lambda self: self.concentration / self.rate.pow(2), doc="concentration / rate**2."
    )

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = _C._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        return drawn.clamp(min=finfo(drawn.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        value = _C.as_tensor(value, dtype=self.rate.dtype)
        self._check(value)
        a, rate = self.concentration, self.rate
        return a.xlogy(rate) + (a - 1).xlogy(value) - rate * value - _C.lgamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return _C.igamma(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + _C.lgamma(a) + (1 - a) * _C.digamma(a)

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return _C.lgamma(x + 1) - (x + 1) * (-y).log()


class Chi2(Gamma):
    """The sum of the squares of df normal numbers."""

    arg_constraints = {"df": constraints.positive}  # noqa: RUF012

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, df=df)

    df: Tensor
    concentration = property(lambda self: 0.5 * self.df, doc="df / 2.")
    rate = property(lambda self: _C.full_like(self.df, 0.5), doc="1 / 2.")


class Dirichlet(ExponentialFamily):
    """The distribution of vectors of probabilities; the last dimension is one value."""

    arg_constraints = {  # noqa: RUF012
        "concentration": constraints.independent(constraints.positive, 1)
    }
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("Dirichlet: expected at least 1 dimension, got 0")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return _C._sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a = self.concentration
        normalizer = _C.lgamma(a.sum(-1)) - _C.lgamma(a).sum(-1)
        return _C.xlogy(a - 1, value).sum(-1) + normalizer

    @property
    def mean(self) -> Tensor:
        """The share of each concentration."""
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        """The corner of the largest concentration where none is above 1."""
        a = self.concentration
        above = (a - 1).clamp(min=0.0)
        corner = F.one_hot(a.argmax(-1), a.shape[-1]).to(a)
        flat = (a < 1).all(-1, keepdim=True)
        return _C.where(flat, corner, above / above.sum(-1, True))

    @property
    def variance(self) -> Tensor:
        """Of each component."""
        a, total = self.concentration, self.concentration.sum(-1, True)
        return a * (total - a) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        a, total, count = self.concentration, self.concentration.sum(-1), self.event_shape[-1]
        normalizer = _C.lgamma(a).sum(-1) - _C.lgamma(total)
        spread = (a - 1.0) * _C.digamma(a)
        return normalizer - (count - total) * _C.digamma(total) - spread.sum(-1)

    _natural_params = property(lambda self: (self.concentration,), doc="The concentration.")

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()


class Beta(ExponentialFamily):
    """A probability: concentration1 pulls it to 1, concentration0 to 0.

    >>> weft.distributions.Beta(1.0, 3.0).mean
    tensor(0.2500)
    """

    arg_constraints = {  # noqa: RUF012
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        pair = broadcast_all(concentration1, concentration0)
        self._dirichlet = Dirichlet(_C.stack(pair, -1), validate_args=validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    concentration1 = property(lambda self: self._dirichlet.concentration[..., 0], doc="Towards 1.")
    concentration0 = property(lambda self: self._dirichlet.concentration[..., 1], doc="Towards 0.")
    mean = property(lambda self: self._dirichlet.mean[..., 0], doc="The share of the first.")
    mode = property(lambda self: self._dirichlet.mode[..., 0], doc="The most probable value.")
    variance = property(lambda self: self._dirichlet.variance[..., 0], doc="The variance.")

    def expand(self, batch_shape: Any, _instance: Any = None) -> Beta:
        new = super().expand(batch_shape, _instance)
        new._dirichlet = self._dirichlet.expand(batch_shape)
        return new

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._dirichlet.log_prob(_C.stack((value, 1 - value), -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma() + y.lgamma() - (x + y).lgamma()


class StudentT(Distribution):
    """A normal number over the root of a Chi2 one that is divided by df, around loc."""

    arg_constraints = {  # noqa: RUF012
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self._take(validate_args, df=df, loc=loc, scale=scale)

    mode = property(lambda self: self.loc, doc="loc.")
    mean = property(
        lambda self: _C.where(self.df > 1, self.loc, math.nan), doc="loc, nan where df <= 1."
    )

    @property
    def variance(self) -> Tensor:
        """inf where df is at most 2, nan where it is at most 1."""
        df = self.df
        finite = self.scale.pow(2) * df / _C.where(df > 2, df - 2, 1.0)
        return _C.where(df > 2, finite, _C.where(df > 1, math.inf, math.nan))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        normal = _C.randn(shape, dtype=self.df.dtype)
        chi2 = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * normal * _C.rsqrt(chi2 / self.df)

    def _log_scale(self) -> Tensor:
        """Of the standard density's constant."""
        df = self.df
        halves = _C.lgamma(0.5 * df) - _C.lgamma(0.5 * (df + 1))
        return self.scale.log() + 0.5 * df.log() + 0.5 * math.log(math.pi) + halves

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        squared = ((value - self.loc) / self.scale) ** 2
        return -0.5 * (self.df + 1) * _C.log1p(squared / self.df) - self._log_scale()

    def entropy(self) -> Tensor:
        df = self.df
        spread = _C.digamma(0.5 * (df + 1)) - _C.digamma(0.5 * df)
        return self._log_scale() + 0.5 * (df + 1) * spread


class FisherSnedecor(Distribution):
    """The ratio of two Chi2 numbers, each divided by its df."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}  # noqa: RUF012
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, df1=df1, df2=df2)

    @property
    def mean(self) -> Tensor:
        """nan where df2 is at most 2."""
        df2 = _C.where(self.df2 > 2, self.df2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        """nan where df1 is at most 2."""
        inner = _C.where(self.df1 > 2, (self.df1 - 2) / self.df1, math.nan)
        return inner * self.df2 / (self.df2 + 2)

    @property
    def variance(self) -> Tensor:
        """nan where df2 is at most 4."""
        df1, df2 = self.df1, _C.where(self.df2 > 4, self.df2, math.nan)
        return 2 * df2.pow(2) * (df1 + df2 - 2) / (df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        over, under = (
            Gamma(0.5 * df, df, validate_args=False).rsample(sample_shape)
            for df in (self.df1, self.df2)
        )
        tiny = finfo(under.dtype).tiny
        return (over / under.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a, b = 0.5 * self.df1, 0.5 * self.df2
        ratio = self.df1 / self.df2
        constant = (a + b).lgamma() - a.lgamma() - b.lgamma() + a * ratio.log()
        return constant + (a - 1) * value.log() - (a + b) * _C.log1p(ratio * value)
