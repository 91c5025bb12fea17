"""Losses. `reduction`: 0 none, 1 mean, 2 sum."""

from __future__ import annotations

from typing import Any

from weft._kernels.lang import abs, log, log1p, maximum, sign, where
from weft._ops.table import FLOATS, NUMBERS, backward_of, backward_op, body_of, op, ops

# ---- distances ----


@backward_of("_reduced(Tensor loss, int reduction) -> Tensor", tags=("may_give_input",))
def _reduced(loss: Any, reduction: Any) -> Any:
    """loss, its mean or its sum."""
    if reduction == 1:
        return loss.mean()
    return loss.sum() if reduction == 2 else loss


op(
    "mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    doc="The squared distance of self to target.",
    compose="_reduced(_squared_difference(self, target), reduction)",
    variants="nn",
    tags=("autocast_float32", "fusible"),
)
op(
    "l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    doc="The absolute distance of self to target.",
    compose="_reduced((self - target).abs(), reduction)",
    variants="nn",
    tags=("autocast_float32", "fusible"),
)
backward_op(
    "_squared_difference(Tensor self, Tensor target) -> Tensor",
    doc="(self - target) ** 2.",
    pointwise=lambda self, target: (self - target) * (self - target),
    dtypes=NUMBERS,
    grad={
        "self": "_squared_difference_backward(grad, self, target)",
        "target": "-_squared_difference_backward(grad, self, target)",
    },
)
backward_op(
    "_squared_difference_backward(Tensor grad_output, Tensor self, Tensor target) -> Tensor",
    doc="2 * grad_output * (self - target).",
    pointwise=lambda grad_output, self, target: 2 * grad_output * (self - target),
    dtypes=NUMBERS,
    grad={
        "grad_output": "_squared_difference_backward(grad, self, target)",
        "self": "grad * grad_output * 2",
        "target": "grad * grad_output * -2",
    },
)


def _huber(self: Any, target: Any, beta: Any, divisor: Any, factor: Any) -> Any:
    distance = abs(self - target)
    square = distance * distance * 0.5 / divisor
    return where(distance < beta, square, (distance - beta * 0.5) * factor)


def _huber_slope(
    grad_output: Any, self: Any, target: Any, beta: Any, divisor: Any, factor: Any
) -> Any:
    distance = self - target
    line = grad_output * sign(distance) * factor
    return where(abs(distance) >= beta, line, grad_output * distance / divisor)


_HUBER = "Tensor self, Tensor target, Scalar beta, Scalar divisor, Scalar factor"
_ARGUMENTS = "self, target, beta, divisor, factor"
_SECOND = "where((self - target).abs() >= beta, 0, grad * grad_output / divisor)"
backward_op(
    f"_smooth_distance({_HUBER}) -> Tensor",
    doc="d^2 / (2 divisor) for d = |self - target| below beta, else (d - beta / 2) * factor.",
    pointwise=_huber,
    weak=("beta", "divisor", "factor"),
    dtypes=FLOATS,
    grad={
        "self": f"_smooth_distance_backward(grad, {_ARGUMENTS})",
        "target": f"-_smooth_distance_backward(grad, {_ARGUMENTS})",
    },
)
backward_op(
    f"_smooth_distance_backward(Tensor grad_output, {_HUBER}) -> Tensor",
    doc="grad_output times the derivative of _smooth_distance for self.",
    pointwise=_huber_slope,
    weak=("beta", "divisor", "factor"),
    dtypes=FLOATS,
    grad={
        "grad_output": f"_smooth_distance_backward(grad, {_ARGUMENTS})",
        "self": _SECOND,
        "target": f"-{_SECOND}",
    },
)

# ---- negative log likelihood, cross entropy ----

op(
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, "
    "int ignore_index=-100) -> Tensor",
    doc="Minus the log probability (from log_softmax, classes in dimension 1) of target.",
    tags=("composite", "autocast_float32"),
    variants="nn",
)
op(
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, "
    "int ignore_index=-100) -> Tensor",
    doc="nll_loss for any number of dimensions.",
    compose="nll_loss(self, target, weight, reduction, ignore_index)",
    variants="nn",
    tags=("autocast_float32",),
)
op(
    "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, "
    "int ignore_index) -> (Tensor output, Tensor total_weight)",
    doc="nll_loss and the sum of the weights of the targets.",
    constants=("target",),
    grad={
        "self": "_nll_loss_backward(grad, self.shape, target, weight, reduction, ignore_index, "
        "result1)",
        "weight": "_no_gradient([grad], 'nll_loss', 'weight')",
    },
    variants="",
    shape="each([] if reduction else target, [])",
)
backward_op(
    "_nll_loss_backward(Tensor grad_output, int[] input_size, Tensor target, Tensor? weight, "
    "int reduction, int ignore_index, Tensor total_weight) -> Tensor",
    doc="The gradient of nll_loss.",
    constants=("target", "weight", "total_weight"),
    grad={"grad_output": "nll_loss(grad, target, weight, reduction, ignore_index)"},
)


