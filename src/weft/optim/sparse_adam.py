"""SparseAdam: Adam for those elements alone that a sparse gradient has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.optim._steps import root_plus_eps
from weft.optim.optimizer import Optimizer, check_at_least_zero, check_betas


class SparseAdam(Optimizer):
    """Adam whose means and parameters change only where the gradient, a sparse tensor, has values.

    Raises ValueError for an lr or eps that is not positive, for betas outside [0, 1), for sparse
    and complex parameters; RuntimeError for a dense gradient.

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
        for name, value in (("learning rate", lr), ("epsilon value", eps)):
            check_at_least_zero(name, value)
            if value == 0.0:
                raise ValueError(f"Invalid {name}: {value}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        for param in (p for group in self.param_groups for p in group["params"]):
            if param.is_sparse or param.is_complex():
                kind = "sparse" if param.is_sparse else "complex"
                raise ValueError(f"SparseAdam: expected dense real parameters, got a {kind} one")

    def _update(self, group: dict[str, Any]) -> None:
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if not grad.is_sparse:
                raise RuntimeError(
                    "SparseAdam: expected sparse gradients, got a dense one, which Adam takes"
                )
            grad = grad.coalesce()
            self._update_elements(param, grad.indices(), grad.values(), group)

    def _update_elements(
        self, param: Tensor, indices: Tensor, grad: Tensor, group: dict[str, Any]
    ) -> None:
        """A step of the elements, or rows, at `indices` [dimensions, n] along `grad` [n, *]."""
        state = self.state[param]
        if not state:
            state.update(step=0, exp_avg=_C.zeros_like(param), exp_avg_sq=_C.zeros_like(param))
        state["step"] += 1
        if not grad.numel():
            return
        (beta1, beta2), step = group["betas"], state["step"]
        at = tuple(indices.unbind(0))
        grad = -grad if group["maximize"] else grad
        mean = state["exp_avg"][at].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"][at].lerp_(grad * grad, 1 - beta2)
        state["exp_avg"][at], state["exp_avg_sq"][at] = mean, square
        size = float(group["lr"]) * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        param.index_put_(at, mean / root_plus_eps(square, group["eps"]) * -size, accumulate=True)
