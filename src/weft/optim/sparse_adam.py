"""SparseAdam: Adam on the rows that a sparse gradient names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import weft
from weft import Tensor
from weft.optim.optimizer import Optimizer, check_betas


class SparseAdam(Optimizer):
    """Adam for sparse gradients, as of `Embedding(sparse=True)`: the means of what a gradient does
    not name stay as they are, and so does the parameter there.

    lr, betas, eps: as for Adam. maximize: goes up the gradient.

    Raises ValueError for an lr or eps that is not above 0 and for betas outside [0, 1), and
    RuntimeError at a step with a dense gradient.

    >>> table = weft.nn.Embedding(3, 1, sparse=True)
    >>> before = table.weight.detach().clone()
    >>> table(weft.tensor([2])).sum().backward()
    >>> weft.optim.SparseAdam(table.parameters(), lr=0.5).step()
    >>> (before - table.weight.detach()).round(decimals=3).T
    tensor([[0.0000, 0.0000, 0.5000]])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if not lr > 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def _update(self, group: dict[str, Any]) -> None:
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if not grad.is_sparse:
                raise RuntimeError(
                    "SparseAdam: expected sparse gradients, got a dense one; use Adam"
                )
            self._step(param, -grad if group["maximize"] else grad, group)

    def _step(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state = self.state[param]
        if not state:
            state["step"] = 0
            state["exp_avg"] = weft.zeros_like(param)
            state["exp_avg_sq"] = weft.zeros_like(param)
        state["step"] += 1
        grad = grad.coalesce()
        if grad._nnz() == 0:
            return
        beta1, beta2 = group["betas"]
        values = grad._values()
        mean = _followed(state["exp_avg"], grad, values, beta1)
        square = _followed(state["exp_avg_sq"], grad, values.square(), beta2)
        rate = math.sqrt(1 - beta2 ** state["step"]) / (1 - beta1 ** state["step"])
        param.add_(_at(grad, mean / (square.sqrt() + group["eps"])), alpha=-group["lr"] * rate)


def _followed(average: Tensor, grad: Tensor, values: Tensor, beta: float) -> Tensor:
    """Moves an average towards the values at the places of a gradient; what it is there now."""
    old = average.sparse_mask(grad)._values()
    step = (values - old) * (1 - beta)
    average.add_(_at(grad, step))
    return old + step


def _at(grad: Tensor, values: Tensor) -> Tensor:
    """Other values at the places of a coalesced gradient."""
    return weft.sparse_coo_tensor(grad.indices(), values, grad.shape, is_coalesced=True)
