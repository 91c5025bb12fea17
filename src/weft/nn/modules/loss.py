"""Losses of values and classes; `reduction` is 'none', 'mean' or 'sum'."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn._reduction import legacy_get_string
from weft.nn.modules._layer import _BinaryLayer, _Layer

if TYPE_CHECKING:
    from dataclasses import KW_ONLY


class _Loss(_Layer):
    """Holds the reduction."""

    _kept = tuple[str, ...](["reduction"])

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self._keep({"size_average": size_average, "reduce": reduce, "reduction": reduction})

    def _keep(self, given: dict[str, Any]) -> None:
        old = given.pop("size_average", None), given.pop("reduce", None)
        if old != (None, None):
            given["reduction"] = legacy_get_string(*old)
        super()._keep(given)


class _WeightedLoss(_Loss):
    """Holds a weight per class too, as a buffer."""

    _kept = ("weight", "reduction")

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self._keep({"weight": weight})

    def _keep(self, given: dict[str, Any]) -> None:
        for name in [each for each in ("weight", "pos_weight") if each in given]:
            self.register_buffer(name, given.pop(name))
        super()._keep(given)


class CrossEntropyLoss(_WeightedLoss, of="cross_entropy"):
    """Cross entropy of softmax(input): input [n, c], target [n] of class numbers.

    >>> weft.nn.CrossEntropyLoss()(weft.tensor([[0.0, 0.0]]), weft.tensor([1]))
    tensor(0.6931)
    """

    weight: Tensor | None = None
    size_average: Any = None
    ignore_index: int = -100
    reduce: Any = None
    reduction: str = "mean"
    label_smoothing: float = 0.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input, target, self.weight, None, self.ignore_index, None, self.reduction,
            self.label_smoothing,
        )  # fmt: skip


class NLLLoss(_WeightedLoss, of="nll_loss"):
    """-input[i, target[i]] of log-probabilities [n, c].

    >>> weft.nn.NLLLoss()(weft.tensor([[0.5, 0.5]]).log(), weft.tensor([1]))
    tensor(0.6931)
    """

    weight: Tensor | None = None
    size_average: Any = None
    ignore_index: int = -100
    reduce: Any = None
    reduction: str = "mean"

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, self.weight, None, self.ignore_index, None, self.reduction)


class NLLLoss2d(NLLLoss):
    """NLLLoss under the name that it had for images.

    Shapes, dtypes and errors are those of NLLLoss.

    >>> weft.nn.NLLLoss2d()(weft.zeros(1, 2, 3, 3), weft.ones(1, 3, 3, dtype=weft.int64))
    tensor(0.)
    """


class MSELoss(_Loss, of="mse_loss"):
    """(input - target) ** 2.

    >>> weft.nn.MSELoss()(weft.tensor([1.0, 5.0]), weft.tensor([1.0, 3.0]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss, _BinaryLayer, of="l1_loss"):
    """|input - target|.

    >>> weft.nn.L1Loss()(weft.tensor([1.0, 5.0]), weft.tensor([1.0, 3.0]))
    tensor(1.)
    """


class BCEWithLogitsLoss(_WeightedLoss, of="binary_cross_entropy_with_logits"):
    """Cross entropy of sigmoid(input) against targets in [0, 1].

    >>> weft.nn.BCEWithLogitsLoss()(weft.tensor([0.0]), weft.tensor([1.0]))
    tensor(0.6931)
    """

    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"
    pos_weight: Tensor | None = None

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, None, None, self.reduction, self.pos_weight
        )


class BCELoss(_WeightedLoss, _BinaryLayer, of="binary_cross_entropy"):
    """Cross entropy of probabilities in [0, 1] against targets in [0, 1].

    >>> weft.nn.BCELoss()(weft.tensor([0.5]), weft.tensor([1.0]))
    tensor(0.6931)
    """


class SmoothL1Loss(_Loss, _BinaryLayer, of="smooth_l1_loss"):
    """d^2 / (2 beta) where |d| < beta, otherwise |d| - beta / 2.

    >>> weft.nn.SmoothL1Loss()(weft.tensor([0.5]), weft.zeros(1))
    tensor(0.1250)
    """

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"
    beta: float = 1.0


class HuberLoss(_Loss, _BinaryLayer, of="huber_loss"):
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


class KLDivLoss(_Loss, _BinaryLayer, of="kl_div"):
    """target * (log(target) - input) for log-probabilities `input`.

    >>> chances = weft.tensor([0.5, 0.5])
    >>> weft.nn.KLDivLoss(reduction="sum")(weft.tensor([0.25, 0.75]).log(), chances)
    tensor(0.1438)
    """

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"
    log_target: bool = False


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
