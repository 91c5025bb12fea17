"""ASGD: stochastic gradient descent that keeps the mean of where it was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft import _C
from weft.optim._steps import count_step, descend, gradients
from weft.optim.optimizer import Optimizer, options_of


class ASGD(Optimizer):
    """p = p * (1 - lambd * eta) - eta * g, with the mean of p in state["ax"] (Polyak, 1992).

    eta = lr / (1 + lambd * lr * t)**alpha; the mean is taken from step t0 on. differentiable:
    gradients flow through the steps. `foreach` and `capturable` have no effect. Raises ValueError
    for a negative lr or weight_decay.

    >>> p = weft.ones(1, requires_grad=True)
    >>> p.grad = weft.ones(1)
    >>> weft.optim.ASGD([p], lr=0.5, lambd=0.0).step()
    >>> p
    tensor([0.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, options_of(locals(), "lr", "weight_decay"))

    def _update(self, group: dict[str, Any]) -> None:
        lr, lambd = float(group["lr"]), group["lambd"]
        for param, grad in gradients(group):
            state = self.state[param]
            if not state:
                state["step"] = _C.tensor(0.0)
                state["eta"] = _C.tensor(lr)
                state["mu"] = _C.tensor(1.0)
                state["ax"] = _C.zeros_like(param)
            step, eta = count_step(state).item(), state["eta"].item()
            descend(param.mul_(1 - lambd * eta), eta, grad)
            mu = state["mu"].item()
            if mu == 1:
                state["ax"].copy_(param)
            else:
                state["ax"].add_(param.sub(state["ax"]).mul_(mu))
            state["eta"].fill_(lr / (1 + lambd * lr * step) ** group["alpha"])
            state["mu"].fill_(1 / max(1, step - group["t0"]))
