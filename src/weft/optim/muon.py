"""Muon: steps along the nearest orthogonal matrix to the momentum."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NoReturn

from weft import _C
from weft._C import Tensor
from weft.optim.optimizer import Optimizer, options_of


class Muon(Optimizer):
    """p -= lr' * orthogonalized(m) for matrices p, with m a running mean of the gradient.

    The matrix is made about orthogonal by ns_steps of a Newton-Schulz iteration in bfloat16, with
    ns_coefficients a, b, c. nesterov: uses grad + momentum * (m - grad) instead of m. weight_decay
    shrinks the parameter. adjust_lr_fn: lr' is lr * sqrt(max(1, rows / columns)) for "original" and
    None, lr * 0.2 * sqrt(max(rows, columns)) for "match_rms_adamw". Other parameters than the
    matrices of hidden layers need another optimizer.

    Raises ValueError for parameters that are no matrices, a negative lr, momentum or weight_decay,
    another adjust_lr_fn, 100 ns_steps or more; RuntimeError for complex parameters.

    >>> p = weft.eye(2).requires_grad_()
    >>> p.grad = weft.tensor([[0.0, 3.0], [-3.0, 0.0]])
    >>> weft.optim.Muon([p], lr=0.1, weight_decay=0).step()
    >>> p.round(decimals=1)[0]
    tensor([ 1.0000, -0.1000], grad_fn=<SelectBackward0>)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                f"Muon: expected adjust_lr_fn 'original' or 'match_rms_adamw', got {adjust_lr_fn!r}"
            )
        super().__init__(params, options_of(locals(), "lr", "momentum", "weight_decay"))
        for param in (p for group in self.param_groups for p in group["params"]):
            if param.ndim != 2:
                raise ValueError(f"Muon: expected matrices, got the size {tuple(param.shape)}")

    def _update_parts(self, group: dict[str, Any]) -> NoReturn:
        raise RuntimeError("Muon: expected real parameters, got complex ones")

    def _update(self, group: dict[str, Any]) -> None:
        lr, momentum = float(group["lr"]), group["momentum"]
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            state = self.state[param]
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = _C.zeros_like(grad)
            mean = state["momentum_buffer"].lerp_(grad, 1 - momentum)
            update = grad.lerp(mean, momentum) if group["nesterov"] else mean
            update = _orthogonalized(update, group)
            param.mul_(1 - lr * group["weight_decay"])
            param.add_(update, alpha=-lr * _ratio(group["adjust_lr_fn"], *param.shape))


def _orthogonalized(matrix: Tensor, group: dict[str, Any]) -> Tensor:
    """About U V^T for a matrix U S V^T, in bfloat16."""
    steps, coefficients = group["ns_steps"], group["ns_coefficients"]
    if steps >= 100:
        raise ValueError(f"Muon: expected fewer than 100 ns_steps, got {steps}")
    if len(coefficients) != 3:
        raise ValueError(f"Muon: expected 3 ns_coefficients, got {len(coefficients)}")
    a, b, c = coefficients
    tall = matrix.size(0) > matrix.size(1)
    x = matrix.bfloat16()
    x = x.T if tall else x
    x = x / x.norm().clamp(min=group["eps"])
    for _ in range(steps):
        gram = x @ x.T
        x = _C.addmm(x, _C.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def _ratio(rule: str | None, rows: int, columns: int) -> float:
    """What lr is multiplied with for a matrix of this shape."""
    if rule == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))
