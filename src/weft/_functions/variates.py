"""Draws from the gamma and Dirichlet distributions, with gradients."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.incomplete_gamma import beta_derivative, gamma_derivative
from weft.autograd import Function
from weft.autograd.function import once_differentiable


class _StandardGamma(Function):
    @staticmethod
    def forward(ctx: Any, concentration: Tensor, generator: Any) -> Tensor:
        result = _C._aten._standard_gamma(concentration, generator)
        ctx.save_for_backward(result, concentration)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad * gamma_derivative(*ctx.saved_tensors), None


def _standard_gamma(concentration: Tensor, generator: Any = None) -> Tensor:
    """Samples of gamma distributions of rate 1, one for each concentration, with gradients."""
    return _StandardGamma.apply(concentration, generator)


class _Dirichlet(Function):
    @staticmethod
    def forward(ctx: Any, concentration: Tensor, generator: Any) -> Tensor:
        result = _C._aten._sample_dirichlet(concentration, generator)
        ctx.save_for_backward(result, concentration)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        x, concentration = ctx.saved_tensors
        total = concentration.sum(-1, keepdim=True).expand_as(concentration)
        along = grad - (x * grad).sum(-1, keepdim=True)  # within the simplex
        return beta_derivative(x, concentration, total) * along, None


def _sample_dirichlet(concentration: Tensor, generator: Any = None) -> Tensor:
    """Samples of Dirichlet distributions, whose last dimension is one value, with gradients."""
    return _Dirichlet.apply(concentration, generator)
