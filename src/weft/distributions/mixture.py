"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.distributions import constraints
from weft.distributions.discrete import Categorical
from weft.distributions.distribution import Distribution, Size


class MixtureSameFamily(Distribution):
    """A component, drawn by a Categorical, out of the last batch dimension of a distribution.

    >>> d = weft.distributions
    >>> normals = d.Normal(weft.tensor([-1.0, 1.0]), weft.ones(2))
    >>> d.MixtureSameFamily(d.Categorical(weft.ones(2)), normals).variance
    tensor(2.)
    """

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            got = type(mixture_distribution).__name__
            raise ValueError(f"MixtureSameFamily: expected a Categorical, got {got}")
        if not isinstance(component_distribution, Distribution):
            got = type(component_distribution).__name__
            raise ValueError(f"MixtureSameFamily: expected a Distribution, got {got}")
        mine, batch = mixture_distribution.batch_shape, component_distribution.batch_shape
        pairs = zip(reversed(mine), reversed(batch[:-1]))
        self._num_component = mixture_distribution.logits.shape[-1]
        whole = (*mine, self._num_component)
        if batch[-1:] != whole[-1:] or any(a != b and 1 not in (a, b) for a, b in pairs):
            raise ValueError(
                f"MixtureSameFamily: expected components of a batch {whole}, got {tuple(batch)}"
            )
        event = component_distribution.event_shape
        super().__init__(batch[:-1], event, validate_args=validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution, doc="Of components.")
    component_distribution = property(lambda self: self._component_distribution, doc="All of them.")

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        """That of the components."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def expand(self, batch_shape: Any, _instance: Any = None) -> MixtureSameFamily:
        new, batch_shape = self._copied(_instance), Size(batch_shape)
        inner = (*batch_shape, self._num_component)
        new._component_distribution = self._component_distribution.expand(inner)
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._batch_shape = batch_shape
        return new

    def _mean_of(self, values: Tensor) -> Tensor:
        """The mean over the components of values of each."""
        dims = len(self.event_shape)
        probs = self._mixture_distribution.probs
        return (probs.reshape(*probs.shape, *(1,) * dims) * values).sum(-1 - dims)

    def _pad(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - len(self.event_shape))

    mean = property(lambda self: self._mean_of(self._component_distribution.mean), doc="The mean.")

    @property
    def variance(self) -> Tensor:
        """The mean of the variances and the variance of the means."""
        parts = self._component_distribution
        between = (parts.mean - self._pad(self.mean)).pow(2)
        return self._mean_of(parts.variance) + self._mean_of(between)

    def cdf(self, x: Tensor) -> Tensor:
        return self._mean_of(self._component_distribution.cdf(self._pad(x)))

    def log_prob(self, x: Tensor) -> Tensor:
        self._check(x)
        inner = self._component_distribution.log_prob(self._pad(x))
        weights = self._mixture_distribution.logits.log_softmax(-1)
        return _C.logsumexp(inner + weights, dim=-1)

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        dim = -1 - len(self.event_shape)
        chosen = self._mixture_distribution.sample(sample_shape)
        values = self._component_distribution.sample(sample_shape)
        index = chosen.reshape(*chosen.shape, 1, *(1,) * len(self.event_shape))
        index = index.expand(*values.shape[:dim], 1, *self.event_shape)
        return values.gather(values.dim() + dim, index).squeeze(dim)

    def __repr__(self) -> str:
        parts = f"{self._mixture_distribution},\n  {self._component_distribution}"
        return f"MixtureSameFamily(\n  {parts})"
