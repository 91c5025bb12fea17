"""Activation functions with their gradients as fused rows."""

from __future__ import annotations

from typing import Any

from weft._kernels.lang import abs as absolute
from weft._kernels.lang import (
    conj,
    copysign,
    exp,
    expm1,
    log1p,
    maximum,
    minimum,
    normal_cdf,
    sigmoid,
    tanh,
    where,
)
from weft._ops.table import COMPLEX, FLOATS, INTEGERS, backward_of, backward_op, body_of, op, ops

_SQRT_2_OVER_PI = 0.7978845608028654
_CUBIC = 0.044715  # of the tanh approximation of gelu

op(
    "relu(Tensor self) -> Tensor",
    doc="self where it is positive, else 0.",
    pointwise=lambda self: where(self <= 0, 0, self),
    dtypes=INTEGERS + FLOATS,
    grad={"self": "threshold_backward(grad, result, 0)"},
    out=None,
    tags=("cheap",),
)
backward_op(
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    doc="grad_output where self is above the threshold, else 0.",
    pointwise=lambda grad_output, self, threshold: where(self <= threshold, 0, grad_output),
    weak=("threshold",),
    dtypes=("bool", *INTEGERS, *FLOATS),
    grad={"grad_output": "threshold_backward(grad, self, threshold)", "self": "None"},
    tags=("cheap",),
)
op(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    doc="self where it is positive, else negative_slope * self.",
    pointwise=lambda self, negative_slope: where(self > 0, self, self * negative_slope),
    weak=("negative_slope",),
    dtypes=FLOATS,
    grad={"self": "_leaky_relu_backward(grad, self, negative_slope)"},
    inplace_grad={"self": "_leaky_relu_backward(grad, result, negative_slope)"},
    inplace_grad_when="negative_slope >= 0",
    variants="nn",
    tags=("cheap",),
)
backward_op(
    "_leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope) -> Tensor",
    doc="grad_output where self is positive, else negative_slope * grad_output.",
    pointwise=lambda grad_output, self, negative_slope: where(
        self > 0, grad_output, grad_output * negative_slope
    ),
    weak=("negative_slope",),
    dtypes=FLOATS,
    grad={"grad_output": "_leaky_relu_backward(grad, self, negative_slope)", "self": "None"},
)
op(
    "_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
    doc="self where it is positive, else weight * self.",
    pointwise=lambda self, weight: where(self > 0, self, weight * self),
    dtypes=FLOATS,
    grad={
        "self": "where(self > 0, grad, grad * weight)",
        "weight": "where(self > 0, 0, grad * self)",
    },
    inplace=None,
    out=None,
    variants="",
)
op(
    "_shrink(Tensor self, Scalar lambd, Scalar step) -> Tensor",
    doc="self moved by step towards 0 where it is farther than lambd from it, else 0.",
    pointwise=lambda self, lambd, step: where(
        absolute(self) <= lambd, 0, self - copysign(step, self)
    ),
    weak=("lambd", "step"),
    dtypes=FLOATS,
    grad={"self": "threshold_backward(grad, self.abs(), lambd)"},
    inplace=None,
    out=None,
    variants="",
)
op(
    "silu(Tensor self) -> Tensor",
    doc="self * sigmoid(self).",
    pointwise=lambda self: self * sigmoid(self),
    dtypes=FLOATS + COMPLEX,
    grad={"self": "silu_backward(grad, self)"},
    variants="nn",
)


def _silu_slope(self: Any) -> Any:
    s = sigmoid(self)
    return s * (1 + self * (1 - s))


backward_op(
    "silu_backward(Tensor grad_output, Tensor self) -> Tensor",
    doc="grad_output times the derivative of silu at self.",
    pointwise=lambda grad_output, self: grad_output * conj(_silu_slope(self)),
    dtypes=FLOATS + COMPLEX,
    grad={
        "grad_output": "silu_backward(grad, self.conj())",
        "self": "grad.conj() * grad_output * _silu_second(self).conj()",
    },
)


@backward_of("_silu_second(Tensor self) -> Tensor")
def _silu_second(self: Any) -> Any:
    """The second derivative of silu."""
    s = self.sigmoid()
    return s * (1 - s) * (self * (1 - s * 2) + 2)


# ---- the cell of long short-term memory ----


@body_of(
    "_lstm_cell(Tensor entry, Tensor forget, Tensor cell, Tensor output, Tensor memory)"
    " -> (Tensor, Tensor)",
    "pointwise",
    dtypes=FLOATS,
    grad={
        "entry, forget, cell, output, memory": "_lstm_cell_backward(grads[0], grads[1], entry, "
        "forget, cell, output, memory)"
    },
    inplace=None,
    out=None,
)
def _lstm_cell(entry: Any, forget: Any, cell: Any, output: Any, memory: Any) -> Any:
    """The next hidden state and the next memory, from the gates before their activations."""
    after = sigmoid(forget) * memory + sigmoid(entry) * tanh(cell)
    return sigmoid(output) * tanh(after), after


