"""Operators of quantised networks, on the numbers that integers stand for (`quantized.py`)."""

from __future__ import annotations

import math

import weft.nn.functional as F
from weft import _C
from weft._C import Tensor
from weft._runtime.public import weft
from weft.jit.archive.functions import composed
from weft.jit.archive.quantized import ConvPackedParams, LinearPackedParams


def rounded(x: Tensor, scale: float, zero_point: int, low: int = 0, high: int = 255) -> Tensor:
    """The nearest numbers that integers from low to high stand for, without gradients."""
    q = ((x.detach() * (1.0 / scale)).round() + zero_point).clamp(low, high)
    return (q - zero_point) * scale


def _range(kind: int) -> tuple[int, int]:
    """The integers of qint8, quint8 and qint32, by PyTorch's numbers."""
    if kind == 12:
        return -128, 127
    if kind == 13:
        return 0, 255
    if kind == 14:
        return -2147483648, 2147483647
    raise RuntimeError(f"quantize_per_tensor: expected a quantised dtype, got number {kind}")


@composed("aten::quantize_per_tensor")
def quantize_per_tensor(self: Tensor, step: float, zero_point: int, kind: int) -> Tensor:
    low, high = _range(kind)
    return rounded(self, step, zero_point, low, high)


@composed("aten::quantize_per_tensor")
def quantize_per_tensor_of_tensors(
    self: Tensor, step: Tensor, zero_point: Tensor, kind: int
) -> Tensor:
    low, high = _range(kind)
    return rounded(self, float(step), int(zero_point), low, high)


@composed("aten::dequantize")
def dequantize(self: Tensor) -> Tensor:
    return self.clone()


def rounded_by_range(x: Tensor, reduce_range: bool) -> Tensor:
    """Rounded to steps that span what the tensor holds, and 0: 255 of them or, so that sums of
    products fit 16 bits, 127."""
    if x.numel() == 0:
        return x
    low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"linear_dynamic: expected finite numbers, got {low} to {high}")
    steps = 127 if reduce_range else 255
    scale = (high - low) / steps
    if scale < 1e-38:
        scale = 0.1
    least = 6.1e-5  # of the scales that PyTorch's kernels take
    if scale < least:
        more = least / scale
        low, scale = low * more, least
    return rounded(x, scale, min(max(round(-low / scale), 0), steps))


def _each_dim(name: str) -> list[str]:
    """The names of an operator of one to three dimensions."""
    return [name.format(dims) for dims in (1, 2, 3)]


# Linear layers ------------------------------------------------------------------------------------


@composed("quantized::linear_prepack", "quantized::linear_prepack_fp16")
def linear_prepack(W: Tensor, B: Tensor | None = None) -> LinearPackedParams:
    return LinearPackedParams(W, _C.ones(1), _C.zeros(1), None if B is None else B.detach())


@composed("quantized::linear_unpack", "quantized::linear_unpack_fp16")
def linear_unpack(W_prepack: LinearPackedParams) -> tuple[Tensor, Tensor | None]:
    return W_prepack.unpack()


@composed("quantized::linear_dynamic")
def linear_dynamic(X: Tensor, W_prepack: LinearPackedParams, reduce_range: bool = False) -> Tensor:
    return F.linear(rounded_by_range(X, reduce_range), W_prepack.weight(), W_prepack.bias)


@composed("quantized::linear_relu_dynamic")
def linear_relu_dynamic(
    X: Tensor, W_prepack: LinearPackedParams, reduce_range: bool = False
) -> Tensor:
    return linear_dynamic(X, W_prepack, reduce_range).relu()


@composed("quantized::linear_dynamic_fp16")
def linear_dynamic_fp16(X: Tensor, W_prepack: LinearPackedParams) -> Tensor:
    return F.linear(X, W_prepack.weight().half().float(), W_prepack.bias)


@composed("quantized::linear")
def linear(
    X: Tensor, W_prepack: LinearPackedParams, Y_scale_i: float, Y_zero_point_i: int
) -> Tensor:
    return rounded(F.linear(X, W_prepack.weight(), W_prepack.bias), Y_scale_i, Y_zero_point_i)


@composed("quantized::linear_relu")
def linear_relu(
    X: Tensor, W_prepack: LinearPackedParams, Y_scale_i: float, Y_zero_point_i: int
) -> Tensor:
    y = F.linear(X, W_prepack.weight(), W_prepack.bias).relu()
    return rounded(y, Y_scale_i, Y_zero_point_i)


