"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft._C import Tensor
from weft.optim._steps import descend, gradients, rate_of
from weft.optim.optimizer import Optimizer, options_of


class SGD(Optimizer):
    """p -= lr * v, with v = momentum * v + (1 - dampening) * (grad + weight_decay * p).

    nesterov uses grad + momentum * v instead of v; maximize goes up the gradient. differentiable:
    gradients flow through the steps, to lr and weight_decay too. `foreach` and `fused` have no
    effect.

    Raises ValueError for a negative lr, momentum or weight_decay, and for nesterov without momentum
    or with dampening.

    >>> p = weft.ones(1, requires_grad=True)
    >>> p.grad = weft.full((1,), 2.0)
    >>> weft.optim.SGD([p], lr=0.25).step()
    >>> p
    tensor([0.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, options_of(locals(), "lr", "momentum", "weight_decay"))

    def _update(self, group: dict[str, Any]) -> None:
        lr, momentum = rate_of(group), group["momentum"]
        for param, grad in gradients(group):
            descend(param, lr, self._velocity(param, grad, group) if momentum else grad)

    def _velocity(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> Tensor:
        momentum = group["momentum"]
        state = self.state[param]
        buffer = state.get("momentum_buffer")
        if buffer is None:
            buffer = state["momentum_buffer"] = grad.detach().clone()
        else:
            buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
        return grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
