"""Parts of the steps of several optimizers.

A step that is recorded (the option `differentiable`) passes gradients on to the state before it,
and to a learning rate and a decay that are tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft import _C
from weft._C import Tensor


def count_step(state: dict[str, Any]) -> Tensor:
    """The number of this step, a tensor in the state; older files have a number there."""
    if not isinstance(state["step"], Tensor):
        state["step"] = _C.tensor(float(state["step"]))
    return state["step"].add_(1)


def gradients(group: dict[str, Any], decoupled: bool = False) -> Iterator[tuple[Tensor, Tensor]]:
    """Each parameter of a group that has a gradient, and what to descend along.

    That is the gradient, turned around to maximize, with the group's weight decay. decoupled:
    the decay shrinks the parameter here and now instead.
    """
    decay, maximize = group.get("weight_decay", 0), group["maximize"]
    for param in group["params"]:
        grad = param.grad
        if grad is None:
            continue
        if maximize:
            grad = -grad
        if decay and decoupled:
            param.mul_(1 - rate_of(group) * decay)
        elif decay:
            grad = decayed(grad, param, decay)
        yield param, grad


def rate_of(group: dict[str, Any]) -> Any:
    """The learning rate as a number, or as the tensor that gradients of the steps flow to."""
    lr = group["lr"]
    recorded = isinstance(lr, Tensor) and lr.requires_grad and group.get("differentiable", False)
    return lr if recorded else float(lr)


def decayed(grad: Tensor, param: Tensor, decay: Any) -> Tensor:
    """grad + decay * param, where decay can be a tensor that gradients flow to."""
    if isinstance(decay, Tensor) and decay.requires_grad:
        return grad + param.clone() * decay  # the step writes param
    return grad.add(param, alpha=decay)


def descend(param: Tensor, rate: Any, step: Tensor, divisor: Tensor | None = None) -> None:
    """param -= rate * step, or rate * step / divisor; rate is a number or a tensor."""
    if isinstance(rate, Tensor):
        param.sub_((step if divisor is None else step / divisor) * rate)
    elif divisor is None:
        param.add_(step, alpha=-rate)
    else:
        param.addcdiv_(step, divisor, value=-rate)


def update_square_avg(mean: Tensor, beta: Any, grad: Tensor) -> Tensor:
    """mean = beta * mean + (1 - beta) * grad**2 in place; beta can be a recorded tensor."""
    if isinstance(beta, Tensor) and beta.requires_grad:
        return mean.mul_(beta).add_(grad * grad * (1 - beta))
    return mean.mul_(beta).addcmul_(grad, grad, value=1 - beta)


def root_plus_eps(square: Tensor, eps: float, scale: Any = 1) -> Tensor:
    """sqrt(square) / scale + eps, a new tensor. A recorded root stays as it is for its gradient."""
    root = square.sqrt()
    if root.requires_grad:
        return root / scale + eps
    if scale != 1:
        root.div_(scale)
    return root.add_(eps)
