"""Further losses: one small module per function."""

from __future__ import annotations

from typing import Any

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.loss import _Loss, _WeightedLoss
from weft.nn.modules.module import Module


class BCELoss(_WeightedLoss):
    """Cross entropy of probabilities in [0, 1] against targets in [0, 1].

    Shapes, dtypes and errors are those of weft.nn.functional.binary_cross_entropy.

    >>> weft.nn.BCELoss()(weft.tensor([0.5]), weft.tensor([1.0]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """d^2 / (2 beta) where |d| < beta, otherwise |d| - beta / 2.

    Shapes, dtypes and errors are those of weft.nn.functional.smooth_l1_loss.

    >>> weft.nn.SmoothL1Loss()(weft.tensor([0.5]), weft.zeros(1))
    tensor(0.1250)
    """

    def __init__(
        self,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """d^2 / 2 where |d| <= delta, otherwise delta (|d| - delta / 2).

    Shapes, dtypes and errors are those of weft.nn.functional.huber_loss.

    >>> weft.nn.HuberLoss()(weft.tensor([3.0]), weft.zeros(1))
    tensor(2.5000)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        if not isinstance(delta, (int, float)):
            raise TypeError(f"HuberLoss: expected delta as a number, got {delta!r}")
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, self.reduction, self.delta)


class KLDivLoss(_Loss):
    """target * (log(target) - input) for log-probabilities `input`.

    Shapes, dtypes and errors are those of weft.nn.functional.kl_div.

    >>> chances = weft.tensor([0.5, 0.5])
    >>> weft.nn.KLDivLoss(reduction="sum")(weft.tensor([0.25, 0.75]).log(), chances)
    tensor(0.1438)
    """

    def __init__(
        self,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class GaussianNLLLoss(_Loss):
    """(log var + (input - target)^2 / var) / 2.

    Shapes, dtypes and errors are those of weft.nn.functional.gaussian_nll_loss.

    >>> weft.nn.GaussianNLLLoss()(weft.tensor([3.0]), weft.tensor([1.0]), weft.ones(1))
    tensor(2.)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along `dim`.

    Shapes, dtypes and errors are those of weft.nn.functional.cosine_similarity.

    >>> weft.nn.CosineSimilarity()(weft.tensor([[3.0, 4.0]]), weft.tensor([[4.0, 3.0]]))
    tensor([0.9600])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
