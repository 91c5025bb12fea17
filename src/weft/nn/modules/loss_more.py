"""Further losses: one small module per function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules._layer import _Layer
from weft.nn.modules.loss import _Loss, _WeightedLoss

if TYPE_CHECKING:
    from dataclasses import KW_ONLY


class BCELoss(_WeightedLoss, of="binary_cross_entropy"):
    """Cross entropy of probabilities in [0, 1] against targets in [0, 1].

    >>> weft.nn.BCELoss()(weft.tensor([0.5]), weft.tensor([1.0]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class SmoothL1Loss(_Loss, of="smooth_l1_loss"):
    """d^2 / (2 beta) where |d| < beta, otherwise |d| - beta / 2.

    >>> weft.nn.SmoothL1Loss()(weft.tensor([0.5]), weft.zeros(1))
    tensor(0.1250)
    """

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"
    beta: float = 1.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss, of="huber_loss"):
    """d^2 / 2 where |d| <= delta, otherwise delta (|d| - delta / 2).

    >>> weft.nn.HuberLoss()(weft.tensor([3.0]), weft.zeros(1))
    tensor(2.5000)
    """

    reduction: str = "mean"
    delta: float = 1.0

    def _keep(self, given: dict[str, Any]) -> None:
        super()._keep(given)
        if not isinstance(self.delta, (int, float)):
            raise TypeError(f"HuberLoss: expected delta as a number, got {self.delta!r}")

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, self.reduction, self.delta)


class KLDivLoss(_Loss, of="kl_div"):
    """target * (log(target) - input) for log-probabilities `input`.

    >>> chances = weft.tensor([0.5, 0.5])
    >>> weft.nn.KLDivLoss(reduction="sum")(weft.tensor([0.25, 0.75]).log(), chances)
    tensor(0.1438)
    """

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"
    log_target: bool = False

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class GaussianNLLLoss(_Loss, of="gaussian_nll_loss"):
    """(log var + (input - target)^2 / var) / 2.

    >>> weft.nn.GaussianNLLLoss()(weft.tensor([3.0]), weft.tensor([1.0]), weft.ones(1))
    tensor(2.)
    """

    _: KW_ONLY
    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class CosineSimilarity(_Layer, of="cosine_similarity"):
    """The cosine of the angle between vectors along `dim`.

    >>> weft.nn.CosineSimilarity()(weft.tensor([[3.0, 4.0]]), weft.tensor([[4.0, 3.0]]))
    tensor([0.9600])
    """

    dim: int = 1
    eps: float = 1e-8

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