@backward_of(
    "_lstm_cell_backward(Tensor grad_hidden, Tensor grad_memory, Tensor entry, Tensor forget, "
    "Tensor cell, Tensor output, Tensor memory) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "pointwise",
    dtypes=FLOATS,
    grad={
        "grad_hidden, grad_memory, entry, forget, cell, output, memory": "_lstm_cell_double_back"
        "ward(grads[0], grads[1], grads[2], grads[3], grads[4], grad_hidden, grad_memory, entry, "
        "forget, cell, output, memory)"
    },
)
def _lstm_cell_backward(
    grad_hidden: Any, grad_memory: Any, entry: Any, forget: Any, cell: Any, output: Any, memory: Any
) -> Any:
    """The gradients of _lstm_cell for its arguments."""
    i, f, g, o = sigmoid(entry), sigmoid(forget), tanh(cell), sigmoid(output)
    t = tanh(f * memory + i * g)
    d = grad_memory + grad_hidden * o * (1 - t * t)
    gates = d * g * i * (1 - i), d * memory * f * (1 - f), d * i * (1 - g * g)
    return *gates, grad_hidden * t * o * (1 - o), d * f


@backward_of(
    "_lstm_cell_double_backward(Tensor to_entry, Tensor to_forget, Tensor to_cell, "
    "Tensor to_output, Tensor to_memory, Tensor grad_hidden, Tensor grad_memory, Tensor entry, "
    "Tensor forget, Tensor cell, Tensor output, Tensor memory)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"
)
def _lstm_cell_double_backward(
    to_entry: Any, to_forget: Any, to_cell: Any, to_output: Any, to_memory: Any, grad_hidden: Any,
    grad_memory: Any, entry: Any, forget: Any, cell: Any, output: Any, memory: Any,
) -> Any:  # fmt: skip
    """The gradients of _lstm_cell_backward for its arguments."""
    i, f, g, o = entry.sigmoid(), forget.sigmoid(), cell.tanh(), output.sigmoid()
    t = (f * memory + i * g).tanh()
    slope_i, slope_f, slope_o = i * (1 - i), f * (1 - f), o * (1 - o)
    slope_g, slope_t = 1 - g * g, 1 - t * t
    # What the next memory changes by in the direction of the five, and the gradient of that memory.
    change = to_entry * g * slope_i + to_forget * memory * slope_f + to_cell * i * slope_g
    change = change + to_memory * f
    d = grad_memory + grad_hidden * o * slope_t
    through = grad_hidden * slope_t * (slope_o * to_output - o * t * change * 2)
    twice_o = grad_hidden * slope_o * (slope_t * change + t * (1 - o * 2) * to_output)
    return (
        o * slope_t * change + t * slope_o * to_output,
        change,
        d * slope_i * (to_entry * g * (1 - i * 2) + to_cell * slope_g) + through * g * slope_i,
        d * slope_f * (to_forget * memory * (1 - f * 2) + to_memory) + through * memory * slope_f,
        d * slope_g * (to_entry * slope_i - to_cell * i * g * 2) + through * i * slope_g,
        twice_o,
        d * to_forget * slope_f + through * f,
    )


op(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    doc="log(1 + exp(beta * self)) / beta; self itself where beta * self is above the threshold.",
    pointwise=lambda self, beta, threshold: where(
        self * beta > threshold, self, log1p(exp(self * beta)) / beta
    ),
    weak=("beta", "threshold"),
    dtypes=FLOATS,
    grad={"self": "softplus_backward(grad, self, beta, threshold)"},
    variants="nn",
    inplace=None,
    tags=("exact_out",),
)
backward_op(
    "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
    doc="grad_output times the derivative of softplus at self.",
    pointwise=lambda grad_output, self, beta, threshold: where(
        self * beta > threshold, grad_output, grad_output * sigmoid(self * beta)
    ),
    weak=("beta", "threshold"),
    dtypes=FLOATS,
    grad={
        "grad_output": "softplus_backward(grad, self, beta, threshold)",
        "self": "grad * grad_output * _softplus_second(self, beta, threshold)",
    },
)


@backward_of("_softplus_second(Tensor self, Scalar beta, Scalar threshold) -> Tensor")
def _softplus_second(self: Any, beta: Any, threshold: Any) -> Any:
    """The second derivative of softplus."""
    x = self * beta
    s = x.sigmoid()
    return ops.where(x > threshold, 0, s * (1 - s) * beta)