@composed("quantized::linear_leaky_relu")
def linear_leaky_relu(
    X: Tensor, W_prepack: LinearPackedParams, Y_scale_i: float, Y_zero_point_i: int,
    negative_slope: float,
) -> Tensor:  # fmt: skip
    y = F.leaky_relu(F.linear(X, W_prepack.weight(), W_prepack.bias), negative_slope)
    return rounded(y, Y_scale_i, Y_zero_point_i)


# Convolutions -------------------------------------------------------------------------------------


@composed(*_each_dim("quantized::conv{}d_prepack"))
def conv_prepack(
    weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
    dilation: list[int], groups: int,
) -> ConvPackedParams:  # fmt: skip
    none = [0] * len(stride)
    return conv_transpose_prepack(weight, bias, stride, padding, none, dilation, groups)


@composed(*_each_dim("quantized::conv_transpose{}d_prepack"))
def conv_transpose_prepack(
    weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
    output_padding: list[int], dilation: list[int], groups: int,
) -> ConvPackedParams:  # fmt: skip
    bias = None if bias is None else bias.detach()
    return ConvPackedParams(
        weight, _C.ones(1), _C.zeros(1), bias, stride, padding, output_padding, dilation, groups
    )


@composed(
    *_each_dim("quantized::conv{}d_unpack"), *_each_dim("quantized::conv_transpose{}d_unpack")
)
def conv_unpack(packed_weights: ConvPackedParams) -> tuple[Tensor, Tensor | None]:
    return packed_weights.unpack()


def _convolution(x: Tensor, p: ConvPackedParams, transposed: bool) -> Tensor:
    weight = p.weight()
    line = weight.dim() == 4 and x.dim() == 3  # one of images with a single row
    if weight.dim() == 3:  # packed by a program
        weight, line = weight.unsqueeze(2), True
    stride, padding, dilation, more = p.stride, p.padding, p.dilation, p.output_padding
    if len(stride) == 1 and line:
        stride, padding, dilation, more = [1] + stride, [0] + padding, [1] + dilation, [0] + more
    if line:
        x = x.unsqueeze(2)
    y = weft.convolution(x, weight, p.bias, stride, padding, dilation, transposed, more, p.groups)
    return y.squeeze(2) if line else y


@composed(*_each_dim("quantized::conv{}d"))
def conv(
    qx: Tensor, packed_weight: ConvPackedParams, output_scale: float, output_zero_point: int
) -> Tensor:
    return rounded(_convolution(qx, packed_weight, False), output_scale, output_zero_point)


@composed(*_each_dim("quantized::conv{}d_relu"))
def conv_relu(
    qx: Tensor, packed_weight: ConvPackedParams, output_scale: float, output_zero_point: int
) -> Tensor:
    return rounded(_convolution(qx, packed_weight, False).relu(), output_scale, output_zero_point)


@composed(*_each_dim("quantized::conv_transpose{}d"))
def conv_transpose(
    qx: Tensor, packed_weight: ConvPackedParams, output_scale: float, output_zero_point: int
) -> Tensor:
    return rounded(_convolution(qx, packed_weight, True), output_scale, output_zero_point)


# Elements and rows --------------------------------------------------------------------------------


@composed("quantized::add")
def add(qa: Tensor, qb: Tensor, scale: float, zero_point: int) -> Tensor:
    return rounded(qa + qb, scale, zero_point)


@composed("quantized::add_relu")
def add_relu(qa: Tensor, qb: Tensor, scale: float, zero_point: int) -> Tensor:
    return rounded((qa + qb).relu(), scale, zero_point)


@composed("quantized::mul")
def mul(qa: Tensor, qb: Tensor, scale: float, zero_point: int) -> Tensor:
    return rounded(qa * qb, scale, zero_point)


@composed("quantized::mul_relu")
def mul_relu(qa: Tensor, qb: Tensor, scale: float, zero_point: int) -> Tensor:
    return rounded((qa * qb).relu(), scale, zero_point)


@composed("quantized::matmul")
def matmul(qa: Tensor, qb: Tensor, scale: float, zero_point: int) -> Tensor:
    return rounded(qa @ qb, scale, zero_point)


# With a number the scale of the result follows from that of the tensor: nothing is rounded.


@composed("quantized::add", "quantized::add_scalar")
def add_number(qa: Tensor, b: float) -> Tensor:
    return qa + b


@composed("quantized::add_relu", "quantized::add_scalar_relu")
def add_number_relu(qa: Tensor, b: float) -> Tensor:
    return (qa + b).relu()


