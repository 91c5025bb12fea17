"""NAdam: Adam with Nesterov's momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft import _C
from weft.optim._steps import (
    count_step,
    descend,
    gradients,
    rate_of,
    root_plus_eps,
    update_square_avg,
)
from weft.optim.optimizer import Optimizer, options_of


class NAdam(Optimizer):
    """Adam whose mean looks one step ahead (Dozat, 2016).

    With mu_t = beta1 * (1 - 0.96**(t * momentum_decay) / 2), the mean is that of mu_{t+1} * m / (1
    - mu_1...mu_{t+1}) + (1 - mu_t) * g / (1 - mu_1...mu_t). decoupled_weight_decay: shrinks the
    parameter instead of adding to the gradient. differentiable: gradients flow through the
    steps. `foreach` and `capturable` have no effect. Raises ValueError for a negative lr, eps,
    weight_decay or momentum_decay, and for betas outside [0, 1).

    >>> p = weft.ones(1, requires_grad=True)
    >>> p.grad = weft.full((1,), 2.0)
    >>> weft.optim.NAdam([p], lr=0.1).step()
    >>> p.item() < 1
    True
    """

    _last_options = "foreach capturable differentiable"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(
            params, options_of(locals(), "lr", "eps", "weight_decay", "momentum_decay")
        )

    def _update(self, group: dict[str, Any]) -> None:
        lr, (beta1, beta2) = rate_of(group), group["betas"]
        for param, grad in gradients(group, decoupled=group["decoupled_weight_decay"]):
            state = self._begun(param, "exp_avg", "exp_avg_sq")
            if "mu_product" not in state:
                state["mu_product"] = _C.tensor(1.0)
            step = count_step(state).item()
            decay = group["momentum_decay"]
            mu, next_mu = (beta1 * (1 - 0.5 * 0.96 ** (t * decay)) for t in (step, step + 1))
            product = state["mu_product"].mul_(mu)
            if not product.requires_grad:
                product = product.item()
            mean = state["exp_avg"].lerp_(grad, 1 - beta1)
            square = update_square_avg(state["exp_avg_sq"], beta2, grad)
            root = root_plus_eps(square.div(1 - beta2**step), group["eps"])
            descend(param, lr * (1 - mu) / (1 - product), grad, root)
            descend(param, lr * next_mu / (1 - product * next_mu), mean, root)