op(
    "log_sigmoid(Tensor self) -> Tensor",
    doc="log(sigmoid(self)), without overflow.",
    pointwise=lambda self: minimum(self, 0) - log1p(exp(-absolute(self))),
    dtypes=FLOATS,
    grad={"self": "grad * self.neg().sigmoid()"},
    variants="nn",
    inplace=None,
    tags=("row_major",),
)
op(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    doc="self held between min_val and max_val.",
    pointwise=lambda self, min_val, max_val: minimum(maximum(self, min_val), max_val),
    weak=("min_val", "max_val"),
    dtypes=INTEGERS + FLOATS,
    grad={"self": "hardtanh_backward(grad, self, min_val, max_val)"},
    inplace_grad={"self": "hardtanh_backward(grad, result, min_val, max_val)"},
    variants="nn",
    validate="limits",
    tags=("cheap",),
)
op(
    "relu6(Tensor self) -> Tensor",
    doc="self held between 0 and 6.",
    pointwise=lambda self: minimum(maximum(self, 0), 6),
    dtypes=INTEGERS + FLOATS,
    grad={"self": "hardtanh_backward(grad, self, 0, 6)"},
    inplace_grad={"self": "hardtanh_backward(grad, result, 0, 6)"},
    variants="nn",
    out=None,
    tags=("cheap",),
)
backward_op(
    "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
    doc="grad_output where self lies between min_val and max_val, else 0.",
    pointwise=lambda grad_output, self, min_val, max_val: where(
        self <= min_val, 0, where(self >= max_val, 0, grad_output)
    ),
    weak=("min_val", "max_val"),
    dtypes=FLOATS,
    grad={"grad_output": "hardtanh_backward(grad, self, min_val, max_val)", "self": "None"},
)
op(
    "hardsigmoid(Tensor self) -> Tensor",
    doc="self / 6 + 1 / 2, held between 0 and 1.",
    pointwise=lambda self: minimum(maximum(self + 3, 0), 6) / 6,
    dtypes=FLOATS,
    grad={"self": "hardsigmoid_backward(grad, self)"},
    inplace_grad={"self": "where((result > 0).logical_and(result < 1), grad / 6, 0)"},
    variants="nn",
)
backward_op(
    "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
    doc="grad_output times the derivative of hardsigmoid at self.",
    pointwise=lambda grad_output, self: where(self > -3, where(self < 3, grad_output / 6, 0), 0),
    dtypes=FLOATS,
    grad={"grad_output": "hardsigmoid_backward(grad, self)", "self": "None"},
)
op(
    "hardswish(Tensor self) -> Tensor",
    doc="self times hardsigmoid of self.",
    pointwise=lambda self: self * minimum(maximum(self + 3, 0), 6) / 6,
    dtypes=FLOATS,
    grad={"self": "hardswish_backward(grad, self)"},
    variants="nn",
)
backward_op(
    "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
    doc="grad_output times the derivative of hardswish at self.",
    pointwise=lambda grad_output, self: where(
        self <= -3, 0, where(self < 3, grad_output * (self / 3 + 0.5), grad_output)
    ),
    dtypes=FLOATS,
    grad={
        "grad_output": "hardswish_backward(grad, self)",
        "self": "where((self > -3).logical_and(self < 3), grad * grad_output / 3, 0)",
    },
)
op(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    doc="scale times self where it is positive, else times alpha * (exp(input_scale * self) - 1).",
    pointwise=lambda self, alpha, scale, input_scale: (
        scale * where(self > 0, self, alpha * expm1(self * input_scale))
    ),
    weak=("alpha", "scale", "input_scale"),
    dtypes=FLOATS,
    grad={"self": "_elu_backward(grad, self, alpha, scale, input_scale)"},
    inplace_grad={"self": "_elu_backward_of_result(grad, result, alpha, scale, input_scale)"},
    inplace_grad_when="alpha >= 0 and scale > 0 and input_scale >= 0",
    variants="nn",
)
backward_op(
    "_elu_backward(Tensor grad_output, Tensor self, Scalar alpha, Scalar scale, "
    "Scalar input_scale) -> Tensor",
    doc="grad_output times the derivative of elu at self.",
    pointwise=lambda grad_output, self, alpha, scale, input_scale: (
        grad_output * scale * where(self > 0, 1, alpha * input_scale * exp(self * input_scale))
    ),
    weak=("alpha", "scale", "input_scale"),
    dtypes=FLOATS,
    grad={
        "grad_output": "_elu_backward(grad, self, alpha, scale, input_scale)",
        "self": "grad * grad_output * where(self > 0, 0, (self * input_scale).exp() * "
        "(alpha * scale * input_scale * input_scale))",
    },
)

