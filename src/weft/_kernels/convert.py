"""Conversions between all element types, and floats of 8 and 16 bits by integer arithmetic."""

from __future__ import annotations

from .expr import Complex, Value, bitcast, cast, node, select, source
from .kernel import Kernel
from .types import BF16, COMPUTE_DTYPES, F8E4M3FN, F16, F32, U8, U16, U32, DType


def storage(d: DType) -> DType:
    """The type a kernel loads and stores: small floats are their bits."""
    return d if d in COMPUTE_DTYPES else U8 if d.bits == 8 else U16


def kernel(to: DType, old: DType) -> Kernel:
    """Contiguous `old` to contiguous `to`: operands are destination and source."""
    x = source("input", 0, storage(old))
    y = x if to == old else _encode(_decode(x, old), to)
    return Kernel([storage(to), storage(old)], [y], {("input", 0): 1})


def _decode(x: Value, d: DType) -> Value:
    if d == F16:
        return node("f16_to_f32", F32, x)
    if d == F8E4M3FN:
        return f8e4m3fn_to_f32(x)
    return bf16_to_f32(x) if d == BF16 else x


def _encode(x: Value, d: DType) -> Value:
    """To small floats by way of float32, as PyTorch does."""
    if d in COMPUTE_DTYPES:
        return cast(x, d)
    single = cast(x.real if isinstance(x, Complex) else x, F32)
    if d == F8E4M3FN:
        return f32_to_f8e4m3fn(single)
    return node("f32_to_f16", U16, single) if d == F16 else f32_to_bf16(single)


def rounded(x: Value, d: DType) -> Value:
    """A float32 as a small float would hold it."""
    return _decode(_encode(x, d), d)


def bf16_to_f32(bits: Value) -> Value:
    """Exact: the upper half of a float32."""
    return bitcast(cast(bits, U32) << 16, F32)


def f32_to_bf16(x: Value) -> Value:
    """Rounds to nearest even on the integer image; NaN keeps a set mantissa bit."""
    raw = bitcast(x, U32)
    rounded = (raw + 0x7FFF + ((raw >> 16) & 1)) >> 16
    return cast(select(x != x, (raw >> 16) | 0x40, rounded), U16)


def f8e4m3fn_to_f32(bits: Value) -> Value:
    """Exact, as float16's: scaled by 2^120. The greatest magnitude is NaN."""
    raw = cast(bits, U32)
    magnitude = raw & 0x7F
    finite = bitcast(bitcast(magnitude << 20, F32) * 2.0**120, U32)
    body = select(magnitude == 0x7F, 0x7FC00000, finite)
    return bitcast(body | ((raw & 0x80) << 24), F32)


def f32_to_f8e4m3fn(x: Value) -> Value:
    """Rounds to nearest even; what is too large, infinity too, becomes the greatest number, 448."""
    raw = bitcast(x, U32)
    magnitude = raw & 0x7FFFFFFF
    held = select(magnitude < 0x43E00000, magnitude, 0x43E00000)
    normal = (held + 0xC407FFFF + ((held >> 20) & 1)) >> 20
    small = bitcast(bitcast(magnitude, F32) + 2.0**14, U32) - 0x46800000
    result = select(magnitude < 0x3C800000, small, normal)
    result = select(magnitude > 0x7F800000, 0x7F, result)
    return cast(result | ((raw >> 24) & 0x80), U8)


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
