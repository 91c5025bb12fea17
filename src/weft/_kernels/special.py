"""erf, erfc and the normal distribution."""

from __future__ import annotations

from . import coefficients as tables
from .expr import Value, cast, node, select, value_of
from .math import (
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


def erf(x: Value) -> Value:
    """float32: x (1 + P(x^2)) up to 0.92, beyond 1 - 2^L(|x|) with L the polynomial of log2(erfc).

    float64: the C library's.
    """
    if x.dtype != F32:
        return node("call", x.dtype, x, value="erf")
    a = fabs(x)
    near = fma(x, horner(x * x, tables.ERF_32), x)
    # The power is at most 0.2 here, so its own relative error counts a fifth.
    exponent = horner(clamp(a, 0.5, 3.95), tables.ERFC_32)
    n = node("roundeven", F32, exponent)
    r = exponent - n
    power = fma(r, horner(r, tables.EXP2_32), 1.0) * power_of_two(whole_bits(n), F32)
    far = node("copysign", F32, select(a > 3.95, value_of(1.0, F32), 1.0 - power), x)
    return select(a < 0.92, near, select(x != x, x, far))


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
    """1 - erf x: the C library's, which keeps the small results right."""
    return node("call", x.dtype, x, value="erfcf" if x.dtype == F32 else "erfc")


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
