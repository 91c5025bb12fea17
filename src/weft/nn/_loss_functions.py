"""Losses beyond the common ones; `weft.nn.functional` shows them."""

from __future__ import annotations

from typing import Any

import weft
from weft import Tensor
from weft._aliases import numpy_names
from weft._decides import decides
from weft.autograd import Function
from weft.nn._reduction import legacy_get_string as _legacy


def _reduced(function: str, loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"{function}: expected reduction 'none', 'mean' or 'sum', got {reduction!r}")


def _weighted(function: str, loss: Tensor, input: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Losses by element times their weights; the mean is over the weights."""
    if weight.shape != input.shape:
        raise ValueError(
            f"{function}: expected weight of the input's shape {input.shape}, got {weight.shape}"
        )
    weighted = loss * weight
    if reduction == "mean":
        return weighted.sum() / weight.sum()
    return _reduced(function, weighted, reduction)


class _CrossEntropyOfChances(Function):
    """-(target log p + (1 - target) log(1 - p)), logarithms cut at -100, gradients kept finite."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, target: Tensor) -> Tensor:
        ctx.save_for_backward(input, target)
        no = input.neg().log1p().clamp_min(-100)
        return (target - 1) * no - target * input.log().clamp_min(-100)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None]:
        input, target = ctx.saved_tensors
        slope = (input - target) / ((1 - input) * input).clamp_min(1e-12)
        for_target = None
        if ctx.needs_input_grad[1]:
            for_target = grad * (input.neg().log1p().clamp_min(-100) - input.log().clamp_min(-100))
        return grad * slope, for_target


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross entropy of probabilities in [0, 1] against targets in [0, 1] of the same shape."""
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"binary_cross_entropy: expected a target of shape {input.shape}, got {target.shape}"
        )
    inside = (input.detach() >= 0).logical_and(input.detach() <= 1)
    if not inside.all():
        raise RuntimeError("binary_cross_entropy: expected input in [0, 1], got values outside")
    loss = _CrossEntropyOfChances.apply(input, target)
    return _reduced("binary_cross_entropy", loss if weight is None else loss * weight, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d^2 / (2 beta) where |d| < beta, otherwise |d| - beta / 2; d = input - target."""
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    if beta < 0:
        raise ValueError(f"smooth_l1_loss: expected beta >= 0, got {beta}")
    distance = (input - target).abs()
    if beta > 0:
        near = distance.clamp_max(beta)  # of an infinite one the square would have the slope NaN
        square = near * near * 0.5 / beta
        distance = weft.where(distance < beta, square, distance - 0.5 * beta)
    return _reduced("smooth_l1_loss", distance, reduction)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """d^2 / 2 where |d| <= delta, otherwise delta (|d| - delta / 2); d = input - target."""
    if delta <= 0:
        raise ValueError(f"huber_loss: expected delta > 0, got {delta}")
    distance = (input - target).abs()
    near = distance.clamp_max(delta)  # of an infinite one the square would have the slope NaN
    square, line = near * near * 0.5, (distance - 0.5 * delta) * delta
    loss = weft.where(distance <= delta, square, line)
    if weight is not None and weight.shape != input.shape:
        raise ValueError(
            f"huber_loss: expected weight of the input's shape {input.shape}, got {weight.shape}"
        )
    return _reduced("huber_loss", loss if weight is None else loss * weight, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target * (log(target) - input) for log-probabilities `input`; 'batchmean' divides by n."""
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
    if log_target:
        loss = target.exp() * (target - input)
    else:
        zero = target == 0
        logarithm = weft.where(zero, 1, target).log()
        loss = weft.where(zero, 0, target * logarithm) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.size(0) if input.dim() else loss
    return _reduced("kl_div", loss, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """(log var + (input - target)^2 / var) / 2; var at least eps."""
    if isinstance(var, float):
        var = input.detach().new_full(input.shape, var)
    if (var.detach() < 0).any():
        raise ValueError("gaussian_nll_loss: expected var >= 0, got negative values")
    if var.dim() == input.dim() - 1:
        var = var.unsqueeze(-1)
    var = var + (var.detach().clamp_min(eps) - var.detach())  # the floor passes gradients through
    loss = (var.log() + (input - target) ** 2 / var) * 0.5
    if full:
        loss = loss + 0.9189385332046727  # log(2 pi) / 2
    return _reduced("gaussian_nll_loss", loss, reduction)


@numpy_names
@decides
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`; norms count as at least eps."""
    if x1.shape != x2.shape:  # sizes of 1 along dim count as often as they are repeated
        shape = weft.broadcast_shapes(x1.shape, x2.shape)
        x1, x2 = x1.expand(shape), x2.expand(shape)
    first = x1 / x1.norm(2, dim, keepdim=True).clamp_min(eps)
    return (first * (x2 / x2.norm(2, dim, keepdim=True).clamp_min(eps))).sum(dim)


__all__ = [
    "binary_cross_entropy",
    "cosine_similarity",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "smooth_l1_loss",
]
