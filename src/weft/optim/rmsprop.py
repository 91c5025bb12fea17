"""RMSprop: steps divided by a running root of the squared gradient."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.optim._steps import (
    count_step,
    descend,
    gradients,
    rate_of,
    root_plus_eps,
    update_square_avg,
)
from weft.optim.optimizer import Optimizer, options_of


class RMSprop(Optimizer):
    """p -= lr * g / (sqrt(v) + eps), with v a running mean of g**2 (Tieleman and Hinton, 2012).

    alpha: how slowly v follows. centered: takes the running mean of g, squared, from v. momentum:
    sums up the steps. differentiable: gradients flow through the steps. `foreach` and `capturable`
    have no effect. Raises ValueError for a negative lr, eps, momentum, weight_decay or alpha.

    >>> p = weft.ones(1, requires_grad=True)
    >>> p.grad = weft.ones(1)
    >>> weft.optim.RMSprop([p], lr=0.1, alpha=0.75).step()
    >>> p
    tensor([0.8000], requires_grad=True)
    """

    _last_options = "alpha eps centered weight_decay capturable foreach maximize differentiable"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(
            params, options_of(locals(), "lr", "eps", "momentum", "weight_decay", "alpha")
        )

    def _update(self, group: dict[str, Any]) -> None:
        lr, alpha, momentum = rate_of(group), group["alpha"], group["momentum"]
        names = ["square_avg", *["momentum_buffer"] * (momentum > 0)]
        names += ["grad_avg"] * bool(group["centered"])
        for param, grad in gradients(group):
            state = self._begun(param, *names)
            count_step(state)
            square = update_square_avg(state["square_avg"], alpha, grad)
            if group["centered"]:
                mean = state["grad_avg"].lerp_(grad, 1 - alpha)
                square = square.addcmul(mean, mean, value=-1)
            root = root_plus_eps(square, group["eps"])
            if momentum > 0:
                step = state["momentum_buffer"].mul_(momentum).addcdiv_(grad, root)
                descend(param, lr, step)
            else:
                descend(param, lr, grad, root)
