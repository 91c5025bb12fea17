"""Operators of quantised networks on integers, which optimised programs have in the place of those
on numbers (weft.jit.passes.quantized): uint8, each tensor with its scale and zero point. Of others
(int8, int32, weights that a program packed) the numbers are taken here, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft.nn.functional as F
from weft import _C
from weft._C import Tensor
from weft.jit.archive import functions
from weft.jit.archive import quantized_operators as numbers
from weft.jit.archive.quantized import ConvPackedParams, LinearPackedParams
from weft.jit.frontend.language.functions import compile_function
from weft.jit.ir import Function
from weft.jit.passes import quantized as lowering

Integers = tuple[Tensor, float, int]


def _compiled(function: Callable[..., Any]) -> Callable[[], Function]:
    return lambda: compile_function(function).function


def _name(function: Any) -> str:
    return f"__torch__.{function.__module__}.{function.__qualname__}"


def integers(*stands_for: Any, **known: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function for others, by themselves or by names of operators."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for each in stands_for:
            name = each if isinstance(each, str) else _name(each)
            lowering.KNOWN[name] = lowering.Known(_compiled(function), **known)
        return function

    return register


def with_relu(plain: Any, relu: Any, **known: Any) -> Callable[..., Any]:
    """Registers a function for two: its last argument, `relu`, says for which."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        integers(plain, more=(False,), **known)(function)
        return integers(relu, more=(True,), **known)(function)

    return register


@integers(lowering.NUMBERS)
def dequantized(x: Integers) -> Tensor:
    return _C._aten._dequantize(x[0], x[1], x[2])


@integers(lowering.QUANTIZE)
def quantized(x: Tensor, scale: float, zero_point: int) -> Integers:
    return _C._aten._quantize(x, scale, zero_point, _C.uint8), scale, zero_point


