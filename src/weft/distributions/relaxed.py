"""Continuous relaxations of discrete distributions, with gradients for the parameters."""

from __future__ import annotations

from typing import Any, ClassVar

from weft import _C
from weft._C import Tensor
from weft.distributions import constraints
from weft.distributions.discrete import Categorical, Odds
from weft.distributions.distribution import Distribution
from weft.distributions.transformed import TransformedDistribution
from weft.distributions.transforms import ExpTransform, SigmoidTransform, Transform
from weft.distributions.utils import broadcast_all, clamp_probs
from weft.nn import functional as F


class LogitRelaxedBernoulli(Odds):
    """The logits of RelaxedBernoulli, whose density has no singularities."""

    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        (given,) = broadcast_all(self._one_of(probs, logits))
        setattr(self, "probs" if logits is None else "logits", given)
        super().__init__(given.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(_C.rand(shape, dtype=probs.dtype))
        noise = u.log() - (-u).log1p()
        return (noise + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value * self.temperature
        temperature = _C.as_tensor(self.temperature, dtype=logits.dtype)
        return temperature.log() + difference - 2 * difference.exp().log1p()


class _Relaxed(TransformedDistribution):
    """A relaxation of values that are near 0 or 1, and what it has of their distribution."""

    _base: ClassVar[Any]
    _step: ClassVar[type[Transform]]
    has_rsample = True
    temperature = property(lambda self: self.base_dist.temperature, doc="0 is discrete.")
    logits = property(lambda self: self.base_dist.logits, doc="Logits.")
    probs = property(lambda self: self.base_dist.probs, doc="Probabilities.")

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = self._base(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, self._step(), validate_args=validate_args)


class RelaxedBernoulli(_Relaxed):
    """Bernoulli with values between 0 and 1, which it reaches as the temperature falls to 0
    (Maddison, Mnih, Teh, 2017)."""

    arg_constraints = Odds.arg_constraints
    support = constraints.unit_interval
    _base, _step = LogitRelaxedBernoulli, SigmoidTransform


class ExpRelaxedCategorical(Distribution):
    """The logarithms of RelaxedOneHotCategorical."""

    arg_constraints = Categorical.arg_constraints
    support = constraints.real_vector  # as PyTorch; the values are at most 0
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    probs = property(lambda self: self._categorical.probs, doc="Probabilities.")
    logits = property(lambda self: self._categorical.logits, doc="Logits.")
    param_shape = property(lambda self: self._categorical.param_shape, doc="Of the parameter.")

    def expand(self, batch_shape: Any, _instance: Any = None) -> ExpRelaxedCategorical:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(_C.rand(shape, dtype=self.logits.dtype))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        count = self.event_shape[-1]
        temperature = _C.as_tensor(self.temperature, dtype=logits.dtype)
        scale = (count - 1) * temperature.log() + _C.lgamma(logits.new_tensor(float(count)))
        return F.log_softmax(logits - value * temperature, dim=-1).sum(-1) + scale


class RelaxedOneHotCategorical(_Relaxed):
    """OneHotCategorical with values within the simplex, whose corners it reaches as the
    temperature falls to 0 (Jang, Gu, Poole, 2017: Gumbel-softmax)."""

    arg_constraints = Categorical.arg_constraints
    support = constraints.simplex
    _base, _step = ExpRelaxedCategorical, ExpTransform
