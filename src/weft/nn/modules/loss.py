"""Losses; `reduction` is 'none', 'mean' or 'sum'."""

from __future__ import annotations

from typing import Any

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn._reduction import legacy_get_string
from weft.nn.modules._layer import _Layer


class _Loss(_Layer):
    """Holds the reduction."""

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
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


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
        return F.nll_loss(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class MSELoss(_Loss, of="mse_loss"):
    """(input - target) ** 2.

    >>> weft.nn.MSELoss()(weft.tensor([1.0, 5.0]), weft.tensor([1.0, 3.0]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss, of="l1_loss"):
    """|input - target|.

    >>> weft.nn.L1Loss()(weft.tensor([1.0, 5.0]), weft.tensor([1.0, 3.0]))
    tensor(1.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


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
            input,
            target,
            self.weight,
            pos_weight=self.pos_weight,
            reduction=self.reduction,
        )
