"""Convolution, pooling, batch norm, group norm."""

from __future__ import annotations

from typing import Any

from weft._kernels.lang import rsqrt
from weft._ops.table import FLOATS, backward_of, backward_op, body_of, op, ops

op(
    "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
    "int[2] dilation=1, int groups=1) -> Tensor",
    doc="The cross-correlation of images (N, C, H, W) with filters (O, C / groups, kH, kW).",
    grad={
        "input": "_conv2d_backward_input(grad, weight.conj(), input.shape, stride, padding, "
        "dilation, groups)",
        "weight": "_conv2d_backward_weight(grad, input.conj(), weight.shape, stride, padding, "
        "dilation, groups)",
        "bias": "grad.sum([-2, -1])",
    },
    tags=("autocast_lower", "layer", "convolution"),
    shape="convolved(input, weight, stride, padding, dilation)",
    result="input",
)
op(
    "conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
    'str padding="valid", int[2] dilation=1, int groups=1) -> Tensor',
    doc="conv2d with padding 'valid' (none) or 'same' (the result has the size of the input).",
    tags=("composite",),
    shape="convolved(input, weight, stride, padding, dilation)",
    result="input",
)
op(
    "_conv2d_sum(Tensor input, Tensor weight, Tensor? bias, Tensor? residual, bool relu, "
    "int[2] stride=1, int[2] padding=0, int[2] dilation=1, int groups=1) -> Tensor",
    doc="conv2d plus a residual, negative sums set to 0 if `relu`. Programs that record no "
    "gradients have it for a convolution and what follows.",
    tags=("nondifferentiable",),
    shape="broadcast(convolved(input, weight, stride, padding, dilation), residual)",
    result="input",
)
op(
    "_conv2d_sum.high(Tensor input, Tensor weight, Tensor? bias, Tensor? residual, float high, "
    "int[2] stride=1, int[2] padding=0, int[2] dilation=1, int groups=1) -> Tensor",
    doc="conv2d plus a residual, sums held between 0 and `high`, as by relu6.",
    native="_conv2d_sum_high",
    tags=("nondifferentiable",),
    shape="broadcast(convolved(input, weight, stride, padding, dilation), residual)",
    result="input",
)
op(
    "conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, "
    "int[1] dilation=1, int groups=1) -> Tensor",
    doc="The cross-correlation of signals (N, C, L) with filters (O, C / groups, k).",
    tags=("composite", "layer", "convolution"),
    shape="convolved(input, weight, stride, padding, dilation)",
    result="input",
)
op(
    "conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, "
    'str padding="valid", int[1] dilation=1, int groups=1) -> Tensor',
    doc="conv1d with padding 'valid' (none) or 'same' (the result has the size of the input).",
    compose="conv2d(input.unsqueeze(-2), weight.unsqueeze(-2), bias, [1] + stride, padding, "
    "[1] + dilation, groups).squeeze(-2)",
    shape="convolved(input, weight, stride, padding, dilation)",
    result="input",
)
op(
    "conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
    "int[2] padding=0, int[2] output_padding=0, int groups=1, int[2] dilation=1) -> Tensor",
    doc="The transpose of conv2d: the gradient of its input, as a forward operator.",
    tags=("composite", "autocast_lower", "by_channels"),
)
backward_op(
    "_conv2d_backward_input(Tensor grad_output, Tensor weight, int[] input_size, int[2] stride, "
    "int[2] padding, int[2] dilation, int groups) -> Tensor",
    doc="The gradient of conv2d for its input.",
    grad={
        "grad_output": "conv2d(grad, weight.conj(), None, stride, padding, dilation, groups)",
        "weight": "_conv2d_backward_weight(grad_output.conj(), grad, weight.shape, stride, "
        "padding, dilation, groups)",
    },
)
backward_op(
    "_conv2d_backward_weight(Tensor grad_output, Tensor input, int[] weight_size, int[2] stride, "
    "int[2] padding, int[2] dilation, int groups) -> Tensor",
    doc="The gradient of conv2d for its weight.",
    grad={
        "grad_output": "conv2d(input.conj(), grad, None, stride, padding, dilation, groups)",
        "input": "_conv2d_backward_input(grad_output.conj(), grad, input.shape, stride, padding, "
        "dilation, groups)",
    },
    shape="weight_size",
)

# ---- pooling ----

