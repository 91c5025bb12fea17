"""Adadelta: steps scaled by the ratio of two running means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.optim._steps import count_step, descend, gradients, rate_of, update_square_avg
from weft.optim.optimizer import Optimizer, options_of


class Adadelta(Optimizer):
    """p -= lr * d, d = g * sqrt(a + eps) / sqrt(v + eps) (Zeiler, 2012).

    v is a running mean of g**2, a one of d**2, both following with 1 - rho. differentiable:
    gradients flow through the steps. `foreach` and `capturable` have no effect. Raises ValueError
    for a negative lr, eps or weight_decay, and for rho outside [0, 1].

    >>> p = weft.ones(1, requires_grad=True)
    >>> p.grad = weft.ones(1)
    >>> weft.optim.Adadelta([p], lr=1.0, eps=1.0).step()
    >>> p
    tensor([0.0465], requires_grad=True)
    """

    _last_options = "capturable foreach differentiable"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, options_of(locals(), "lr", "eps", "weight_decay"))

    def _update(self, group: dict[str, Any]) -> None:
        lr, rho, eps = rate_of(group), group["rho"], group["eps"]
        for param, grad in gradients(group):
            state = self._begun(param, "square_avg", "acc_delta")
            count_step(state)
            square, moved = state["square_avg"], state["acc_delta"]
            update_square_avg(square, rho, grad)
            root = square.add(eps).sqrt_()
            delta = moved.add(eps).sqrt_() / root * grad
            update_square_avg(moved, rho, delta)
            descend(param, lr, delta)
