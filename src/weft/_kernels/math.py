"""exp, log, pow, the hyperbolic functions: our own, written in the kernel language.

Every function takes and gives one floating value, float32 or float64; the error bounds that
tests/test_kernels_math.py holds them to are in docs/kernels.md. Nothing branches: special values
come out of the arithmetic or of a `select` at the end.
"""

from __future__ import annotations

import math as _std
from collections.abc import Callable
from math import inf, nan

from . import coefficients as tables
from .expr import Value, bitcast, cast, node, select, value_of
from .types import F32, F64, I32, I64, DType

LN2, LOG2_E = _std.log(2.0), 1.4426950408889634
# log(2) in two parts, the first with so few bits that a whole number times it is exact.
LN2_HIGH = {F32: 0.693359375, F64: float.fromhex("0x1.62e42feep-1")}
LN2_LOW = {F32: -2.1219444005469057e-4, F64: float.fromhex("0x1.a39ef35793c76p-33")}
# Adding this to a small number leaves the nearest whole number in the low mantissa bits.
SHIFTER = {F32: 12582912.0, F64: 6755399441055744.0}
MANTISSA = {F32: 23, F64: 52}
BIAS = {F32: 127, F64: 1023}


def integer_of(d: DType) -> DType:
    """The signed integer type of the same width."""
    return I32 if d == F32 else I64


def fma(a: Value | float, b: Value | float, c: Value | float) -> Value:
    d = next(v.dtype for v in (a, b, c) if isinstance(v, Value))
    return node("fma", d, value_of(a, d), value_of(b, d), value_of(c, d))


def horner(x: Value, coefficients: tuple[float, ...]) -> Value:
    """The polynomial in x, constant coefficient first."""
    result = value_of(coefficients[-1], x.dtype)
    for c in reversed(coefficients[:-1]):
        result = fma(result, x, c)
    return result


def by_type(x: Value, f32: tuple[float, ...], f64: tuple[float, ...]) -> tuple[float, ...]:
    return f32 if x.dtype == F32 else f64


def fabs(x: Value) -> Value:
    return node("fabs", x.dtype, x)


def in_f64(f):
    """A float32 variant that computes in float64 and rounds once."""

    def apply(x: Value) -> Value:
        return cast(f(cast(x, F64)), F32) if x.dtype == F32 else f(x)

    apply.__name__, apply.__doc__ = f.__name__, f.__doc__
    return apply


# --- exponentials ---------------------------------------------------------------------------------


def clamp(x: Value, low: float, high: float) -> Value:
    """x within bounds; NaN stays NaN (the order of operands is that of minps and maxps)."""
    x = select(value_of(high, x.dtype) < x, high, x)
    return select(value_of(low, x.dtype) > x, low, x)


def scale2(x: Value, n: Value) -> Value:
    """x * 2^n for a whole number n within twice the exponent range, rounded once.

    One instruction on v4; elsewhere 2^n is built as two factors, so that results that overflow or
    become denormal come out right.
    """
    return node("scale2", x.dtype, x, n)


def scale2_normal(x: Value, n: Value) -> Value:
    """scale2 where 2^n and the result are normal numbers: two multiplications less below v4."""
    return node("scale2", x.dtype, x, n, value="normal")


def scale2_directly(x: Value, n: Value) -> Value:
    """scale2 where there is no instruction for it, and 2^n and the result are normal numbers."""
    return x * power_of_two(whole_bits(n), x.dtype)


def scale2_by_factors(x: Value, n: Value) -> Value:
    """scale2 where there is no instruction for it."""
    i = whole_bits(n)
    half = i >> 1
    return x * power_of_two(half, x.dtype) * power_of_two(i - half, x.dtype)


def whole_bits(n: Value) -> Value:
    """A small whole number as a signed integer of the same width. NaN gives any integer."""
    d = n.dtype
    shifted = bitcast(n + SHIFTER[d], integer_of(d))
    return shifted - bitcast(value_of(SHIFTER[d], d), integer_of(d))


def power_of_two(i: Value, d: DType) -> Value:
    """2^i for an integer in the exponent range of `d`."""
    biased = (i + BIAS[d]) << MANTISSA[d]
    return bitcast(biased, d)


def _reduce_exp(x: Value) -> tuple[Value, Value, Value]:
    """n = round(x / log 2); x - n log 2 by Cody and Waite as an exact head less a small `rest`."""
    d = x.dtype
    n = node("roundeven", d, x * LOG2_E)
    return n, fma(n, -LN2_HIGH[d], x), n * LN2_LOW[d]


