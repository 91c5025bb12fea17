"""Row programs of several passes: softmax, layer norm, and their gradients."""

from __future__ import annotations

from typing import Any

from weft._kernels.lang import exp, log, rsqrt
from weft._ops.table import FLOATS, backward_of, backward_op, body_of, ops

# ---- softmax ----


@body_of(
    "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    "rowwise",
    dtypes=FLOATS,
    grad={"self": "_softmax_backward_data(grad, result, dim, self.dtype)"},
    tags=("fusible",),
    shape="self",
)
def _softmax(row: Any, self: Any) -> Any:
    """exp(self) divided by its sum along `dim`, without overflow."""
    e = row.keep(exp(self - row.max(self)))
    return e * (1 / row.sum(e))


@backward_of(
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype)"
    " -> Tensor",
    "rowwise",
    dtypes=FLOATS,
    grad={
        "grad_output": "_softmax_backward_data(grad, output, dim, input_dtype)",
        "output": "_softmax_double(grad, grad_output, output, dim)",
    },
    tags=("fusible",),
)
def _softmax_backward(row: Any, grad_output: Any, output: Any) -> Any:
    """The gradient of softmax from its result."""
    return (grad_output - row.sum(grad_output * output)) * output


@backward_of("_softmax_double(Tensor grad, Tensor grad_output, Tensor output, int dim) -> Tensor")
def _softmax_double(grad: Any, grad_output: Any, output: Any, dim: Any) -> Any:
    """The second gradient of softmax."""
    # The gradient of _softmax_backward_data for its `output`.
    inner = (grad_output * output).sum([dim], True)
    outer = (grad * output).sum([dim], True)
    return grad * (grad_output - inner) - grad_output * outer


@body_of(
    "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    "rowwise",
    dtypes=FLOATS,
    grad={"self": "_log_softmax_backward_data(grad, result, dim, self.dtype)"},
    tags=("fusible",),
    shape="self",
)
def _log_softmax(row: Any, self: Any) -> Any:
    """The logarithm of softmax, without overflow."""
    shifted = self - row.max(self)
    return shifted - log(row.sum(exp(shifted)))


@backward_of(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, "
    "ScalarType input_dtype) -> Tensor",
    "rowwise",
    dtypes=FLOATS,
    grad={
        "grad_output": "grad - (grad * output.exp()).sum([dim], True)",
        "output": "-grad * output.exp() * grad_output.sum([dim], True)",
    },
    tags=("fusible",),
)
def _log_softmax_backward(row: Any, grad_output: Any, output: Any) -> Any:
    """The gradient of log_softmax from its result."""
    return grad_output - exp(output) * row.sum(grad_output)


# ---- layer norm ----


def _normalise(row: Any, x: Any, eps: Any) -> tuple[Any, Any, Any]:
    mean = row.sum(x) / row.length
    centred = x - mean
    scale = rsqrt(row.sum(centred * centred) / row.length + eps)
    return centred * scale, mean, scale


@body_of(
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-05, bool cudnn_enable=True) -> Tensor",
    tags=("fusible", "normalizes"),
    like="input",
)
def _layer_norm(
    input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: Any, cudnn_enable: Any
) -> Any:
    """Each row (the last dimensions, of normalized_shape) brought to mean 0 and variance 1, then
    scaled by weight and shifted by bias."""
    count = len(normalized_shape)
    first = input.dim() - count
    ops.check(
        count >= 1 and first >= 0 and input.shape[first:] == normalized_shape,
        "layer_norm: expected an input that ends in normalized_shape ", normalized_shape,
        ", got shape ", input.shape,
    )  # fmt: skip
    if weight is not None:
        ops.check(
            weight.shape == normalized_shape,
            "layer_norm: expected weight of shape ", normalized_shape, ", got ", weight.shape,
        )  # fmt: skip
        if weight.dtype != input.dtype:
            return ops._mixed_layer_norm(input, normalized_shape, weight, bias, eps)
    if bias is not None:
        ops.check(
            bias.shape == normalized_shape,
            "layer_norm: expected bias of shape ", normalized_shape, ", got ", bias.shape,
        )  # fmt: skip
        if bias.dtype != input.dtype:
            return ops._mixed_layer_norm(input, normalized_shape, weight, bias, eps)
    if weight is not None and bias is not None:
        return ops._layer_norm_affine(input, normalized_shape, weight, bias, eps)[0]
    result = ops._layer_norm(input, normalized_shape, eps)[0]
    if weight is not None:
        return result * weight
    if bias is not None:
        return result + bias
    return result


@backward_of(
    "_mixed_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, "
    "float eps) -> Tensor",
    like="input",
)
def _mixed_layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: Any) -> Any:
    """layer_norm of 16 bits by a weight and a bias of float32."""
    ops.check(
        (input.dtype == ops.float16 or input.dtype == ops.bfloat16)
        and (weight is None or weight.dtype == ops.float32)
        and (bias is None or bias.dtype == ops.float32),
        "layer_norm: expected weight and bias of the input's dtype, or of float32 beside 16 bits, "
        "for ", input.dtype,
    )  # fmt: skip
    wide = input.to(ops.float32)
    return ops.layer_norm(wide, normalized_shape, weight, bias, eps, True).to(input.dtype)


