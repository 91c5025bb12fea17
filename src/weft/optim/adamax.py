"""Adamax: Adam with the greatest gradient in place of the root of squares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft import _C
from weft.optim._steps import count_step, descend, gradients, rate_of
from weft.optim.optimizer import Optimizer, options_of


class Adamax(Optimizer):
    """p -= lr / (1 - beta1**t) * m / u, u = max(beta2 * u, abs(g) + eps) (Kingma and Ba, 2014).

    m is a running mean of g. differentiable: gradients flow through the steps. `foreach` and
    `capturable` have no effect. Raises ValueError for a negative lr, eps or weight_decay, and for
    betas outside [0, 1).

    >>> p = weft.ones(1, requires_grad=True)
    >>> p.grad = weft.full((1,), 2.0)
    >>> weft.optim.Adamax([p], lr=0.1).step()
    >>> p
    tensor([0.9000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, options_of(locals(), "lr", "eps", "weight_decay"))

    def _update(self, group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        for param, grad in gradients(group):
            state = self._begun(param, "exp_avg", "exp_inf")
            step = count_step(state).item()
            mean, largest = state["exp_avg"], state["exp_inf"]
            mean.lerp_(grad, 1 - beta1)
            latest = grad.abs().add_(group["eps"])
            largest = state["exp_inf"] = _C.maximum(largest.mul_(beta2), latest)
            descend(param, rate_of(group) / (1 - beta1**step), mean, largest)