op(
    "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], "
    "int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
    doc="The greatest element of each window, and its index in its image.",
    grad={"self": "_max_pool2d_backward(grad, result1, self.shape)"},
    tags=("by_channels",),
    variants="nn",
    shape="pooled(self, kernel_size, stride, padding, dilation, ceil_mode)",
    result=("self", "int64"),
)
op(
    "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
    "int[2] dilation=1, bool ceil_mode=False) -> Tensor",
    doc="The greatest element of each window.",
    tags=("composite", "by_channels", "picks"),
    variants="f",
    shape="pooled(self, kernel_size, stride, padding, dilation, ceil_mode)",
    result="self",
)
backward_op(
    "_max_pool2d_backward(Tensor grad_output, Tensor indices, int[] input_size) -> Tensor",
    doc="grad_output added at the indices of each image.",
    grad={"grad_output": "_max_pool2d_gather(grad, indices)"},
)
backward_op(
    "_max_pool2d_gather(Tensor self, Tensor indices) -> Tensor",
    doc="The elements at the indices of each image.",
    grad={"self": "_max_pool2d_backward(grad, indices, self.shape)"},
    shape="indices",
    result="self",
)
op(
    "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
    "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    doc="The mean of each window.",
    grad={
        "self": "_avg_pool2d_backward(grad, self.shape, kernel_size, stride, padding, ceil_mode, "
        "count_include_pad, divisor_override)"
    },
    variants="nn",
    shape="pooled(self, kernel_size, stride, padding, 1, ceil_mode)",
    result="self",
    tags=("by_channels",),
)
backward_op(
    "_avg_pool2d_backward(Tensor grad_output, int[] input_size, int[2] kernel_size, "
    "int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override)"
    " -> Tensor",
    doc="The gradient of avg_pool2d.",
    grad={
        "grad_output": "avg_pool2d(grad, kernel_size, stride, padding, ceil_mode, "
        "count_include_pad, divisor_override)"
    },
)
op(
    "adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor",
    doc="Means over windows chosen so that the result has output_size.",
    grad={"self": "_adaptive_avg_pool2d_backward(grad, self.shape, output_size)"},
    variants="nn",
    shape="[*self[:-2], output_size[0], output_size[1]]",
    result="self",
)
backward_op(
    "_adaptive_avg_pool2d_backward.sizes(Tensor grad_output, int[] input_size, int[2] output_size)"
    " -> Tensor",
    doc="The gradient of adaptive_avg_pool2d.",
    grad={"grad_output": "adaptive_avg_pool2d(grad, output_size)"},
)

# ---- batch norm ----