def _expm1_reduced(head: Value, rest: Value, table: tuple[float, ...]) -> Value:
    """e^r - 1 for r = head - rest, |r| <= log(2) / 2.

    `rest` joins the small terms, so that the rounding error of r does not count.
    """
    r = head - rest
    return head + fma(r * r, horner(r, table), -rest)


def by_target(f):
    """Makes the function a node where float32 has another form on some targets (lookup.py)."""
    PORTABLE[f.__name__] = f

    def apply(x: Value) -> Value:
        return node(f.__name__, F32, x) if x.dtype == F32 else f(x)

    apply.__name__, apply.__doc__ = f.__name__, f.__doc__
    return apply


#: by the name of their node, the forms for targets that have no other
PORTABLE: dict[str, Callable[[Value], Value]] = {}


@by_target
def exp(x: Value) -> Value:
    """e^x: Cody-Waite reduction to |r| <= log(2) / 2, minimax polynomial, exact scaling."""
    low, high = (-104.0, 89.0) if x.dtype == F32 else (-746.0, 710.0)
    n, head, rest = _reduce_exp(clamp(x, low, high))
    return scale2(1.0 + _expm1_reduced(head, rest, by_type(x, tables.EXP_32, tables.EXP_64)), n)


def exp2(x: Value) -> Value:
    """2^x: the fraction by a minimax polynomial, exact scaling."""
    low, high = (-151.0, 129.0) if x.dtype == F32 else (-1076.0, 1025.0)
    x = clamp(x, low, high)
    n = node("roundeven", x.dtype, x)
    r = x - n
    tail = horner(r, by_type(x, tables.EXP2_32, tables.EXP2_64))
    return scale2(fma(r, tail, 1.0), n)


def _expm1_parts(x: Value) -> tuple[Value, Value]:
    """e^x - 1 over a scale, and the scale: 1 near 0, beyond 4, since the whole overflows late."""
    low, high = (-26.0, 89.0) if x.dtype == F32 else (-56.0, 710.6)
    n, head, rest = _reduce_exp(clamp(x, low, high))
    p = _expm1_reduced(head, rest, by_type(x, tables.EXPM1_32, tables.EXPM1_64))
    quarter = power_of_two(whole_bits(n) - 2, x.dtype)
    near = n == 0
    parts = select(near, p, fma(quarter, p, quarter - 0.25))
    return parts, select(near, 1.0, value_of(4.0, x.dtype))


def expm1(x: Value) -> Value:
    """e^x - 1: as exp; 2^n (e^r - 1) + (2^n - 1)."""
    part, scale = _expm1_parts(x)
    return select(x == 0, x, scale * part)


@by_target
def sigmoid(x: Value) -> Value:
    """1 / (1 + e^-x), by e^-|x| so that nothing overflows and small results keep their bits."""
    e = exp(-fabs(x))
    return select(x < 0, e, 1.0) / (1.0 + e)


@by_target
def tanh(x: Value) -> Value:
    """A minimax polynomial up to 0.6, beyond 1 - 2 / (e^(2 |x|) + 1)."""
    d = x.dtype
    a = fabs(x)
    z = a * a
    near = fma(a * z, horner(z, by_type(x, tables.TANH_32, tables.TANH_64)), a)
    limit = 10.0 if d == F32 else 20.0
    n, head, rest = _reduce_exp(2.0 * select(value_of(limit, d) < a, limit, a))
    p = _expm1_reduced(head, rest, by_type(x, tables.EXP_32, tables.EXP_64))
    far = 1.0 - 2.0 / (scale2_normal(1.0 + p, n) + 1.0)
    return node("copysign", d, select(a < 0.6, near, far), x)


@in_f64
def sinh(x: Value) -> Value:
    """(t + t / (t + 1)) / 2 for t = e^|x| - 1, in parts."""
    part, scale = _expm1_parts(fabs(x))
    result = 0.5 * scale * (part + part / (scale * part + 1.0))
    return node("copysign", x.dtype, result, x)


@in_f64
def cosh(x: Value) -> Value:
    """(e^|x| + e^-|x|) / 2, by a quarter of e^|x|, which overflows later."""
    n, head, rest = _reduce_exp(clamp(fabs(x), 0.0, 712.0))
    quarter = scale2(1.0 + _expm1_reduced(head, rest, tables.EXP_64), n - 2.0)
    return 2.0 * (quarter + 0.0625 / quarter)


# --- logarithms -----------------------------------------------------------------------------------

