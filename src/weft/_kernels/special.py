"""erf, erfc and the normal distribution; the logarithm of gamma, its derivative, modified Bessel
functions."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan, pi

from . import coefficients as tables
from .expr import Value, cast, node, select, value_of
from .math import (
    by_type,
    clamp,
    exp,
    fabs,
    fma,
    horner,
    log,
    power_of_two,
    scale2_normal,
    sqrt,
    whole_bits,
)
from .types import F32, F64

Function = Callable[[Value], Value]
HALF_LOG_2_PI = 0.9189385332046728
# Bernoulli's numbers B2, B4, ... over 2k (2k - 1), and over 2k: Stirling's series and its slope.
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
STIRLING_SLOPE = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132)
# The slopes of lgamma and of half its slope at 1 and 2.
LOG2_ERFC = (-1.791635738423792, 6.210176632508329e-17)  # at 3/4, in two parts
AT_ONE, AT_TWO = (
    (-0.5772156649015329, 0.8224670334241132),
    (0.42278433509846714, 0.3224670334241132),
)


def erf(x: Value) -> Value:
    """x (1 + P(x^2)) at first; beyond, 1 - 2^L(|x|) with L the polynomial of log2(erfc), of
    which r is taken as exactly as the whole number n leaves it."""
    d = x.dtype
    split, end = (0.92, 3.95) if d == F32 else (0.75, 5.95)
    a = fabs(x)
    near = fma(x, horner(x * x, by_type(x, tables.ERF_32, tables.ERF_64)), x)
    if d == F32:
        # The power is at most 0.2 here, so its own relative error counts a fifth.
        exponent = horner(clamp(a, 0.5, end), tables.ERFC_32)
        n = node("roundeven", d, exponent)
        r = exponent - n
    else:
        high, low = LOG2_ERFC
        u = clamp(a, 0.75, end) - 0.75
        slope = horner(u, tables.ERFC_64)
        n = node("roundeven", d, fma(slope, u, high))
        r = fma(slope, u, (high - n) + low)
    tail = horner(r, by_type(x, tables.EXP2_32, tables.EXP2_64))
    power = fma(r, tail, 1.0) * power_of_two(whole_bits(n), d)
    far = node("copysign", d, select(a > end, value_of(1.0, d), 1.0 - power), x)
    return select(a < split, near, select(x != x, x, far))


def normal_cdf(x: Value) -> Value:
    """(1 + erf(x / sqrt 2)) / 2, to half a unit of its greatest values.

    float32: the tail beyond |x| is 2^L(|x|), L the polynomial of its logarithm; below -5.6 it is 0.
    """
    if x.dtype != F32:
        return 0.5 * (1.0 + erf(x * 0.7071067811865476))
    end = 5.6
    a = fabs(x)
    exponent = horner(select(a > end, value_of(end, F32), a), tables.NORMAL_TAIL_32)
    n = node("roundeven", F32, exponent)
    r = exponent - n
    tail = scale2_normal(fma(r, horner(r, tables.EXP2_32), 1.0), n)
    tail = select(a > end, 0.0, tail)
    return select(x < 0, tail, 1.0 - tail)


def erfc(x: Value) -> Value:
    """float32, in float64: exp(-a^2) P(t) / (1 + 2 a) for a = |x| and t = (a - 3.75) / (a + 3.75),
    as Shepherd and Laframboise do ("Chebyshev approximation of (1 + 2x) exp(x^2) erfc x", 1981).

    float64: the C library's.
    """
    if x.dtype == F64:
        return node("call", F64, x, value="erfc")
    wide = cast(x, F64)
    a = clamp(fabs(wide), 0.0, 10.2)
    scaled = horner((a - 3.75) / (a + 3.75), tables.ERFCX_32) / (1.0 + 2.0 * a)
    result = exp(-a * a) * scaled
    return cast(select(wide < 0, 2.0 - result, result), F32)


def erfinv(y: Value) -> Value:
    """x with erf x = y: y P(w) for w = -log(1 - y^2), in the tails y Q(sqrt w), as Giles does
    ("Approximating the erfinv function", 2010), computed in float64.

    float64: and one step of Halley's method from there. In the tails the complement keeps the
    digits that erf has lost.
    """
    if y.dtype == F32:
        wide = cast(y, F64)
        x = _erfinv_near(wide, tables.ERFINV_TAIL_32, 3.3)
        return cast(_at_one(x, wide), F32)
    x = _erfinv_near(y, tables.ERFINV_TAIL_64, 4.4)
    a = fabs(y)
    rest = (1.0 - a) - erfc(fabs(x))
    miss = select(a > 0.5, select(y < 0.0, -rest, rest), erf(x) - y)
    step = miss / (1.1283791670955126 * exp(-x * x))
    return _at_one(x - step / (1.0 + x * step), y)


def _erfinv_near(y: Value, tail: tuple[float, ...], centre: float) -> Value:
    a = fabs(y)
    w = -log((1.0 - a) * (1.0 + a))
    inner = horner(w - 3.125, tables.ERFINV_CENTRE)
    return y * select(w < 6.25, inner, horner(sqrt(w) - centre, tail))


def _at_one(x: Value, y: Value) -> Value:
    """Infinite where y is 1 or -1, y where it is 0."""
    at_one = select(fabs(y) == 1.0, node("copysign", F64, value_of(float("inf"), F64), y), x)
    return select(y == 0.0, y, at_one)


# ---- gamma and Bessel functions ----


def _by_width(narrow: Function, name: str) -> Function:
    """float32 by `narrow` in float64, float64 by the C function."""

    def apply(x: Value) -> Value:
        if x.dtype == F32:
            return cast(narrow(cast(x, F64)), F32)
        return node("call", F64, x, value=name)

    return apply


def _lifted(a: Value) -> tuple[Value, Value, Value]:
    """a + 8 where a is below 8, else a; the product of a, a + 1, ... a + 7 and the sum of their
    inverses, else 1 and 0: gamma(a) is gamma of the first over the second."""
    low = a < 8.0
    u = a * (a + 7.0)
    v, w = u * (u + 6.0), (u + 10.0) * (u + 12.0)
    inverses = (2.0 * a + 7.0) * ((2.0 * u + 6.0) * w + (2.0 * u + 22.0) * v) / (v * w)
    return select(low, a + 8.0, a), select(low, v * w, 1.0), select(low, inverses, 0.0)


def _sin_cos_pi(a: Value) -> tuple[Value, Value]:
    """The sine of pi times the distance of a from its nearest integer; the cosine, with the sign of
    a less that integer."""
    f = a - node("roundeven", F64, a)
    near = fabs(f)
    far = near > 0.25
    r = pi * select(far, 0.5 - near, near)
    z = r * r
    s = fma(r * z, horner(z, tables.SIN_64), r)
    c = fma(z * z, horner(z, tables.COS_64), 1.0 - 0.5 * z)
    return select(far, c, s), node("copysign", F64, select(far, s, c), f)


def _lgamma(x: Value) -> Value:
    """Stirling's series from 8 on, mirrored at 0; Taylor's beside its zeros at 1 and 2, where the
    other terms cancel."""
    a = fabs(x)
    z, product, _ = _lifted(a)
    inverse = 1.0 / z
    size = (z - 0.5) * log(z) - z + HALF_LOG_2_PI
    size = size + inverse * horner(inverse * inverse, STIRLING)
    mirrored = x < 0
    divisor = select(mirrored, a * _sin_cos_pi(a)[0], product)
    result = log(select(mirrored, pi * product, 1.0) / divisor) + select(mirrored, -size, size)
    one = x < 1.5
    w = x - select(one, 1.0, value_of(2.0, F64))
    first, second = (select(one, p, value_of(q, F64)) for p, q in zip(AT_ONE, AT_TWO, strict=True))
    result = select(fabs(w) < 1e-5, fma(w, fma(second, w, first), 0.0), result)
    return select(a == inf, inf, result)


def _digamma(x: Value) -> Value:
    """The slope of Stirling's series, mirrored at 0."""
    a = fabs(x)
    z, _, inverses = _lifted(a)
    inverse = 1.0 / z
    square = inverse * inverse
    result = log(z) - 0.5 * inverse - square * horner(square, STIRLING_SLOPE) - inverses
    sine, cosine = _sin_cos_pi(a)
    result = select(x < 0, result + 1.0 / a + select(sine == 0, nan, pi * cosine / sine), result)
    return select(x == 0, node("copysign", F64, value_of(inf, F64), -x), result)


