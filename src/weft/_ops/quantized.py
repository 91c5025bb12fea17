"""Quantised networks of archives: integers q that stand for (q - zero_point) * scale, in plain
tensors of uint8. Programs have these operators for those of PyTorch's quantised tensors
(weft.jit.passes.quantized). Weights are int8, with one scale and zero point or one for each row."""

from __future__ import annotations

from weft._ops.table import op

_WEIGHT = "Tensor weight, Tensor scales, Tensor zero_points, Tensor? bias"
_INPUT = "Tensor input, float scale, int zero_point"
_OUT = "bool relu, float out_scale, int out_zero_point"
_PAIR = (
    "Tensor self, float scale, int zero_point, Tensor other, float other_scale, "
    f"int other_zero_point, {_OUT}"
)


def _op(schema: str, doc: str, shape: str | None = None) -> None:
    op(f"{schema} -> Tensor", doc=doc, tags=("nondifferentiable",), shape=shape)


_op(
    "_quantize(Tensor self, float scale, int zero_point, ScalarType dtype)",
    "The integers (uint8, int8 or int32) that stand for what is nearest to each number.",
    "self",
)
_op(
    "_dequantize(Tensor self, float scale, int zero_point)",
    "The numbers that integers stand for, in float32.",
    "self",
)
_op(
    f"_quantized_linear({_INPUT}, {_WEIGHT}, {_OUT})",
    "linear of quantised numbers, added up in 32 bits.",
)
_op(
    f"_quantized_linear_dynamic(Tensor input, {_WEIGHT}, bool relu, bool reduce_range)",
    "linear of numbers that are rounded to steps which span them, 255 or (reduce_range) 127.",
)
_op(
    f"_quantized_conv({_INPUT}, {_WEIGHT}, int[] stride, int[] padding, int[] dilation, "
    f"int groups, {_OUT})",
    "Convolution in one to three dimensions of quantised numbers, added up in 32 bits.",
)
_op(f"_quantized_add({_PAIR})", "The sum of quantised numbers.")
_op(f"_quantized_mul({_PAIR})", "The product of quantised numbers, element by element.")