SQRT_HALF_BITS = {F32: 0x3F3504F3, F64: 0x3FE6A09E667F3BCD}
SMALLEST_NORMAL = {F32: 2.0**-126, F64: 2.0**-1022}


def _split(x: Value) -> tuple[Value, Value, Value]:
    """x = m 2^e with m in [sqrt(1/2), sqrt(2)): m, e as an integer, e as a float. x is normal."""
    d = x.dtype
    offset = bitcast(x, integer_of(d)) - SQRT_HALF_BITS[d]
    e = offset >> MANTISSA[d]
    mantissa = offset & ((1 << MANTISSA[d]) - 1)
    return bitcast(mantissa + SQRT_HALF_BITS[d], d), e, cast(e, d)


def _normal(x: Value) -> tuple[Value, Value]:
    """x, scaled up if it is denormal, and the exponent to subtract then."""
    d = x.dtype
    small = x < SMALLEST_NORMAL[d]
    bits = float(MANTISSA[d] + 1)
    return select(small, x * 2.0**bits, x), select(small, bits, value_of(0.0, d))


def _log_special(x: Value, result: Value) -> Value:
    """The logarithm's values at and below zero, at infinity and NaN."""
    result = select(x < inf, result, x)  # infinity, NaN
    result = select(x == 0, -inf, result)
    return select(x < 0, nan, result)


def _log1p_parts(f: Value) -> tuple[Value, Value]:
    """log(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1] as f and what is to be added.

    float32: minimax polynomial. float64: 2 atanh(s) for s = f / (2 + f), arranged so that the
    rounding error of s counts little.
    """
    if f.dtype == F32:
        square = f * f
        return f, fma(square * f, horner(f, tables.LOG_32), -0.5 * square)
    s = f / (2.0 + f)
    z = s * s
    half = 0.5 * f * f
    rest = z * horner(z, tables.LOG_64)
    return f, s * (half + rest) - half


@by_target
def log(x: Value) -> Value:
    """log x = e log 2 + log m."""
    d = x.dtype
    y, shift = _normal(x)
    m, _, e = _split(y)
    e = e - shift
    head, tail = _log1p_parts(m - 1.0)
    result = fma(e, LN2_HIGH[d], head + fma(e, LN2_LOW[d], tail))
    return _log_special(x, result)


def log1p(x: Value) -> Value:
    """log(1 + x): as log of u = 1 + x, with the rounding error of u put back."""
    d = x.dtype
    u = 1.0 + x
    lost = select(fabs(x) < 1.0, x - (u - 1.0), 1.0 - (u - x))
    m, e, whole = _split(u)
    f = (m - 1.0) + lost * power_of_two(select(x < 2.0**60, -e, -60), d)
    head, tail = _log1p_parts(f)
    result = fma(whole, LN2_HIGH[d], head + fma(whole, LN2_LOW[d], tail))
    result = select(x < inf, result, x)
    result = select(x == -1.0, -inf, result)
    result = select(x < -1.0, nan, result)
    return select(x == 0, x, result)


@in_f64
def log2(x: Value) -> Value:
    """e + log(m) / log 2, the product in two parts; exact at powers of two."""
    y, shift = _normal(x)
    m, _, e = _split(y)
    head, tail = _log1p_parts(m - 1.0)
    return _log_special(x, _scaled_log(head, tail, LOG2_HIGH, LOG2_LOW, e - shift, 0.0))


@in_f64
def log10(x: Value) -> Value:
    """(e log 2 + log m) / log 10, the products in two parts."""
    y, shift = _normal(x)
    m, _, e = _split(y)
    e = e - shift
    head, tail = _log1p_parts(m - 1.0)
    result = _scaled_log(head, tail, LOG10_HIGH, LOG10_LOW, e * LOG10_2_HIGH, e * LOG10_2_LOW)
    return _log_special(x, result)


# 1 / log(2), 1 / log(10) and log10(2) in two parts, the first with 26 bits or fewer.
LOG2_HIGH, LOG2_LOW = float.fromhex("0x1.715476p+0"), float.fromhex("0x1.4ae0bf85ddf44p-26")
LOG10_HIGH, LOG10_LOW = float.fromhex("0x1.bcb7b1p-2"), float.fromhex("0x1.49b9438ca9aaep-28")
LOG10_2_HIGH, LOG10_2_LOW = (
    float.fromhex("0x1.34413509f6p-2"),
    float.fromhex("0x1.9fef311f12b36p-42"),
)