@body_of(
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, "
    "int ignore_index=-100, float label_smoothing=0.) -> Tensor",
    variants="nn",
    tags=("autocast_float32",),
)
def _cross_entropy(
    self: Any, target: Any, weight: Any, reduction: Any, ignore_index: Any, label_smoothing: Any
) -> Any:
    """log_softmax followed by nll_loss; target holds class indices, or probabilities."""
    ops.check_value(
        self.dim() >= 1, "cross_entropy_loss: expected an input of 1 dimension or more, got 0"
    )
    ops.check(
        label_smoothing >= 0.0 and label_smoothing <= 1.0,
        "cross_entropy_loss: expected label_smoothing in [0, 1], got ",
        label_smoothing,
    )
    class_dim = 0 if self.dim() == 1 else 1
    logs = self.log_softmax(class_dim)
    if self.shape == target.shape and target.is_floating_point():
        return ops._cross_entropy_of_probabilities(logs, target, weight, reduction, label_smoothing)
    ops.check_value(
        self.dim() == 1 or target.dim() == 0 or self.size(0) == target.size(0),
        "cross_entropy_loss: expected as many targets as inputs, got ",
        target.shape, " for ", self.shape,
    )  # fmt: skip
    ops.check(
        not target.is_floating_point(),
        "cross_entropy_loss: expected class indices, or probabilities of the input's shape, got ",
        target.dtype, " of shape ", target.shape,
    )  # fmt: skip
    loss = ops.nll_loss_nd(logs, target, weight, reduction, ignore_index)
    if label_smoothing == 0.0:
        return loss
    smooth = ops._smoothing_loss(logs, target, weight, reduction, ignore_index)
    return loss * (1.0 - label_smoothing) + smooth * (label_smoothing / self.size(class_dim))


@backward_of(
    "_cross_entropy_of_probabilities(Tensor logs, Tensor target, Tensor? weight, int reduction, "
    "float label_smoothing) -> Tensor"
)
def _cross_entropy_of_probabilities(
    logs: Any, target: Any, weight: Any, reduction: Any, label_smoothing: Any
) -> Any:
    """Cross entropy for targets that are probabilities."""
    class_dim = 0 if logs.dim() == 1 else 1
    classes = logs.size(class_dim)
    smoothed = target
    if label_smoothing > 0.0:
        smoothed = target * (1.0 - label_smoothing) + label_smoothing / classes
    terms = logs * smoothed
    if weight is not None:
        terms = terms * ops._class_weights(weight, logs)
    if reduction == 1:
        return -terms.sum() / (float(logs.numel()) / classes)
    if reduction == 2:
        return -terms.sum()
    return -terms.sum([class_dim])


@backward_of("_class_weights(Tensor weight, Tensor logs) -> Tensor")
def _class_weights(weight: Any, logs: Any) -> Any:
    """weight in a shape that broadcasts over dimension 1 of logs."""
    if logs.dim() == 1:
        return weight
    ones = ops.kept_sizes(logs.shape[2:], None)
    return weight.reshape([weight.numel()] + ones)


@backward_of(
    "_smoothing_loss(Tensor logs, Tensor target, Tensor? weight, int reduction, int ignore_index)"
    " -> Tensor",
    tags=("autocast_float32",),
)
def _smoothing_loss(logs: Any, target: Any, weight: Any, reduction: Any, ignore_index: Any) -> Any:
    """The loss to the uniform distribution, for label smoothing."""
    class_dim = 0 if logs.dim() == 1 else 1
    terms = logs if weight is None else logs * ops._class_weights(weight, logs)
    ignored = target == ignore_index
    loss = (-terms.sum([class_dim])).masked_fill(ignored, 0)
    if reduction == 0:
        return loss
    if reduction == 2:
        return loss.sum()
    if weight is None:
        return loss.sum() / ignored.logical_not().sum()
    counted = weight.index_select(0, target.masked_fill(ignored, 0).reshape([-1]))
    return loss.sum() / counted.masked_fill(ignored.reshape([-1]), 0).sum()


# ---- binary cross entropy ----


@body_of(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, "
    "Tensor? pos_weight=None, int reduction=1) -> Tensor",
    variants="f",
    tags=("autocast_float32", "fusible"),
)
def _bce_with_logits(self: Any, target: Any, weight: Any, pos_weight: Any, reduction: Any) -> Any:
    """The cross entropy of sigmoid(self) to the probabilities target, without overflow."""
    ops.check(
        target.is_floating_point(),
        "binary_cross_entropy_with_logits: expected a target of a floating dtype, got ",
        target.dtype,
    )
    # softplus(-x) is minus the log of the probability sigmoid(x).
    minus_log = ops.softplus(-self, 1, 40)
    scaled = minus_log if pos_weight is None else minus_log * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * self + scaled
    return ops._reduced(loss if weight is None else loss * weight, reduction)


op(
    "_cross_entropy_of_chances(Tensor self, Tensor target) -> Tensor",
    doc="The cross entropy of probabilities self to target; logarithms are cut at -100.",
    pointwise=lambda self, target: (
        (target - 1) * maximum(log1p(-self), -100) - target * maximum(log(self), -100)
    ),
    dtypes=FLOATS,
    promotion="floating",
    grad={
        "self": "grad * ((self - target) / ((1 - self) * self).clamp_min(1e-12))",
        "target": "grad * (self.neg().log1p().clamp_min(-100) - self.log().clamp_min(-100))",
    },
)
