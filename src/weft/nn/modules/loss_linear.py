"""Cross entropy of the logits of a linear layer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.linear import Linear
from weft.nn.modules.loss import _WeightedLoss


@dataclass(frozen=True, slots=True)
class LinearCrossEntropyOptions:
    """How PyTorch cuts the logits into chunks. Here all logits are made at once.

    >>> weft.nn.LinearCrossEntropyOptions().chunking_method
    'auto'
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None


class LinearCrossEntropyLoss(_WeightedLoss):
    """Cross entropy of a linear layer's results: input [n, in_features], target [n] of classes.

    out_features adds dimensions behind the classes: logits are [n, num_classes, *out_features].
    Shapes, dtypes and errors are those of weft.nn.functional.linear_cross_entropy; a weight of
    another shape than [num_classes] and label_smoothing outside of [0, 1] raise at once.

    >>> loss = weft.nn.LinearCrossEntropyLoss(3, 2, out_features=(4,))
    >>> loss(weft.ones(5, 3), weft.zeros(5, 4, dtype=weft.int64)).shape
    torch.Size([])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(
                f"LinearCrossEntropyLoss: expected weight of shape {(num_classes,)}, "
                f"got {tuple(weight.shape)}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                f"LinearCrossEntropyLoss: expected label_smoothing in [0, 1], got {label_smoothing}"
            )
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        results = num_classes * math.prod(self.out_features)
        self.linear = Linear(in_features, results, bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = [self.num_classes, *self.out_features]
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape([*shape, self.linear.in_features]),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