def _bessel(order: int, scaled: bool) -> Function:
    """I_n(x): a polynomial in x^2 up to 8, beyond exp(x) / sqrt(x) times one in 1 / x; scaled:
    without the exponential."""
    tail_table = (tables.BESSEL_I0_TAIL, tables.BESSEL_I1_TAIL)[order]
    table = (tables.BESSEL_I0, tables.BESSEL_I1)[order]

    def apply(x: Value) -> Value:
        a = fabs(x) if scaled else clamp(fabs(x), 0.0, 800.0)
        near = horner(a * a, table)
        if order:
            near = near * a
        inverse = 1.0 / select(a < 8.0, 8.0, a)
        far = horner(inverse, tail_table) * sqrt(inverse)
        power = exp(-a if scaled else a)
        result = select(a < 8.0, near * power if scaled else near, far if scaled else far * power)
        return node("copysign", F64, result, x) if order else result

    return apply


lgamma = _by_width(_lgamma, "lgamma")
digamma = _by_width(_digamma, "weft_digamma")
i0 = _by_width(_bessel(0, False), "weft_i0")
i1 = _by_width(_bessel(1, False), "weft_i1")
i0e = _by_width(_bessel(0, True), "weft_i0e")
i1e = _by_width(_bessel(1, True), "weft_i1e")
