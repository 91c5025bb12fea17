"""Functions of complex values, by their real parts. Accurate to a few ULP."""

from __future__ import annotations

from math import inf

from . import math as _math
from . import trig as _trig
from .expr import Complex, Value, node, select


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


def sigmoid(z: Value) -> Value:
    return 1.0 / (1.0 + exp(-z))