def seldom(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks what is done for numbers that are no integers of 8 bits."""
    lowering.KNOWN[_name(function)] = lowering.Known(seldom=True)
    return function


for _each in (
    numbers.conv_transpose, numbers.matmul, numbers.hardswish, numbers.sigmoid, numbers.leaky_relu,
    numbers.prelu, numbers.softmax, numbers.batch_norm, numbers.batch_norm_relu, numbers.layer_norm,
    numbers.group_norm, numbers.instance_norm,
):  # fmt: skip
    lowering.KNOWN[_name(_each)] = lowering.Known(rounded=True)


@integers(numbers.quantize_per_tensor)
def quantize_per_tensor(self: Tensor, step: float, zero_point: int, kind: int) -> Integers:
    dtype = _C.uint8
    if kind == 12:
        dtype = _C.int8
    elif kind == 14:
        dtype = _C.int32
    elif kind != 13:
        raise RuntimeError(f"quantize_per_tensor: expected a quantised dtype, got number {kind}")
    return _C._aten._quantize(self, step, zero_point, dtype), step, zero_point


@integers(numbers.dequantize)
def dequantize(self: Integers) -> Tensor:
    return dequantized(self)


# Layers -------------------------------------------------------------------------------------------


@seldom
def _linear_of_numbers(x: Integers, w: LinearPackedParams, relu: bool) -> Tensor:
    sums = F.linear(dequantized(x), w.weight(), w.bias)
    return sums.relu() if relu else sums


@with_relu(numbers.linear, numbers.linear_relu, rounded=True)
def linear(x: Integers, w: LinearPackedParams, scale: float, zero: int, relu: bool) -> Integers:
    q, step, start = x
    if q.dtype == _C.uint8 and w.integers.dtype == _C.int8:
        y = _C._aten._quantized_linear(
            q, step, start, w.integers, w.scales, w.zero_points, w.bias, relu, scale, zero
        )
        return y, scale, zero
    return quantized(_linear_of_numbers(x, w, relu), scale, zero)


@seldom
def _dynamic_of_numbers(x: Tensor, w: LinearPackedParams, reduce: bool, relu: bool) -> Tensor:
    y = F.linear(numbers.rounded_by_range(x, reduce), w.weight(), w.bias)
    return y.relu() if relu else y


@with_relu(numbers.linear_dynamic, numbers.linear_relu_dynamic)
def linear_dynamic(x: Tensor, w: LinearPackedParams, reduce_range: bool, relu: bool) -> Tensor:
    if w.integers.dtype == _C.int8:
        return _C._aten._quantized_linear_dynamic(
            x.detach(), w.integers, w.scales, w.zero_points, w.bias, relu, reduce_range
        )
    return _dynamic_of_numbers(x, w, reduce_range, relu)


@seldom
def _conv_of_numbers(x: Integers, p: ConvPackedParams, relu: bool) -> Tensor:
    sums = numbers._convolution(dequantized(x), p, False)
    return sums.relu() if relu else sums


@with_relu(numbers.conv, numbers.conv_relu, rounded=True)
def conv(x: Integers, p: ConvPackedParams, scale: float, zero: int, relu: bool) -> Integers:
    q, step, start = x
    if q.dtype == _C.uint8 and p.integers.dtype == _C.int8:
        weight, stride, padding, dilation = p.integers, p.stride, p.padding, p.dilation
        line = weight.dim() == 4 and q.dim() == 3  # one of images with a single row
        if line:
            q = q.unsqueeze(2)
            if len(stride) == 1:
                stride, padding, dilation = [1] + stride, [0] + padding, [1] + dilation
        y = _C._aten._quantized_conv(
            q, step, start, weight, p.scales, p.zero_points, p.bias, stride, padding, dilation,
            p.groups, relu, scale, zero,
        )  # fmt: skip
        return y.squeeze(2) if line else y, scale, zero
    return quantized(_conv_of_numbers(x, p, relu), scale, zero)


# Elements -----------------------------------------------------------------------------------------


@with_relu(numbers.add, numbers.add_relu, rounded=True)
def add(a: Integers, b: Integers, scale: float, zero_point: int, relu: bool) -> Integers:
    if a[0].dtype == _C.uint8 and b[0].dtype == _C.uint8:
        y = _C._aten._quantized_add(a[0], a[1], a[2], b[0], b[1], b[2], relu, scale, zero_point)
        return y, scale, zero_point
    sums = dequantized(a) + dequantized(b)
    return quantized(sums.relu() if relu else sums, scale, zero_point)


@with_relu(numbers.mul, numbers.mul_relu, rounded=True)
def mul(a: Integers, b: Integers, scale: float, zero_point: int, relu: bool) -> Integers:
    if a[0].dtype == _C.uint8 and b[0].dtype == _C.uint8:
        y = _C._aten._quantized_mul(a[0], a[1], a[2], b[0], b[1], b[2], relu, scale, zero_point)
        return y, scale, zero_point
    products = dequantized(a) * dequantized(b)
    return quantized(products.relu() if relu else products, scale, zero_point)


def _requantized(x: Integers, scale: float, zero_point: int) -> Tensor:
    q, step, start = x
    if step == scale and start == zero_point and q.dtype == _C.uint8:
        return q
    return _C._aten._quantize(dequantized(x), scale, zero_point, _C.uint8)


@integers(numbers.cat)
def cat(qx: list[Integers], dim: int, scale: float | None, zero_point: int | None) -> Integers:
    first = qx[0]
    step = first[1] if scale is None else scale
    start = first[2] if zero_point is None else zero_point
    return _C.cat([_requantized(x, step, start) for x in qx], dim), step, start


@seldom
def _padded(x: Integers, pad: list[int], mode: str, value: float | None) -> Tensor:
    return F.pad(dequantized(x), pad, mode, 0.0 if value is None else value)


@integers(functions.pad, common=True)
def pad(input: Integers, pad: list[int], mode: str, value: float | None) -> Integers:
    return quantized(_padded(input, pad, mode, value), input[1], input[2])


@integers("aten::relu")
def relu(self: Integers) -> Integers:
    q, scale, zero_point = self
    return q.clamp_min(zero_point), scale, zero_point


@integers("aten::adaptive_avg_pool2d")
def adaptive_avg_pool2d(self: Integers, output_size: list[int]) -> Integers:
    q, scale, zero_point = self
    mean = F.adaptive_avg_pool2d(q.float() - zero_point, output_size)
    return _C._aten._quantize(mean, 1.0, zero_point, q.dtype), scale, zero_point
