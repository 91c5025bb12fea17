"""Losses by margins and distances: one small module per function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.nn import functional as F
from weft.nn import init
from weft.nn.modules.loss import _Loss, _WeightedLoss
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter


class _MarginLoss(_Loss):
    """Holds a margin."""

    def __init__(
        self,
        margin: float = 0.0,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class MarginRankingLoss(_MarginLoss):
    """max(0, margin - target * (input1 - input2)).

    Shapes, dtypes and errors are those of weft.nn.functional.margin_ranking_loss.

    >>> weft.nn.MarginRankingLoss()(weft.ones(1), weft.full((1,), 2.0), weft.ones(1))
    tensor(1.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(_MarginLoss):
    """input where target is 1, max(0, margin - input) where it is -1.

    Shapes, dtypes and errors are those of weft.nn.functional.hinge_embedding_loss.

    >>> weft.nn.HingeEmbeddingLoss()(weft.tensor([0.25]), weft.tensor([-1]))
    tensor(0.7500)
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1.

    Shapes, dtypes and errors are those of weft.nn.functional.cosine_embedding_loss.

    >>> x, y = weft.tensor([[3.0, 4.0]]), weft.tensor([[4.0, 3.0]])
    >>> weft.nn.CosineEmbeddingLoss()(x, y, weft.tensor([1]))
    tensor(0.0400)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(
            input1, input2, target, self.margin, reduction=self.reduction
        )


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input)).

    Shapes, dtypes and errors are those of weft.nn.functional.soft_margin_loss.

    >>> weft.nn.SoftMarginLoss()(weft.zeros(1), weft.ones(1))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Hinges between classes in and not in the target.

    Shapes, dtypes and errors are those of weft.nn.functional.multilabel_margin_loss.

    >>> weft.nn.MultiLabelMarginLoss()(weft.tensor([0.5, 0.75]), weft.tensor([1, -1]))
    tensor(0.3750)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross entropy of sigmoid(input), the mean over the classes.

    Shapes, dtypes and errors are those of weft.nn.functional.multilabel_soft_margin_loss.

    >>> weft.nn.MultiLabelSoftMarginLoss()(weft.zeros(1, 2), weft.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """Hinges between the target's class and the others.

    Shapes, dtypes and errors are those of weft.nn.functional.multi_margin_loss.

    >>> weft.nn.MultiMarginLoss()(weft.tensor([[0.5, 0.75]]), weft.tensor([0]))
    tensor(0.6250)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: expected p 1 or 2, got {p}")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, self.p, self.margin, self.weight, reduction=self.reduction
        )


class TripletMarginLoss(_Loss):
    """max(0, margin + |anchor - positive| - |anchor - negative|) by the p-norm.

    Shapes, dtypes and errors are those of weft.nn.functional.triplet_margin_loss.

    >>> anchor, near, far = weft.zeros(1, 2), weft.ones(1, 2), weft.full((1, 2), 1.5)
    >>> weft.nn.TripletMarginLoss()(anchor, near, far)
    tensor(0.2929)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin > 0, got {margin}")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss by any distance.

    Shapes, dtypes and errors are those of weft.nn.functional.triplet_margin_with_distance_loss.

    >>> anchor, near, far = weft.zeros(1, 2), weft.ones(1, 2), weft.full((1, 2), 1.5)
    >>> weft.nn.TripletMarginWithDistanceLoss()(anchor, near, far)
    tensor(0.2929)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: expected margin > 0, got {margin}")
        self.distance_function = distance_function or PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function,
            margin=self.margin, swap=self.swap, reduction=self.reduction,
        )  # fmt: skip


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of counts.

    Shapes, dtypes and errors are those of weft.nn.functional.poisson_nll_loss.

    >>> weft.nn.PoissonNLLLoss(log_input=False)(weft.ones(1), weft.ones(1))
    tensor(1.)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Any = None,
        eps: float = 1e-8,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction
        )


class CTCLoss(_Loss):
    """Minus the log-probability that log_probs [t, n, c] spell the targets.

    Shapes, dtypes and errors are those of weft.nn.functional.ctc_loss.

    >>> log_probs = weft.full((2, 1, 2), 0.5).log()
    >>> weft.nn.CTCLoss()(log_probs, weft.tensor([[1]]), [2], [1]).exp().round(decimals=4)
    tensor(1.3333)
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
            self.zero_infinity,
        )  # fmt: skip


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last dimension.

    Shapes, dtypes and errors are those of weft.nn.functional.pairwise_distance.

    >>> weft.nn.PairwiseDistance()(weft.tensor([[3.0, 4.0]]), weft.zeros(1, 2))
    tensor([5.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class LocalResponseNorm(Module):
    """Divides by the squares of neighbouring channels.

    Shapes, dtypes and errors are those of weft.nn.functional.local_response_norm.

    >>> x = weft.tensor([1.0, 2.0, 3.0]).reshape(1, 3, 1)
    >>> weft.nn.LocalResponseNorm(3, alpha=3.0, beta=1.0)(x).flatten()
    tensor([0.1667, 0.1333, 0.2143])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class Bilinear(Module):
    """input1 [*, i] and input2 [*, j] times a weight [o, i, j], plus a bias: [*, o].

    Shapes, dtypes and errors are those of weft.nn.functional.bilinear.

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