op(
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
    "Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    doc="Each channel brought to mean 0 and variance 1 (by its own statistics in training, which "
    "update the running ones; else by the running ones), then weight and bias.",
    tags=("composite", "writes_statistics", "one_walk"),
    like="input",
)
backward_op(
    "_batch_norm_train(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
    "Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    doc="Batch norm by the statistics of the batch; also gives its means and inverse deviations.",
    constants=("running_mean", "running_var"),
    grad={"input, weight, bias": "_batch_norm_backward(grad, input, weight, result1, result2)"},
    tags=("writes_statistics", "by_channels"),
    shape="each(input, [input[1]], [input[1]])",
)


def _moments(row: Any, input: Any) -> tuple[Any, Any, Any]:
    """The mean, what differs from it, and the sum of its squares."""
    mean = row.sum(input) / row.length
    centred = input - mean
    rest = row.sum(centred)  # by what the mean was rounded
    return mean, centred, row.sum(centred * centred) - rest * rest / row.length


@backward_of(
    "_batch_norm_rows(Tensor input, Tensor weight, Tensor bias, int[] dim, float eps)"
    " -> (Tensor, Tensor, Tensor, Tensor)",
    "rowwise",
    dtypes=FLOATS,
    tags=("nondifferentiable",),
    per_row=("weight", "bias", "result1", "result2", "result3"),
)
def _batch_norm_rows(row: Any, input: Any, weight: Any, bias: Any, eps: Any) -> Any:
    """Channels brought to mean 0 and variance 1, then scaled and shifted; their means, inverse
    deviations, and sums of squares around the mean."""
    mean, centred, squares = _moments(row, input)
    invstd = rsqrt(squares / row.length + eps)
    return centred * (invstd * row.value(weight)) + row.value(bias), mean, invstd, squares


@backward_of(
    "_batch_norm_rows_backward(Tensor grad_output, Tensor input, Tensor weight, Tensor mean, "
    "Tensor invstd, int[] dim) -> (Tensor, Tensor, Tensor)",
    "rowwise",
    dtypes=FLOATS,
    tags=("nondifferentiable",),
    per_row=("weight", "mean", "invstd", "result1", "result2"),
)
def _batch_norm_rows_backward(
    row: Any, grad_output: Any, input: Any, weight: Any, mean: Any, invstd: Any
) -> Any:
    """The gradients of _batch_norm_rows for its input, weight and bias."""
    centred, inverse = input - row.value(mean), row.value(invstd)
    total = row.sum(grad_output)
    along = row.sum(grad_output * centred) * inverse
    level, slope = total / row.length, along * inverse / row.length
    direct = grad_output - level - centred * slope
    return direct * (inverse * row.value(weight)), along, total


backward_op(
    "_batch_norm_backward(Tensor grad_output, Tensor input, Tensor? weight, Tensor mean, "
    "Tensor invstd) -> (Tensor, Tensor, Tensor)",
    doc="The gradients of _batch_norm_train for input, weight and bias.",
    constants=("mean", "invstd"),
    tags=("partial_grads",),
    grad={
        "grad_output, input, weight": "_batch_norm_double_backward(grads[0], grads[1], grads[2], "
        "grad_output, input, weight, mean, invstd)"
    },
    shape="each(input, [input[1]], [input[1]])",
)
backward_op(
    "_batch_norm_double_backward(Tensor? ggi, Tensor? ggw, Tensor? ggb, Tensor grad_output, "
    "Tensor input, Tensor? weight, Tensor mean, Tensor invstd) -> (Tensor, Tensor, Tensor)",
    doc="The second gradients of batch norm.",
    tags=("composite",),
)

# ---- group norm ----


@body_of(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
    tags=("by_channels",),
    like="input",
)
def _group_norm(
    input: Any, num_groups: Any, weight: Any, bias: Any, eps: Any, cudnn_enabled: Any
) -> Any:
    """Each group of channels (dimension 1) of each sample brought to mean 0 and variance 1, then
    scaled by weight and shifted by bias, which have an element a channel."""
    ops.check(
        input.dim() >= 2 and num_groups >= 1 and input.shape[1] % num_groups == 0,
        "group_norm: expected groups that divide the channels of [n, c, ...], got ", num_groups,
        " groups for shape ", input.shape,
    )  # fmt: skip
    channels = input.shape[1:2]
    ops.check(
        weight is None or weight.shape == channels,
        "group_norm: expected weight of shape ", channels, ", got ", weight.shape,
    )  # fmt: skip
    ops.check(
        bias is None or bias.shape == channels,
        "group_norm: expected bias of shape ", channels, ", got ", bias.shape,
    )  # fmt: skip
    ops.check(
        (
            (weight is None or weight.dtype == input.dtype)
            and (bias is None or bias.dtype == input.dtype)
        )
        or (
            (input.dtype == ops.float16 or input.dtype == ops.bfloat16)
            and (weight is None or weight.dtype == ops.float32)
            and (bias is None or bias.dtype == ops.float32)
        ),
        "group_norm: expected weight and bias of the input's dtype, or of float32 beside 16 bits, "
        "for ", input.dtype,
    )  # fmt: skip
    return ops._group_norm(input, num_groups, weight, bias, eps)[0]


backward_op(
    "_group_norm(Tensor input, int groups, Tensor? weight, Tensor? bias, float eps)"
    " -> (Tensor, Tensor, Tensor)",
    doc="Group norm; also gives the means of the groups and their inverse deviations.",
    grad={
        "input, weight, bias": "_group_norm_backward(grad, input, weight, result1, result2, "
        "groups, eps)"
    },
    tags=("by_channels",),
    shape="each(input, [input[0], groups], [input[0], groups])",
)


@backward_of(
    "_row_moments(Tensor input, int[] dim) -> (Tensor, Tensor)",
    "rowwise",
    dtypes=FLOATS,
    tags=("nondifferentiable",),
    per_row=("result0", "result1"),
)
def _row_moments(row: Any, input: Any) -> Any:
    """Means and sums of squares around them."""
    mean, _, squares = _moments(row, input)
    return mean, squares


@backward_of(
    "_moments_of_parts(Tensor mean, Tensor squares, int[] dim, float count, float eps)"
    " -> (Tensor, Tensor)",
    "rowwise",
    dtypes=FLOATS,
    tags=("nondifferentiable",),
    per_row=("result0", "result1"),
)
def _moments_of_parts(row: Any, mean: Any, squares: Any, count: Any, eps: Any) -> Any:
    """The mean and the inverse deviation of parts of `count` elements each, given their moments."""
    level, _, between = _moments(row, mean)
    return level, rsqrt((row.sum(squares) / count + between) / row.length + eps)


@backward_of(
    "_scaled_rows(Tensor input, Tensor mean, Tensor scale, Tensor bias, int[] dim) -> Tensor",
    "rowwise",
    dtypes=FLOATS,
    tags=("nondifferentiable",),
    per_row=("mean", "scale", "bias"),
)
def _scaled_rows(row: Any, input: Any, mean: Any, scale: Any, bias: Any) -> Any:
    """(input - mean) * scale + bias."""
    return (input - row.value(mean)) * row.value(scale) + row.value(bias)


@backward_of(
    "_scaled_rows_sums(Tensor grad_output, Tensor input, Tensor mean, int[] dim)"
    " -> (Tensor, Tensor)",
    "rowwise",
    dtypes=FLOATS,
    tags=("nondifferentiable",),
    per_row=("mean", "result0", "result1"),
)
def _scaled_rows_sums(row: Any, grad_output: Any, input: Any, mean: Any) -> Any:
    """The gradients of _scaled_rows for bias and scale."""
    return row.sum(grad_output), row.sum(grad_output * (input - row.value(mean)))


@backward_of(
    "_sums_of_parts(Tensor total, Tensor along, Tensor scale, Tensor rstd, int[] dim, float count)"
    " -> (Tensor, Tensor)",
    "rowwise",
    dtypes=FLOATS,
    tags=("nondifferentiable",),
    per_row=("rstd", "result0", "result1"),
)
def _sums_of_parts(row: Any, total: Any, along: Any, scale: Any, rstd: Any, count: Any) -> Any:
    """What _scaled_rows_backward takes off rows of parts of `count` elements each: the mean of
    their scaled gradients, and of these along the centred elements, each over its variance."""
    each, inverse = row.length * count, row.value(rstd)
    along = row.sum(along * scale) / each
    return row.sum(total * scale) / each, along * (inverse * inverse)


@backward_of(
    "_scaled_rows_backward(Tensor grad_output, Tensor input, Tensor mean, Tensor scale, "
    "Tensor level, Tensor slope, int[] dim) -> Tensor",
    "rowwise",
    dtypes=FLOATS,
    tags=("nondifferentiable",),
    per_row=("mean", "scale", "level", "slope"),
)
def _scaled_rows_backward(
    row: Any, grad_output: Any, input: Any, mean: Any, scale: Any, level: Any, slope: Any
) -> Any:
    """The gradient of _scaled_rows for input, whose moments mean and scale are made of."""
    direct = grad_output * row.value(scale) - row.value(level)
    return direct - (input - row.value(mean)) * row.value(slope)


backward_op(
    "_group_norm_backward(Tensor grad_output, Tensor input, Tensor? weight, Tensor mean, "
    "Tensor rstd, int groups, float eps) -> (Tensor, Tensor, Tensor)",
    doc="The gradients of _group_norm for input, weight and bias.",
    constants=("mean", "rstd"),
    grad={
        "grad_output, input, weight": "_group_norm_double_backward(grads[0], grads[1], grads[2], "
        "grad_output, input, weight, mean, rstd, groups, eps)"
    },
    shape="each(input, [input[1]], [input[1]])",
)


@backward_of(
    "_group_norm_double_backward(Tensor ggi, Tensor ggw, Tensor ggb, Tensor grad_output, "
    "Tensor input, Tensor? weight, Tensor mean, Tensor rstd, int groups, float eps)"
    " -> (Tensor, Tensor, Tensor)"
)
def _group_norm_double_backward(
    ggi: Any, ggw: Any, ggb: Any, grad_output: Any, input: Any, weight: Any, mean: Any, rstd: Any,
    groups: Any, eps: Any,
) -> Any:  # fmt: skip
    """The second gradients of group norm."""
    each = input.shape[1] // groups
    vector, one = [groups, each, 1], [input.shape[0], groups, 1, 1]
    shape = [input.shape[0], groups, each, -1]
    scale = ops.ones_like(ggw)
    if weight is not None:
        scale = weight
    w, along = scale.reshape(vector), ggw.reshape(vector)
    x, g, gg = input.reshape(shape), grad_output.reshape(shape), ggi.reshape(shape)
    m, r, dims = mean.reshape(one), rstd.reshape(one), x.shape[2:]
    back = ops._layer_norm_backward(gg, x, m, r, dims, eps)
    to_grad = w * back + along * ops._layer_norm(x, dims, eps)[0] + ggb.reshape(vector)
    to_input = ops._layer_norm_double(gg, g * w, x, m, r, dims, eps)
    to_input = to_input + ops._layer_norm_backward(g * along, x, m, r, dims, eps)
    to_weight = (g * back).sum([0, 3]).reshape([-1])
    return to_grad.reshape(input.shape), to_input.reshape(input.shape), to_weight
