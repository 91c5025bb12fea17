"""Several values of a distribution as one value."""

from __future__ import annotations

from typing import Any

from weft._C import Tensor
from weft.distributions import constraints
from weft.distributions.distribution import Distribution, Size
from weft.distributions.utils import _sum_rightmost


class Independent(Distribution):
    """The last batch dimensions of a distribution as dimensions of the event.

    >>> normal = weft.distributions.Normal(weft.zeros(2), weft.ones(2))
    >>> weft.distributions.Independent(normal, 1).log_prob(weft.zeros(2))
    tensor(-1.8379)
    """

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError(
                f"Independent: expected at most {len(batch)} dimensions of the batch, "
                f"got {reinterpreted_batch_ndims}"
            )
        split = len(batch) - reinterpreted_batch_ndims
        shape = batch + base_distribution.event_shape
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:split], shape[split:], validate_args)

    mean = property(lambda self: self.base_dist.mean, doc="That of the base.")
    mode = property(lambda self: self.base_dist.mode, doc="That of the base.")
    variance = property(lambda self: self.base_dist.variance, doc="That of the base.")
    has_rsample = property(lambda self: self.base_dist.has_rsample, doc="As the base.")
    has_enumerate_support = property(
        lambda self: self.base_dist.has_enumerate_support and not self.reinterpreted_batch_ndims,
        doc="As the base, where no dimension of the batch was taken.",
    )

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        """The values."""
        base = self.base_dist.support
        count = self.reinterpreted_batch_ndims
        return constraints.independent(base, count) if count else base

    def expand(self, batch_shape: Any, _instance: Any = None) -> Independent:
        new, batch_shape = self._copied(_instance), Size(batch_shape)
        inner = self.event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand(batch_shape + inner)
        new._batch_shape = batch_shape
        return new

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return self.summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self.summed(self.base_dist.entropy())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError(
                "Independent.enumerate_support: expected no dimensions of the batch as event, "
                f"got {self.reinterpreted_batch_ndims}"
            )
        return self.base_dist.enumerate_support(expand)

    def summed(self, value: Tensor) -> Tensor:
        """Figures of the base, added over the dimensions of one event."""
        return _sum_rightmost(value, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
