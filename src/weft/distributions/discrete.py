"""Distributions over whole numbers."""

from __future__ import annotations

import math
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.shapes import broadcast_tensors
from weft._tensor.limits import finfo
from weft.autograd.grad_mode import no_grad
from weft.distributions import constraints
from weft.distributions.distribution import Distribution, Size
from weft.distributions.exp_family import ExponentialFamily
from weft.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits
from weft.nn import functional as F


class Odds(Distribution):
    """A distribution by probabilities or logits; the other is computed when asked for."""

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    _is_binary = True

    @lazy_property
    def logits(self) -> Tensor:
        """Logarithms of the odds, or of the probabilities."""
        return probs_to_logits(self.probs, self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits, self._is_binary)

    @property
    def _param(self) -> Tensor:
        """The parameter that was given."""
        return vars(self)["probs" if "probs" in vars(self) else "logits"]

    param_shape = property(lambda self: self._param.size(), doc="The shape of the parameter.")

    def _one_of(self, probs: Any, logits: Any) -> Any:
        if (probs is None) == (logits is None):
            got = "both" if probs is not None else "neither"
            raise ValueError(f"{type(self).__name__}: expected probs or logits, got {got}")
        return logits if probs is None else probs


class Bernoulli(Odds, ExponentialFamily):
    """1 with a probability, otherwise 0.

    >>> weft.distributions.Bernoulli(0.25).variance
    tensor(0.1875)
    """

    support = constraints.boolean
    _mean_carrier_measure = 0
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (given,) = broadcast_all(self._one_of(probs, logits))
        setattr(self, "probs" if logits is None else "logits", given)
        super().__init__(given.shape, validate_args=validate_args)

    mean = property(lambda self: self.probs, doc="probs.")
    variance = property(lambda self: self.probs * (1 - self.probs), doc="probs * (1 - probs).")

    @property
    def mode(self) -> Tensor:
        """The more probable value; nan where both are."""
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = math.nan
        return mode

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return _C.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, target = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, target, reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._all_values(_C.arange(2, dtype=self._param.dtype), expand)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (_C.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return F.softplus(x)


class Categorical(Odds):
    """A number from 0 on, each with the probability that the last dimension has for it.

    probs need not add up to 1.

    >>> weft.distributions.Categorical(weft.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    has_enumerate_support = True
    _is_binary = False

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        given = self._one_of(probs, logits)
        if given.dim() < 1:
            raise ValueError(f"{type(self).__name__}: expected at least 1 dimension, got 0")
        if logits is None:
            self.probs = given / given.sum(-1, keepdim=True)
        else:
            self.logits = given - given.logsumexp(dim=-1, keepdim=True)
        self._set_shapes(given, validate_args)

    def _set_shapes(self, given: Tensor, validate_args: bool | None) -> None:
        Distribution.__init__(self, given.shape[:-1], validate_args=validate_args)

    @property
    def _num_events(self) -> int:
        return self.param_shape[-1]

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """The values."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        """nan: numbers of categories have no mean."""
        return _C.full(self._extended_shape(), math.nan, dtype=self.probs.dtype)

    variance = mean
    mode = property(lambda self: self.probs.argmax(dim=-1), doc="The most probable value.")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._numbers(sample_shape)

    def _numbers(self, sample_shape: Any) -> Tensor:
        shape = Size(sample_shape)
        rows = self.probs.detach().reshape(-1, self._num_events)
        drawn = _C.multinomial(rows, shape.numel(), True).T
        return drawn.reshape(shape + self._batch_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._log_prob_of(value.long())

    def _log_prob_of(self, numbers: Tensor) -> Tensor:
        index, logits = broadcast_tensors(numbers.unsqueeze(-1), self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._all_values(_C.arange(self._num_events), expand)


class OneHotCategorical(Categorical):
    """The same as vectors that are 1 at the number and 0 elsewhere."""

    support = constraints.one_hot
    mean = property(lambda self: self.probs, doc="probs.")
    variance = property(lambda self: self.probs * (1 - self.probs), doc="probs * (1 - probs).")

    def _set_shapes(self, given: Tensor, validate_args: bool | None) -> None:
        Distribution.__init__(self, given.shape[:-1], given.shape[-1:], validate_args)

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return F.one_hot(self.probs.argmax(-1), self._num_events).to(self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return F.one_hot(self._numbers(sample_shape), self._num_events).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._log_prob_of(value.argmax(-1))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._num_events
        values = _C.eye(n, dtype=self.probs.dtype).reshape(n, *(1,) * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same, whose samples pass their gradient on to the probabilities as if they were these
    (Bengio, Leonard, Courville, 2013)."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
