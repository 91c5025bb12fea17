"""RAdam: Adam that waits until its running variance can be trusted."""

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


class RAdam(Optimizer):
    """Adam with the rectified step of Liu et al. (2019).

    While the length rho_t of the simple moving average that equals the running variance is at most
    5, the step is lr * m, afterwards it is divided by the root as Adam's and multiplied by
    sqrt((rho_t - 4)(rho_t - 2) rho / ((rho - 4)(rho - 2) rho_t)). decoupled_weight_decay: shrinks
    the parameter. differentiable: gradients flow through the steps. `foreach` and `capturable` have
    no effect. Raises ValueError for a negative lr, eps or weight_decay, and for betas outside [0,
    1).

    >>> p = weft.ones(1, requires_grad=True)
    >>> p.grad = weft.full((1,), 2.0)
    >>> weft.optim.RAdam([p], lr=0.1).step()
    >>> p
    tensor([0.8000], requires_grad=True)
    """

    _last_options = "foreach capturable decoupled_weight_decay differentiable"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options_of(locals(), "lr", "eps", "weight_decay"))

    def _update(self, group: dict[str, Any]) -> None:
        lr, (beta1, beta2) = rate_of(group), group["betas"]
        for param, grad in gradients(group, decoupled=group["decoupled_weight_decay"]):
            state = self._begun(param, "exp_avg", "exp_avg_sq")
            step = count_step(state).item()
            mean = state["exp_avg"].lerp_(grad, 1 - beta1)
            square = update_square_avg(state["exp_avg_sq"], beta2, grad)
            rate = lr / (1 - beta1**step)
            longest = 2 / (1 - beta2) - 1
            length = longest - 2 * step * beta2**step / (1 - beta2**step)
            if length <= 5:
                descend(param, rate, mean)
                continue
            top = (length - 4) * (length - 2) * longest
            rectified = (top / ((longest - 4) * (longest - 2) * length)) ** 0.5
            scale = rectified * (1 - beta2**step) ** 0.5
            descend(param, rate * scale, mean, root_plus_eps(square, group["eps"]))