backward_op(
    "_elu_backward_of_result(Tensor grad_output, Tensor output, Scalar alpha, Scalar scale, "
    "Scalar input_scale) -> Tensor",
    doc="grad_output times the derivative of elu where it gave output.",
    pointwise=lambda grad_output, output, alpha, scale, input_scale: (
        grad_output * where(output > 0, scale, (output + alpha * scale) * input_scale)
    ),
    weak=("alpha", "scale", "input_scale"),
    dtypes=FLOATS,
    grad={
        "grad_output": "_elu_backward_of_result(grad, output, alpha, scale, input_scale)",
        "output": "grad * grad_output * where(output > 0, 0, input_scale)",
    },
)

# ---- gelu, by the error function and by its tanh approximation ----


@body_of(
    'gelu(Tensor self, *, str approximate="none") -> Tensor', variants="nn", out="out", shape="self"
)
def _gelu(self: Any, approximate: Any) -> Any:
    """self times the normal distribution function of self; approximate is 'none' or 'tanh'."""
    if approximate == "none":
        return ops._gelu_erf(self)
    ops.check(
        approximate == "tanh",
        "gelu: expected approximate to be 'none' or 'tanh', got ",
        approximate,
    )
    return ops._gelu_tanh(self)


@body_of('gelu_(Tensor(a!) self, *, str approximate="none") -> Tensor(a!)', variants="nn")
def _gelu_in_place(self: Any, approximate: Any) -> Any:
    """In-place gelu."""
    if approximate == "none":
        return ops._gelu_erf_(self)
    ops.check(
        approximate == "tanh",
        "gelu_: expected approximate to be 'none' or 'tanh', got ",
        approximate,
    )
    return ops._gelu_tanh_(self)


backward_op(
    "_gelu_erf(Tensor self) -> Tensor",
    doc="Gelu by the error function.",
    pointwise=lambda self: self * normal_cdf(self),
    dtypes=FLOATS,
    grad={"self": "_gelu_erf_backward(grad, self)"},
    inplace="",
)


def _gelu_erf_slope(self: Any) -> Any:
    density = exp(self * self * -0.5) * 0.3989422804014327
    return normal_cdf(self) + self * density


backward_op(
    "_gelu_erf_backward(Tensor grad_output, Tensor self) -> Tensor",
    doc="grad_output times the derivative of gelu at self.",
    pointwise=lambda grad_output, self: grad_output * _gelu_erf_slope(self),
    dtypes=FLOATS,
    grad={
        "grad_output": "_gelu_erf_backward(grad, self)",
        "self": "grad * grad_output * "
        "((2 - self.square()) * ((self.square() * -0.5).exp() * 0.3989422804014327))",
    },
)


def _gelu_tanh_inner(self: Any) -> Any:
    return tanh(_SQRT_2_OVER_PI * (self + _CUBIC * self * self * self))


def _gelu_tanh_slope(self: Any) -> Any:
    t = _gelu_tanh_inner(self)
    inner_slope = _SQRT_2_OVER_PI * (1 + 3 * _CUBIC * self * self)
    return 0.5 * (1 + t) + 0.5 * self * (1 - t * t) * inner_slope


backward_op(
    "_gelu_tanh(Tensor self) -> Tensor",
    doc="Gelu by its tanh approximation.",
    pointwise=lambda self: self * 0.5 * (1 + _gelu_tanh_inner(self)),
    dtypes=FLOATS,
    grad={"self": "_gelu_tanh_backward(grad, self)"},
    inplace="",
)
backward_op(
    "_gelu_tanh_backward(Tensor grad_output, Tensor self) -> Tensor",
    doc="grad_output times the derivative of the tanh gelu at self.",
    pointwise=lambda grad_output, self: grad_output * _gelu_tanh_slope(self),
    dtypes=FLOATS,
    grad={
        "grad_output": "_gelu_tanh_backward(grad, self)",
        "self": "grad * grad_output * _gelu_tanh_second(self)",
    },
)


@backward_of("_gelu_tanh_second(Tensor self) -> Tensor")
def _gelu_tanh_second(self: Any) -> Any:
    """The second derivative of the tanh gelu."""
    square = self * self
    t = ((self + self * square * 0.044715) * 0.7978845608028654).tanh()
    slope = (square * 0.134145 + 1) * 0.7978845608028654
    curve = self * 0.21406444881780074  # 6 * 0.044715 * sqrt(2 / pi)
    inside = slope + self * 0.5 * (curve - t * 2 * slope * slope)
    return (1 - t * t) * inside
