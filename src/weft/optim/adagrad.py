"""Adagrad: steps divided by the root of the sum of squared gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.optim._steps import count_step, descend, gradients, rate_of, root_plus_eps
from weft.optim.optimizer import Optimizer, full_like, options_of
from weft.sparse._construct import sparse_coo_tensor


class Adagrad(Optimizer):
    """p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(sum of g**2) + eps) (Duchi et al., 2011).

    initial_accumulator_value: where the sum starts. differentiable: gradients flow through the
    steps. `foreach` and `fused` have no effect. Raises ValueError for a negative option.

    >>> p = weft.ones(1, requires_grad=True)
    >>> p.grad = weft.full((1,), 2.0)
    >>> weft.optim.Adagrad([p], lr=0.1).step()
    >>> p
    tensor([0.9000], requires_grad=True)
    """

    _last_options = "weight_decay initial_accumulator_value foreach maximize differentiable fused"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            options_of(
                locals(), "lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps"
            ),
        )
        for group in self.param_groups:
            for param in group["params"]:
                self._start(param, group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group as Optimizer does; its sums start at its initial_accumulator_value."""
        super().add_param_group(param_group)
        for param in self.param_groups[-1]["params"]:
            self._start(param, self.param_groups[-1])

    def share_memory(self) -> None:
        """Moves the sums into memory that processes share, as that of their parameters."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _start(self, param: Tensor, group: dict[str, Any]) -> None:
        state = self.state[param]
        state["step"] = _C.tensor(0.0)
        state["sum"] = full_like(param, group["initial_accumulator_value"])

    def _update(self, group: dict[str, Any]) -> None:
        for param, grad in gradients(group):
            state = self.state[param]
            step = count_step(state).item()
            lr = rate_of(group) / (1 + (step - 1) * group["lr_decay"])
            if grad.is_sparse:
                _sparse_step(param, grad.coalesce(), state["sum"], lr, group["eps"])
                continue
            total = state["sum"].addcmul_(grad, grad, value=1)
            descend(param, lr, grad, root_plus_eps(total, group["eps"]))


def _sparse_step(param: Tensor, grad: Tensor, total: Tensor, lr: float, eps: float) -> None:
    total.add_(grad.square())
    scale = root_plus_eps(total.sparse_mask(grad)._values(), eps)
    step = sparse_coo_tensor(grad.indices(), grad._values() / scale, grad.shape)
    param.add_(step, alpha=-lr)