def _scaled_log(
    head: Value, tail: Value, high: float, low: float, whole: Value, rest: Value | float
) -> Value:
    """whole + rest + (head + tail) (high + low), the products with `high` exact.

    The upper half of head + tail has 26 bits, so its product with `high` is exact.
    """
    total = head + tail
    upper = bitcast(bitcast(total, I64) & -(1 << 27), F64)
    lower = tail - (upper - head)
    exact = upper * high
    small = fma(lower, high, (upper + lower) * low) + rest
    first = whole + exact
    return first + ((whole - first) + exact + small)


# --- roots and powers -----------------------------------------------------------------------------


def sqrt(x: Value) -> Value:
    """The square root, correctly rounded."""
    return node("sqrt", x.dtype, x)


def rsqrt(x: Value) -> Value:
    """1 / sqrt(x), rounded twice."""
    return 1.0 / sqrt(x)


def pow(x: Value, y: Value) -> Value:
    """x^y. float32: 2^(y log2 |x|) in float64, rounded once. float64: the C library's."""
    if x.dtype == F64:
        return node("call", F64, x, y, value="pow")
    wide = cast(fabs(x), F64)
    m, _, e = _split(wide)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    log2_x = fma(s * fma(z, horner(z, tables.LOG_40), 2.0), LOG2_E, e)
    log2_x = select(wide == 0, -inf, select(wide < inf, log2_x, wide))
    t = clamp(cast(y, F64) * log2_x, -200.0, 200.0)
    n = node("roundeven", F64, t)
    r = t - n
    power = fma(r, horner(r, tables.EXP2_40), 1.0) * power_of_two(whole_bits(n), F64)
    result = cast(power, F32)
    return _pow_special(x, y, result)


def _pow_special(x: Value, y: Value, result: Value) -> Value:
    """Signs and the exact cases of IEEE 754's pow."""
    whole = node("trunc", F32, y) == y
    half = 0.5 * y
    odd = whole & (node("trunc", F32, half) != half) & (fabs(y) < 2.0**24)
    signed = node("copysign", F32, result, x)
    result = select(odd, signed, result)
    result = select((x < 0) & (x > -inf) & ~whole, nan, result)
    one = (y == 0) | (x == 1.0) | ((x == -1.0) & (fabs(y) == inf))
    return select(one, 1.0, result)


def fmod(x: Value, y: Value, fused: bool) -> Value:
    """x - trunc(x / y) y without rounding, as long as the quotient is not too large for that.

    float32 in float64, where the product is exact; float64 by a fused multiply-add. The division
    may round up to the next whole number: then the rest has the wrong sign. Large quotients,
    infinities and zero divisors go to the C library.
    """
    if x.dtype == F64 and not fused:
        return node("call", F64, x, y, value="fmod")
    a, b = cast(x, F64), cast(y, F64)
    q = node("trunc", F64, a / b)
    rest = fma(-q, b, a)
    over = (rest != 0) & ((rest < 0) != (a < 0))
    rest = select(over, rest + node("copysign", F64, b, a), rest)
    fast = cast(node("copysign", F64, select(q == 0, a, rest), a), x.dtype)
    limit = 2.0**28 if x.dtype == F32 else 2.0**52
    usual = (fabs(q) < limit) & (fabs(b) < inf)
    return node("rare", x.dtype, ~usual, fast, x, y, value="fmodf" if x.dtype == F32 else "fmod")


# --- inverse hyperbolic functions -----------------------------------------------------------------


@in_f64
def asinh(x: Value) -> Value:
    """log1p(a + a^2 / (1 + sqrt(1 + a^2))) for a = |x|; log(a) + log 2 for large a."""
    a = fabs(x)
    square = a * a
    near = log1p(a + square / (1.0 + sqrt(1.0 + square)))
    result = select(a > 2.0**28, log(a) + LN2, near)
    return node("copysign", x.dtype, result, x)


@in_f64
def acosh(x: Value) -> Value:
    """log1p(t + sqrt(2 t + t^2)) for t = x - 1; log(x) + log 2 where the square is too large."""
    t = x - 1.0
    near = log1p(t + sqrt(2.0 * t + t * t))
    near = select(x < 1.0, nan, near)  # far below 1 the sum rounds to 0
    return select(x > 2.0**28, log(x) + LN2, near)


@in_f64
def atanh(x: Value) -> Value:
    """log1p(2 a / (1 - a)) / 2 for a = |x|."""
    a = fabs(x)
    return node("copysign", x.dtype, 0.5 * log1p(2.0 * a / (1.0 - a)), x)
