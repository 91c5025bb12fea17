"""Rprop: a step size for each number, by the sign of its gradient alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft import _C
from weft.optim._steps import count_step, gradients
from weft.optim.optimizer import Optimizer, options_of


class Rprop(Optimizer):
    """p -= sign(g) * s (Riedmiller and Braun, 1993), for whole batches.

    The step size s grows by etas[1] while the gradient keeps its sign and shrinks by etas[0] where
    it turns (there nothing moves once), within step_sizes. It starts at lr. differentiable:
    gradients flow through the steps. `foreach` and `capturable` have no effect. Raises ValueError
    for a negative lr, and unless 0 < etas[0] < 1 < etas[1].

    >>> p = weft.ones(2, requires_grad=True)
    >>> p.grad = weft.tensor([5.0, -7.0])
    >>> weft.optim.Rprop([p], lr=0.5).step()
    >>> p
    tensor([0.5000, 1.5000], requires_grad=True)
    """

    _last_options = "capturable"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, options_of(locals(), "lr"))

    def _update(self, group: dict[str, Any]) -> None:
        shrink, grow = group["etas"]
        for param, grad in gradients(group):
            state = self.state[param]
            if not state:
                state["step"] = _C.tensor(0.0)
                state["prev"] = _C.zeros_like(param)
                state["step_size"] = _C.full_like(param.detach(), float(group["lr"]))
            count_step(state)
            turn = grad.mul(state["prev"]).sign()
            factor = turn.masked_fill(turn > 0, grow).masked_fill_(turn < 0, shrink)
            factor.masked_fill_(turn == 0, 1.0)
            size = state["step_size"].mul_(factor).clamp_(*group["step_sizes"])
            grad = grad.masked_fill(turn < 0, 0)
            param.addcmul_(grad.sign(), size, value=-1)
            state["prev"] = grad