@backward_of(
    "_layer_norm(Tensor input, int[] normalized_shape, float eps) -> (Tensor, Tensor, Tensor)",
    "rowwise",
    dtypes=FLOATS,
    dims="last_dims(len(normalized_shape))",
    grad={"input": "_layer_norm_backward(grad, input, result1, result2, normalized_shape, eps)"},
    tags=("fusible",),
    per_row=("result1", "result2"),
)
def _layer_norm_plain(row: Any, input: Any, eps: Any) -> Any:
    """Normalised rows, their means, and the inverses of their deviations."""
    return _normalise(row, input, eps)


@backward_of(
    "_layer_norm_affine(Tensor input, int[] normalized_shape, Tensor weight, Tensor bias, "
    "float eps) -> (Tensor, Tensor, Tensor)",
    "rowwise",
    dtypes=FLOATS,
    dims="last_dims(len(normalized_shape))",
    grad={
        "input, weight, bias": "_layer_norm_affine_backward(grad, input, weight, result1, result2, "
        "normalized_shape, eps)",
        "input": "_layer_norm_backward(grad * weight, input, result1, result2, "
        "normalized_shape, eps)",
        "weight": "grad * _layer_norm(input, normalized_shape, eps)[0]",
        "bias": "grad",
    },
    tags=("fusible",),
    per_row=("result1", "result2"),
)
def _layer_norm_affine(row: Any, input: Any, weight: Any, bias: Any, eps: Any) -> Any:
    """Normalised rows times weight plus bias, their means, and inverse deviations."""
    normal, mean, scale = _normalise(row, input, eps)
    return normal * weight + bias, mean, scale


@backward_of(
    "_layer_norm_backward(Tensor grad_output, Tensor input, Tensor mean, Tensor rstd, "
    "int[] normalized_shape, float eps) -> Tensor",
    "rowwise",
    dtypes=FLOATS,
    dims="last_dims(len(normalized_shape))",
    constants=("mean", "rstd"),
    grad={
        "grad_output": "_layer_norm_backward(grad, input, mean, rstd, normalized_shape, eps)",
        "input": "_layer_norm_double(grad, grad_output, input, mean, rstd, normalized_shape, eps)",
    },
    tags=("fusible",),
    per_row=("mean", "rstd"),
)
def _layer_norm_backward(
    row: Any, grad_output: Any, input: Any, mean: Any, rstd: Any, eps: Any
) -> Any:
    """The gradient of normalised rows for their input."""
    normal = (input - mean) * rstd
    level = row.sum(grad_output) / row.length
    slope = row.sum(grad_output * normal) / row.length
    return (grad_output - level - normal * slope) * rstd


@backward_of(
    "_layer_norm_products(Tensor grad_output, Tensor input, Tensor weight, Tensor mean, "
    "Tensor rstd, int[] dim) -> (Tensor, Tensor)",
    "rowwise",
    dtypes=FLOATS,
    tags=("nondifferentiable",),
    per_row=("mean", "rstd"),
)
def _layer_norm_products(
    row: Any, grad_output: Any, input: Any, weight: Any, mean: Any, rstd: Any
) -> Any:
    """The gradient of _layer_norm_affine for its input; what sums to that for its weight."""
    scale = row.value(rstd)
    normal, grad = (input - row.value(mean)) * scale, grad_output * weight
    level, slope = row.sum(grad) / row.length, row.sum(grad * normal) / row.length
    return (grad - level - normal * slope) * scale, grad_output * normal


backward_op(
    "_layer_norm_affine_backward(Tensor grad_output, Tensor input, Tensor weight, Tensor mean, "
    "Tensor rstd, int[] normalized_shape, float eps) -> (Tensor, Tensor, Tensor)",
    doc="The gradients of _layer_norm_affine for input, weight and bias.",
    constants=("mean", "rstd"),
    grad={
        "grad_output": "weight * _layer_norm_backward(grads[0], input, mean, rstd, "
        "normalized_shape, eps) + grads[1] * _layer_norm(input, normalized_shape, eps)[0] "
        "+ grads[2]",
        "input": "_layer_norm_double(grads[0], grad_output * weight, input, mean, rstd, "
        "normalized_shape, eps) + _layer_norm_backward(grad_output * grads[1], input, mean, rstd, "
        "normalized_shape, eps)",
        "weight": "grad_output * _layer_norm_backward(grads[0], input, mean, rstd, "
        "normalized_shape, eps)",
    },
    shape="each(input, weight, weight)",
)


@backward_of(
    "_layer_norm_double(Tensor grad, Tensor grad_output, Tensor input, Tensor mean, Tensor rstd, "
    "int[] normalized_shape, float eps) -> Tensor"
)
def _layer_norm_double(
    grad: Any, grad_output: Any, input: Any, mean: Any, rstd: Any, normalized_shape: Any, eps: Any
) -> Any:
    """The second gradient of normalised rows."""
    # Mean and scale are made anew from the input, so that third derivatives are right too.
    dims = ops.last_dims(len(normalized_shape))
    centred = input - input.mean(dims, True)
    scale = (centred.square().mean(dims, True) + eps).rsqrt()
    normal = centred * scale
    s = (grad_output * normal).mean(dims, True)
    t = (grad * normal).mean(dims, True)
    c = ((grad_output - grad_output.mean(dims, True)) * (grad - grad.mean(dims, True))).mean(
        dims, True
    )
    from_g = ops._layer_norm_backward(grad_output, input, mean, rstd, normalized_shape, eps)
    from_v = ops._layer_norm_backward(grad, input, mean, rstd, normalized_shape, eps)
    return -scale * (scale * normal * (c - s * t) + t * from_g + s * from_v)
