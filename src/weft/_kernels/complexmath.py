"""Functions of complex values, by their real parts. Accurate to a few ULP."""

from __future__ import annotations

from collections.abc import Callable
from math import e, inf, log2, log10, nan, pi

from . import math as _math
from . import trig as _trig
from .expr import Complex, Value, node, select, value_of

LN_2 = 1 / log2(e)


def _fabs(x: Value) -> Value:
    return node("fabs", x.dtype, x)


def _infinite(x: Value) -> Value:
    return _fabs(x) == inf


def _no_angle(y: Value) -> Value:
    """Whether y is infinite or NaN."""
    return y - y != 0


def _with_sign(size: float | Value, x: Value) -> Value:
    return node("copysign", x.dtype, value_of(size, x.dtype), x)


def modulus(z: Value) -> Value:
    """|z| without overflow or underflow on the way: the larger part times sqrt(1 + ratio^2)."""
    a, b = _fabs(z.real), _fabs(z.imag)
    big, small = select(a > b, a, b), select(a > b, b, a)
    ratio = select(big == 0, 0.0, small / big)
    size = big * _math.sqrt(1.0 + ratio * ratio)
    size = select((a != a) | (b != b), a + b, size)
    return select((a == inf) | (b == inf), inf, size)


# e^x may overflow where e^x cos y does not: the exponential of half of x is multiplied in twice.
# An angle that is infinite or NaN has no cosine, but an infinite e^x or a zero needs none: special
# values are those of C's Annex G.


def _halved(x: Value) -> tuple[Value, Value]:
    """x, or half of it where e^x may overflow, and whether that is so."""
    beyond = x > (88.0 if x.dtype.bits == 32 else 709.0)
    return select(beyond, 0.5 * x, x), beyond


def exp(z: Value) -> Value:
    """e^x (cos y + i sin y)."""
    x, y = z.real, z.imag
    half, beyond = _halved(x)
    root = _math.exp(half)
    again = select(beyond, root, 1.0)
    size = root * again
    flat = y == 0  # a real number stays real, also where the size is infinite
    lost = _no_angle(y)
    re = select(flat | (lost & _infinite(x)), size, root * _trig.cos(y) * again)
    im = select(lost & (x == -inf), _with_sign(0.0, y), root * _trig.sin(y) * again)
    return Complex(re, select(flat, y, im))


def log(z: Value) -> Value:
    """log |z| + i arg z."""
    return Complex(_math.log(modulus(z)), _trig.atan2(z.imag, z.real))


def sqrt(z: Value) -> Value:
    """The root with a real part that is not negative."""
    far = (_fabs(z.real) > 1e38) | (_fabs(z.imag) > 1e38)  # the modulus may overflow, not its root
    scale = select(far, 0.0625, value_of(1.0, z.real.dtype))
    x, y = z.real * scale, z.imag * scale
    size = modulus(Complex(x, y))
    root = _math.sqrt((size + _fabs(x)) * 0.5)
    other = select(root == 0, y, y / (root * 2.0))
    right = x >= 0
    re = select(right, root, _fabs(other))
    im = select(right, other, _with_sign(root, y))
    re, im = select(_infinite(y), inf, re), select(_infinite(y), y, im)
    back = select(far, 4.0, value_of(1.0, x.dtype))
    return Complex(re * back, im * back)


def pow(z: Value, w: Value) -> Value:
    """exp(w log z); anything to the power 0 is 1, and 0 to another power 0, infinite or, where its
    real part is 0, NaN."""
    result = exp(w * log(z))
    undefined = select(w.real == 0, value_of(nan, z.real.dtype), 0.0)
    zero = Complex(select(w.real > 0, z.real * 0.0, inf) + undefined, z.imag * 0.0 + undefined)
    result = select((z.real == 0) & (z.imag == 0), zero, result)
    one = (w.real == 0) & (w.imag == 0)
    return Complex(select(one, 1.0, result.real), select(one, 0.0, result.imag))


def _hyperbolic(z: Value) -> tuple[Value, Value, Value]:
    """sinh x and cosh x of the real part, and what both are still to be multiplied by."""
    half, beyond = _halved(_fabs(z.real))
    grown = _math.cosh(half)
    return _math.sinh(_with_sign(half, z.real)), grown, select(beyond, 2.0 * grown, 1.0)


def sinh(z: Value) -> Value:
    x, y = z.real, z.imag
    odd, even, again = _hyperbolic(z)
    lost = _no_angle(y)
    re = select(lost & _infinite(x), inf, odd * _trig.cos(y) * again)
    im = select(y == 0, y, even * _trig.sin(y) * again)
    return Complex(select(lost & (x == 0), x, re), im)


def cosh(z: Value) -> Value:
    x, y = z.real, z.imag
    odd, even, again = _hyperbolic(z)
    lost = _no_angle(y)
    re = select(lost & _infinite(x), inf, even * _trig.cos(y) * again)
    im = select(lost & (x == 0), 0.0, odd * _trig.sin(y) * again)
    return Complex(re, select(y == 0, _with_sign(1.0, x) * y, im))


