"""Adam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.optim._steps import (
    count_step,
    descend,
    gradients,
    rate_of,
    root_plus_eps,
    update_square_avg,
)
from weft.optim.optimizer import Optimizer, options_of


class Adam(Optimizer):
    """Steps of m / (sqrt(v) + eps): running means of the gradient (m) and of its square (v).

    betas: how slowly m and v follow. amsgrad: uses the largest v so far. decoupled_weight_decay:
    shrinks the parameter instead of adding to the gradient (AdamW). differentiable:
    gradients flow through the steps, to lr, betas and weight_decay too. `foreach`, `capturable` and
    `fused` have no effect.

    Raises ValueError for a negative lr, eps or weight_decay, and for betas outside [0, 1).

    >>> p = weft.ones(1, requires_grad=True)
    >>> p.grad = weft.full((1,), 2.0)
    >>> weft.optim.Adam([p], lr=0.1).step()
    >>> p
    tensor([0.9000], requires_grad=True)
    """

    _last_options = "foreach capturable differentiable fused decoupled_weight_decay"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ValueError(f"betas: expected two numbers or two tensors, got {betas}")
        super().__init__(params, options_of(locals(), "lr", "eps", "weight_decay"))

    def _update(self, group: dict[str, Any]) -> None:
        lr, eps, amsgrad = rate_of(group), group["eps"], group["amsgrad"]
        beta1, beta2 = group["betas"]
        names = ["exp_avg", "exp_avg_sq", *["max_exp_avg_sq"] * amsgrad]
        for param, grad in gradients(group, decoupled=group["decoupled_weight_decay"]):
            state = self.state[param] or self._begun(param, *names)
            step = count_step(state).item()
            mean, square = state["exp_avg"], state["exp_avg_sq"]
            mean.lerp_(grad, 1 - beta1)
            update_square_avg(square, beta2, grad)
            if amsgrad:
                largest = state["max_exp_avg_sq"]
                square = state["max_exp_avg_sq"] = _C.maximum(largest, square)
            denominator = root_plus_eps(square, eps, (1 - beta2**step) ** 0.5)
            descend(param, lr / (1 - beta1**step), mean, denominator)
