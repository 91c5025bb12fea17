"""Adafactor: second moments kept as a row and a column."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from weft import _C
from weft._C import Tensor
from weft._tensor.limits import finfo
from weft.optim._steps import count_step, gradients
from weft.optim.optimizer import Optimizer, check_at_least_zero, options_of


class Adafactor(Optimizer):
    """Steps of g / sqrt(v), v the product of a row and a column of running means of g**2: a matrix
    [n, m] needs n + m numbers of state (Shazeer and Stern, 2018).

    The means follow by the share t**beta2_decay in step t. A step has the length of lr, at most
    1 / sqrt(t), times the root mean square of the parameter, at least eps[1]; d: clips its own.
    eps[0]: the smallest v (None: that of the dtype). weight_decay shrinks the parameter. `foreach`
    is accepted and has no effect.

    Raises ValueError for options out of range, RuntimeError for complex parameters.

    >>> p = weft.ones(2, requires_grad=True)
    >>> p.grad = weft.tensor([2.0, -2.0])
    >>> weft.optim.Adafactor([p], lr=0.1).step()
    >>> p
    tensor([0.9000, 1.1000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_at_least_zero("epsilon1", 0.0 if eps[0] is None else eps[0])
        check_at_least_zero("epsilon2", eps[1])
        if not beta2_decay <= 0.0:
            raise ValueError(f"Adafactor: expected beta2_decay of at most 0, got {beta2_decay}")
        if not d >= 1.0:
            raise ValueError(f"Adafactor: expected a clipping threshold d from 1, got {d}")
        super().__init__(params, options_of(locals(), "lr", "weight_decay"))

    def _update_parts(self, group: dict[str, Any]) -> NoReturn:
        raise RuntimeError("Adafactor: expected real parameters, got complex ones")

    def _update(self, group: dict[str, Any]) -> None:
        lr, (eps1, eps2) = float(group["lr"]), group["eps"]
        for param, grad in gradients({**group, "weight_decay": 0}):
            smallest = finfo(param.dtype).eps if eps1 is None else eps1
            state = self.state[param] or self._first_state(param, grad)
            step = count_step(state).item()
            length = max(eps2, _root_mean_square(param)) * min(lr, 1 / step**0.5)
            if group["weight_decay"]:
                param.mul_(1 - lr * group["weight_decay"])
            variance = _variance(state, grad, step ** group["beta2_decay"], smallest)
            update = variance.clamp_(min=smallest * smallest).rsqrt_().mul_(grad)
            length /= max(1.0, _root_mean_square(update) / group["d"])
            param.add_(update, alpha=-length)

    def _first_state(self, param: Tensor, grad: Tensor) -> dict[str, Any]:
        state = self.state[param]
        state["step"] = _C.tensor(0.0, dtype=_C.float32)
        if grad.dim() > 1:
            state["row_var"] = _C.zeros_like(grad[..., :1])
            state["col_var"] = _C.zeros_like(grad[..., :1, :])
        else:
            state["variance"] = _C.zeros_like(grad)
        return state


def _variance(state: dict[str, Any], grad: Tensor, share: float, smallest: float) -> Tensor:
    """The estimate of grad**2, after its means have followed by `share`."""
    if grad.dim() <= 1:
        return state["variance"].lerp_(grad * grad, share).clone()
    row, column = (
        state[name].lerp_(grad.norm(2, dim=dim, keepdim=True).square_().div_(grad.size(dim)), share)
        for name, dim in (("row_var", -1), ("col_var", -2))
    )
    return (row @ column).div_(row.mean(dim=-2, keepdim=True).clamp_(min=smallest))


def _root_mean_square(x: Tensor) -> float:
    return x.norm(2).item() / x.numel() ** 0.5