def tanh(z: Value) -> Value:
    """By tanh and cosh of the real part and tan of the imaginary one: nothing overflows."""
    x, y = z.real, z.imag
    t, u, s = _math.tanh(x), _trig.tan(y), 1.0 / _math.cosh(x)
    below = 1.0 + (t * u) * (t * u)
    lost = _no_angle(y)
    re = select(lost & ((x == 0) | _infinite(x)), t, t * (1.0 + u * u) / below)
    im = select(lost & _infinite(x), _with_sign(0.0, y), u * s * s / below)
    return Complex(re, select(y == 0, y, im))


def _turned(function: Callable[[Value], Value], z: Value) -> Value:
    """-i f(i z): what sine, tangent and their inverses are to the hyperbolic functions."""
    turned = function(Complex(-z.imag, z.real))
    return Complex(turned.imag, -turned.real)


def sin(z: Value) -> Value:
    return _turned(sinh, z)


def cos(z: Value) -> Value:
    return cosh(Complex(-z.imag, z.real))


def tan(z: Value) -> Value:
    return _turned(tanh, z)


# The inverse functions follow Kahan, "Branch cuts for complex elementary functions" (1987): the
# roots of 1 - z and 1 + z keep the sign of a zero, which says on which side of a cut z lies.


def _roots(z: Value) -> tuple[Value, Value]:
    """sqrt(1 - z) and sqrt(1 + z)."""
    return sqrt(Complex(1.0 - z.real, -z.imag)), sqrt(Complex(1.0 + z.real, z.imag))


def asin(z: Value) -> Value:
    x, y = z.real, z.imag
    minus, plus = _roots(z)
    far = _infinite(x) | _infinite(y)
    re = _trig.atan2(x, minus.real * plus.real - minus.imag * plus.imag)
    re = select(x == 0, x, select(far, _trig.atan2(x, _fabs(y)), re))
    im = _math.asinh(minus.real * plus.imag - minus.imag * plus.real)
    return Complex(re, select(far, _with_sign(inf, y), im))


def acos(z: Value) -> Value:
    x, y = z.real, z.imag
    minus, plus = _roots(z)
    far = _infinite(x) | _infinite(y)
    re = select(far, _fabs(_trig.atan2(y, x)), 2.0 * _trig.atan2(minus.real, plus.real))
    im = _math.asinh(plus.real * minus.imag - plus.imag * minus.real)
    return Complex(select(x == 0, 0.5 * pi, re), select(far, _with_sign(inf, -y), im))


def asinh(z: Value) -> Value:
    return _turned(asin, z)


def acosh(z: Value) -> Value:
    """acos(z) turned to the right."""
    angle = acos(z)
    return Complex(_fabs(angle.imag), _with_sign(angle.real, z.imag))


def atanh(z: Value) -> Value:
    """By the distances of z from 1 and -1, and the angle between them; far out by 1 / z."""
    x, y = z.real, z.imag
    size = _fabs(x)  # an odd function, exact on the side of 1
    far = (size > 1e17) | (_fabs(y) > 1e17)
    near = 0.25 * _math.log1p(4.0 * size / ((1.0 - size) * (1.0 - size) + y * y))
    above_one = (size == 1) & (_fabs(y) < 1e-10)  # there y * y may underflow
    near = select(above_one, 0.5 * _math.log(2.0 / _fabs(y)), near)
    beyond = select(_infinite(x) | _infinite(y), 0.0, _fabs((1.0 / z).real))
    re = _with_sign(select(far, beyond, near), x)
    angle = 0.5 * _trig.atan2(y, 0.5 * ((1.0 - x) * (1.0 + x) - y * y))
    return Complex(select(x == 0, x, re), select(_infinite(y), _with_sign(0.5 * pi, y), angle))


def atan(z: Value) -> Value:
    return _turned(atanh, z)


def expm1(z: Value) -> Value:
    """exp(z) - 1; cos y - 1 by the sine of half the angle."""
    half = _trig.sin(z.imag * 0.5)
    grown = _math.expm1(z.real)
    re = grown * _trig.cos(z.imag) - 2.0 * half * half
    return Complex(re, (grown + 1.0) * _trig.sin(z.imag))


def log1p(z: Value) -> Value:
    """log(1 + z); near 0 by log1p of |1 + z|^2 - 1."""
    x, y = z.real, z.imag
    near = 0.5 * _math.log1p(x * (2.0 + x) + y * y)
    small = (_fabs(x) < 0.5) & (_fabs(y) < 0.5)
    far = _math.log(modulus(Complex(1.0 + x, y)))
    return Complex(select(small, near, far), _trig.atan2(y, 1.0 + x))


def _scaled(z: Value, factor: float) -> Value:
    return Complex(z.real * factor, z.imag * factor)


def log_base_2(z: Value) -> Value:
    return _scaled(log(z), 1 / LN_2)


def log_base_10(z: Value) -> Value:
    return _scaled(log(z), log10(e))


def exp2(z: Value) -> Value:
    return exp(_scaled(z, LN_2))


def sigmoid(z: Value) -> Value:
    return 1.0 / (1.0 + exp(-z))
