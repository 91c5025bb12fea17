"""Conversions between all element types, and floats of 8 and 16 bits by integer arithmetic."""

from __future__ import annotations

from .expr import Complex, Value, bitcast, cast, node, select, source
from .kernel import Kernel
from .types import BF16, C32, C64, COMPUTE_DTYPES, F16, F32, U8, U16, U32, DType, Float8


def storage(d: DType) -> DType:
    """The type a kernel loads and stores: what is too small to compute in is its bits."""
    return d if d in COMPUTE_DTYPES else {8: U8, 16: U16, 32: U32}[d.bits]


def kernel(to: DType, old: DType) -> Kernel:
    """Contiguous `old` to contiguous `to`: operands are destination and source."""
    x = source("input", 0, storage(old))
    y = x if to == old else encode(decode(x, old), to)
    return Kernel([storage(to), storage(old)], [y], {("input", 0): 1})


def decode(x: Value, d: DType) -> Value:
    """What is stored as `d`, in the type that computes with it."""
    if d == C32:
        return Complex(decode(cast(x, U16), F16), decode(cast(x >> 16, U16), F16))
    if d == F16:
        return node("f16_to_f32", F32, x)
    if d.float8 is not None:
        return f8_to_f32(x, d.float8)
    return bf16_to_f32(x) if d == BF16 else x


def encode(x: Value, d: DType) -> Value:
    """To small floats by way of float32, as PyTorch does."""
    if d in COMPUTE_DTYPES:
        return cast(x, d)
    if d == C32:
        single = cast(x, C64)
        return cast(encode(single.real, F16), U32) | cast(encode(single.imag, F16), U32) << 16
    single = cast(x.real if isinstance(x, Complex) else x, F32)
    if d.float8 is not None:
        return f32_to_f8(single, d.float8)
    return node("f32_to_f16", U16, single) if d == F16 else f32_to_bf16(single)


def rounded(x: Value, d: DType) -> Value:
    """A float32 as a small float would hold it."""
    return decode(encode(x, d), d)


def bf16_to_f32(bits: Value) -> Value:
    """Exact: the upper half of a float32."""
    return bitcast(cast(bits, U32) << 16, F32)


def f32_to_bf16(x: Value) -> Value:
    """Rounds to nearest even on the integer image; NaN keeps a set mantissa bit."""
    raw = bitcast(x, U32)
    rounded = (raw + 0x7FFF + ((raw >> 16) & 1)) >> 16
    return cast(select(x != x, (raw >> 16) | 0x40, rounded), U16)


def f8_to_f32(bits: Value, format: Float8) -> Value:
    """Exact: the exponent and mantissa in place, then scaled by a power of 2: denormals too."""
    raw = cast(bits, U32)
    magnitude = raw & 0x7F
    scale = 2.0 ** (127 - format.bias)
    body = bitcast(bitcast(magnitude << (23 - format.mantissa), F32) * scale, U32)
    if not format.negative_zero:
        body = select(raw == 0x80, 0x7FC00000, body)
    else:
        body = select(magnitude > format.largest, 0x7FC00000, body)
        if format.overflow not in (format.largest, format.nan):
            body = select(magnitude == format.overflow, 0x7F800000, body)
    return bitcast(body | ((raw & 0x80) << 24), F32)


def f32_to_f8(x: Value, format: Float8) -> Value:
    """Rounds to nearest even; denormals by letting an addition round at their last bit."""
    raw = bitcast(x, U32)
    magnitude = raw & 0x7FFFFFFF
    dropped = 23 - format.mantissa
    to_bias = (1 << (dropped - 1)) - 1 - ((127 - format.bias) << 23)
    normal = (magnitude + (to_bias & 0xFFFFFFFF) + ((magnitude >> dropped) & 1)) >> dropped
    power = 24 - format.bias - format.mantissa
    small = bitcast(bitcast(magnitude, F32) + 2.0**power, U32) - ((127 + power) << 23)
    result = select(normal > format.largest, format.overflow, normal)
    result = select(magnitude < (128 - format.bias) << 23, small, result)
    result = select(magnitude > 0x7F800000, format.nan, result)
    signed = result | ((raw >> 24) & 0x80)
    if not format.negative_zero:
        signed = select((result & 0x7F) == 0, result, signed)
    return cast(signed, U8)


def f16_to_f32(bits: Value) -> Value:
    """Exact: the exponent and mantissa in place, then scaled by 2^112: denormals too."""
    raw = cast(bits, U32)
    magnitude = (raw & 0x7FFF) << 13
    finite = bitcast(bitcast(magnitude, F32) * 2.0**112, U32)
    special = magnitude | 0x7F800000  # infinities and NaN, made quiet
    special = select((raw & 0x3FF) != 0, special | 0x400000, special)
    body = select((raw & 0x7C00) == 0x7C00, special, finite)
    return bitcast(body | ((raw & 0x8000) << 16), F32)


def f32_to_f16(x: Value) -> Value:
    """Rounds to nearest even; denormals by letting an addition round at their last bit."""
    raw = bitcast(x, U32)
    sign = (raw >> 16) & 0x8000
    magnitude = raw & 0x7FFFFFFF
    normal = (magnitude + 0xC8000FFF + ((magnitude >> 13) & 1)) >> 13
    small = bitcast(bitcast(magnitude, F32) + 0.5, U32) - 0x3F000000
    result = select(magnitude < 0x38800000, small, normal)
    result = select(magnitude >= 0x477FF000, 0x7C00, result)
    nan_bits = 0x7E00 | ((magnitude >> 13) & 0x1FF)
    result = select(magnitude > 0x7F800000, nan_bits, result)
    return cast(result | sign, U16)