@composed("quantized::mul", "quantized::mul_scalar")
def mul_number(qa: Tensor, b: float) -> Tensor:
    return qa * b


@composed("quantized::mul_relu", "quantized::mul_scalar_relu")
def mul_number_relu(qa: Tensor, b: float) -> Tensor:
    return (qa * b).relu()


@composed("quantized::cat")
def cat(qx: list[Tensor], dim: int, scale: float | None, zero_point: int | None) -> Tensor:
    joined = _C.cat(qx, dim)
    if scale is None or zero_point is None:
        return joined
    return rounded(joined, scale, zero_point)


@composed("quantized::cat_relu")
def cat_relu(qx: list[Tensor], dim: int, scale: float | None, zero_point: int | None) -> Tensor:
    return cat(qx, dim, scale, zero_point).relu()


@composed("quantized::relu6")
def relu6(qx: Tensor, inplace: bool = False) -> Tensor:
    return F.relu6(qx)


@composed("quantized::hardswish")
def hardswish(input: Tensor, output_scale: float, output_zero_point: int) -> Tensor:
    return rounded(F.hardswish(input), output_scale, output_zero_point)


@composed("quantized::sigmoid")
def sigmoid(qx: Tensor, output_scale: float, output_zero_point: int) -> Tensor:
    return rounded(qx.sigmoid(), output_scale, output_zero_point)


@composed("quantized::leaky_relu")
def leaky_relu(
    qx: Tensor, negative_slope: float, inplace: bool, output_scale: float, output_zero_point: int
) -> Tensor:
    return rounded(F.leaky_relu(qx, negative_slope), output_scale, output_zero_point)


@composed("quantized::elu")
def elu(self: Tensor, output_scale: float, output_zero_point: int, alpha: float = 1.0) -> Tensor:
    return rounded(F.elu(self, alpha), output_scale, output_zero_point)


@composed("quantized::celu")
def celu(self: Tensor, output_scale: float, output_zero_point: int, alpha: float = 1.0) -> Tensor:
    return rounded(F.celu(self, alpha), output_scale, output_zero_point)


@composed("quantized::prelu")
def prelu(qx: Tensor, weight: Tensor, output_scale: float, output_zero_point: int) -> Tensor:
    return rounded(F.prelu(qx, weight), output_scale, output_zero_point)


@composed("quantized::softmax")
def softmax(qx: Tensor, dim: int, output_scale: float, output_zero_point: int) -> Tensor:
    return rounded(qx.softmax(dim), output_scale, output_zero_point)


@composed("quantized::dropout")
def dropout(
    self: Tensor,
    output_scale: float,
    output_zero_point: int,
    p: float = 0.5,
    training: bool = False,
) -> Tensor:
    return rounded(F.dropout(self, p, training), output_scale, output_zero_point)


@composed("quantized::batch_norm", *_each_dim("quantized::batch_norm{}d"))
def batch_norm(
    qx: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float,
    output_scale: float, output_zero_point: int,
) -> Tensor:  # fmt: skip
    y = F.batch_norm(qx, mean, var, weight, bias, eps=eps)
    return rounded(y, output_scale, output_zero_point)


@composed("quantized::batch_norm2d_relu", "quantized::batch_norm3d_relu")
def batch_norm_relu(
    qx: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float,
    output_scale: float, output_zero_point: int,
) -> Tensor:  # fmt: skip
    y = F.batch_norm(qx, mean, var, weight, bias, eps=eps).relu()
    return rounded(y, output_scale, output_zero_point)


@composed("quantized::layer_norm")
def layer_norm(
    input: Tensor, normalized_shape: list[int], weight: Tensor | None, bias: Tensor | None,
    eps: float, output_scale: float, output_zero_point: int,
) -> Tensor:  # fmt: skip
    y = F.layer_norm(input, normalized_shape, weight, bias, eps)
    return rounded(y, output_scale, output_zero_point)


@composed("quantized::group_norm")
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float,
    output_scale: float, output_zero_point: int,
) -> Tensor:  # fmt: skip
    y = F.group_norm(input, num_groups, weight, bias, eps)
    return rounded(y, output_scale, output_zero_point)


@composed("quantized::instance_norm")
def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, output_scale: float,
    output_zero_point: int,
) -> Tensor:  # fmt: skip
    y = F.instance_norm(input, weight=weight, bias=bias, eps=eps)
    return rounded(y, output_scale, output_zero_point)
