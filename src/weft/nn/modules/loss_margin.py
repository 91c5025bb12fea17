"""Losses by margins and distances: one small module per function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Tensor
from weft.nn import functional as F
from weft.nn import init
from weft.nn.modules._layer import _BinaryLayer, _Layer
from weft.nn.modules.loss import _Loss, _WeightedLoss
from weft.nn.parameter import Parameter

if TYPE_CHECKING:
    from dataclasses import KW_ONLY


class _MarginLoss(_Loss):
    """Holds a margin."""

    margin: float = 0.0
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


class MarginRankingLoss(_MarginLoss, of="margin_ranking_loss"):
    """max(0, margin - target * (input1 - input2)).

    >>> weft.nn.MarginRankingLoss()(weft.ones(1), weft.full((1,), 2.0), weft.ones(1))
    tensor(1.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(_MarginLoss, _BinaryLayer, of="hinge_embedding_loss"):
    """input where target is 1, max(0, margin - input) where it is -1.

    >>> weft.nn.HingeEmbeddingLoss()(weft.tensor([0.25]), weft.tensor([-1]))
    tensor(0.7500)
    """

    margin: float = 1.0
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


class CosineEmbeddingLoss(_MarginLoss, of="cosine_embedding_loss"):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1.

    >>> x, y = weft.tensor([[3.0, 4.0]]), weft.tensor([[4.0, 3.0]])
    >>> weft.nn.CosineEmbeddingLoss()(x, y, weft.tensor([1]))
    tensor(0.0400)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(
            input1, input2, target, self.margin, reduction=self.reduction
        )


class SoftMarginLoss(_Loss, _BinaryLayer, of="soft_margin_loss"):
    """log(1 + exp(-target * input)).

    >>> weft.nn.SoftMarginLoss()(weft.zeros(1), weft.ones(1))
    tensor(0.6931)
    """


class MultiLabelMarginLoss(_Loss, _BinaryLayer, of="multilabel_margin_loss"):
    """Hinges between classes in and not in the target.

    >>> weft.nn.MultiLabelMarginLoss()(weft.tensor([0.5, 0.75]), weft.tensor([1, -1]))
    tensor(0.3750)
    """


class MultiLabelSoftMarginLoss(_WeightedLoss, _BinaryLayer, of="multilabel_soft_margin_loss"):
    """Binary cross entropy of sigmoid(input), the mean over the classes.

    >>> weft.nn.MultiLabelSoftMarginLoss()(weft.zeros(1, 2), weft.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """


class MultiMarginLoss(_WeightedLoss, _BinaryLayer, of="multi_margin_loss"):
    """Hinges between the target's class and the others.

    >>> weft.nn.MultiMarginLoss()(weft.tensor([[0.5, 0.75]]), weft.tensor([0]))
    tensor(0.6250)
    """

    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"

    def _keep(self, given: dict[str, Any]) -> None:
        super()._keep(given)
        if self.p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: expected p 1 or 2, got {self.p}")


class _TripletLoss(_Loss):
    """One whose margin has to be positive."""

    def _keep(self, given: dict[str, Any]) -> None:
        if given["margin"] <= 0:
            raise ValueError(f"{type(self).__name__}: expected margin > 0, got {given['margin']}")
        super()._keep(given)


class TripletMarginLoss(_TripletLoss, of="triplet_margin_loss"):
    """max(0, margin + |anchor - positive| - |anchor - negative|) by the p-norm.

    >>> anchor, near, far = weft.zeros(1, 2), weft.ones(1, 2), weft.full((1, 2), 1.5)
    >>> weft.nn.TripletMarginLoss()(anchor, near, far)
    tensor(0.2929)
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class TripletMarginWithDistanceLoss(_TripletLoss, of="triplet_margin_with_distance_loss"):
    """TripletMarginLoss by any distance.

    >>> anchor, near, far = weft.zeros(1, 2), weft.ones(1, 2), weft.full((1, 2), 1.5)
    >>> weft.nn.TripletMarginWithDistanceLoss()(anchor, near, far)
    tensor(0.2929)
    """

    _: KW_ONLY
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None
    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"

    def _keep(self, given: dict[str, Any]) -> None:
        given["distance_function"] = given["distance_function"] or PairwiseDistance()
        super()._keep(given)

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function,
            margin=self.margin, swap=self.swap, reduction=self.reduction,
        )  # fmt: skip


class PoissonNLLLoss(_Loss, of="poisson_nll_loss"):
    """The negative log-likelihood of counts.

    >>> weft.nn.PoissonNLLLoss(log_input=False)(weft.ones(1), weft.ones(1))
    tensor(1.)
    """

    log_input: bool = True
    full: bool = False
    size_average: Any = None
    eps: float = 1e-8
    reduce: Any = None
    reduction: str = "mean"

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction
        )


class CTCLoss(_Loss, of="ctc_loss"):
    """Minus the log-probability that log_probs [t, n, c] spell the targets.

    >>> log_probs = weft.full((2, 1, 2), 0.5).log()
    >>> weft.nn.CTCLoss()(log_probs, weft.tensor([[1]]), [2], [1]).exp().round(decimals=4)
    tensor(1.3333)
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
            self.zero_infinity,
        )  # fmt: skip


class PairwiseDistance(_Layer, of="pairwise_distance"):
    """The p-norm of x1 - x2 + eps along the last dimension.

    >>> weft.nn.PairwiseDistance()(weft.tensor([[3.0, 4.0]]), weft.zeros(1, 2))
    tensor([5.0000])
    """

    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False

    def _keep(self, given: dict[str, Any]) -> None:
        self.norm = given.pop("p")
        super()._keep(given)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class LocalResponseNorm(_Layer, of="local_response_norm"):
    """Divides by the squares of neighbouring channels.

    >>> x = weft.tensor([1.0, 2.0, 3.0]).reshape(1, 3, 1)
    >>> weft.nn.LocalResponseNorm(3, alpha=3.0, beta=1.0)(x).flatten()
    tensor([0.1667, 0.1333, 0.2143])
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class Bilinear(_Layer, of="bilinear"):
    """input1 [*, i] and input2 [*, j] times a weight [o, i, j], plus a bias: [*, o].

    >>> weft.nn.Bilinear(2, 3, 4)(weft.ones(5, 2), weft.ones(5, 3)).shape
    torch.Size([5, 4])
    """

    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"Bilinear: expected in1_features > 0, got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(_C.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_C.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias from U(-1/sqrt(in1_features), 1/sqrt(in1_features))."""
        bound = self.weight.size(1) ** -0.5
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
