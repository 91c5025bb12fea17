"""Functions of complex values, by their real parts. Accurate to a few ULP."""

from __future__ import annotations

from math import e, inf, log2, log10

from . import math as _math
from . import trig as _trig
from .expr import Complex, Value, node, select

LN_2 = 1 / log2(e)


def modulus(z: Value) -> Value:
    """|z| without overflow or underflow on the way: the larger part times sqrt(1 + ratio^2)."""
    a, b = node("fabs", z.real.dtype, z.real), node("fabs", z.real.dtype, z.imag)
    big, small = select(a > b, a, b), select(a > b, b, a)
    ratio = select(big == 0, 0.0, small / big)
    size = big * _math.sqrt(1.0 + ratio * ratio)
    size = select((a != a) | (b != b), a + b, size)
    return select((a == inf) | (b == inf), inf, size)


def exp(z: Value) -> Value:
    """e^x (cos y + i sin y)."""
    size = _math.exp(z.real)
    flat = z.imag == 0  # a real number stays real, also where the size is infinite
    return Complex(
        select(flat, size, size * _trig.cos(z.imag)), select(flat, z.imag, size * _trig.sin(z.imag))
    )


def log(z: Value) -> Value:
    """log |z| + i arg z."""
    return Complex(_math.log(modulus(z)), _trig.atan2(z.imag, z.real))


def sqrt(z: Value) -> Value:
    """The root with a real part that is not negative."""
    x, y = z.real, z.imag
    size = modulus(z)
    root = _math.sqrt((size + node("fabs", x.dtype, x)) * 0.5)
    other = select(root == 0, 0.0, y / (root * 2.0))
    right = x >= 0
    re = select(right, root, node("fabs", x.dtype, other))
    im = select(right, other, node("copysign", x.dtype, root, y))
    return Complex(re, im)


def pow(z: Value, w: Value) -> Value:
    """exp(w log z); 0 to a power of positive real part is 0, anything to the power 0 is 1."""
    result = exp(w * log(z))
    zero = Complex(select(w.real > 0, z.real * 0.0, inf), z.imag * 0.0)
    result = select((z.real == 0) & (z.imag == 0), zero, result)
    one = (w.real == 0) & (w.imag == 0)
    return Complex(select(one, 1.0, result.real), select(one, 0.0, result.imag))


def sinh(z: Value) -> Value:
    return Complex(_math.sinh(z.real) * _trig.cos(z.imag), _math.cosh(z.real) * _trig.sin(z.imag))


def cosh(z: Value) -> Value:
    return Complex(_math.cosh(z.real) * _trig.cos(z.imag), _math.sinh(z.real) * _trig.sin(z.imag))


def tanh(z: Value) -> Value:
    """By tanh of the real part and tan of the imaginary one: nothing overflows."""
    t, u = _math.tanh(z.real), _trig.tan(z.imag)
    below = 1.0 + (t * u) * (t * u)
    return Complex(t * (1.0 + u * u) / below, u * (1.0 - t * t) / below)


def sin(z: Value) -> Value:
    return Complex(_trig.sin(z.real) * _math.cosh(z.imag), _trig.cos(z.real) * _math.sinh(z.imag))


def cos(z: Value) -> Value:
    return Complex(
        _trig.cos(z.real) * _math.cosh(z.imag), -(_trig.sin(z.real) * _math.sinh(z.imag))
    )


def tan(z: Value) -> Value:
    """-i tanh(i z)."""
    turned = tanh(Complex(-z.imag, z.real))
    return Complex(turned.imag, -turned.real)


# The inverse functions follow Kahan, "Branch cuts for complex elementary functions" (1987): the
# roots of 1 - z and 1 + z keep the sign of a zero, which says on which side of a cut z lies.


def _roots(z: Value) -> tuple[Value, Value]:
    """sqrt(1 - z) and sqrt(1 + z)."""
    return sqrt(Complex(1.0 - z.real, -z.imag)), sqrt(Complex(1.0 + z.real, z.imag))


def asin(z: Value) -> Value:
    minus, plus = _roots(z)
    re = _trig.atan2(z.real, minus.real * plus.real - minus.imag * plus.imag)
    return Complex(re, _math.asinh(minus.real * plus.imag - minus.imag * plus.real))


def acos(z: Value) -> Value:
    minus, plus = _roots(z)
    im = _math.asinh(plus.real * minus.imag - plus.imag * minus.real)
    return Complex(2.0 * _trig.atan2(minus.real, plus.real), im)


def asinh(z: Value) -> Value:
    """-i asin(i z)."""
    turned = asin(Complex(-z.imag, z.real))
    return Complex(turned.imag, -turned.real)


def acosh(z: Value) -> Value:
    minus = sqrt(Complex(z.real - 1.0, z.imag))
    plus = sqrt(Complex(z.real + 1.0, z.imag))
    re = _math.asinh(minus.real * plus.real + minus.imag * plus.imag)
    return Complex(re, 2.0 * _trig.atan2(minus.imag, plus.real))


def atanh(z: Value) -> Value:
    """By the distances of z from 1 and -1, and the angle between them."""
    x, y = z.real, z.imag
    size = node("fabs", x.dtype, x)  # an odd function, exact on the side of 1
    re = 0.25 * _math.log1p(4.0 * size / ((1.0 - size) * (1.0 - size) + y * y))
    re = node("copysign", x.dtype, re, x)
    return Complex(re, 0.5 * _trig.atan2(2.0 * y, (1.0 - x) * (1.0 + x) - y * y))


def atan(z: Value) -> Value:
    """-i atanh(i z)."""
    turned = atanh(Complex(-z.imag, z.real))
    return Complex(turned.imag, -turned.real)


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
    small = (node("fabs", x.dtype, x) < 0.5) & (node("fabs", y.dtype, y) < 0.5)
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
