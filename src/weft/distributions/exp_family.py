"""Families whose density is exp(<natural parameters, statistics> - log normaliser + carrier)."""

from __future__ import annotations

from typing import Any

from weft._C import Tensor
from weft.autograd._run import grad
from weft.autograd.grad_mode import enable_grad
from weft.distributions.distribution import Distribution


class ExponentialFamily(Distribution):
    """A distribution with `_natural_params`, a tuple of tensors, and `_log_normalizer` of them.

    The gradient of the log normaliser is the mean of the statistics, so that entropy and divergence
    within a family are Bregman divergences of it (Nielsen and Nock, 2010).
    """

    @property
    def _mean_carrier_measure(self) -> Any:
        self._lacks("_mean_carrier_measure")

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        self._lacks("_natural_params")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        self._lacks("_log_normalizer")

    def _differentiable_params(self) -> tuple[Tensor, ...]:
        """The natural parameters; those without a history start one."""
        params = self._natural_params
        return tuple(p if p.requires_grad else p.detach().requires_grad_() for p in params)

    def _normalizer_and_means(self, params: tuple[Tensor, ...]) -> tuple[Tensor, Any]:
        """The log normaliser at natural parameters that require a gradient, and its gradients."""
        with enable_grad():
            normalizer = self._log_normalizer(*params)
        return normalizer, grad(normalizer.sum(), params, create_graph=True)

    def entropy(self) -> Tensor:
        """The log normaliser less <natural parameters, mean of the statistics>."""
        carrier = self._mean_carrier_measure
        params = self._differentiable_params()
        normalizer, means = self._normalizer_and_means(params)
        total = normalizer - carrier
        for param, mean in zip(params, means):
            total = total - (param * mean).reshape(*self._batch_shape, -1).sum(-1)
        return total
