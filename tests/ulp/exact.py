"""The elementary functions in mpmath: what weft's answers are measured against.

Each takes and gives mpmath numbers; composites are written so that nothing cancels.
"""

from __future__ import annotations

import math
import statistics
from typing import Any

from mpmath import mp

DIGITS = 60
Number = Any  # mpmath's mpf


def sigmoid(x: Number) -> Number:
    return 1 / (1 + mp.exp(-x))


def silu(x: Number) -> Number:
    return x * sigmoid(x)


def softplus(x: Number) -> Number:
    """Above its threshold of 20 the function is defined as x itself."""
    return x if x > 20 else mp.log1p(mp.exp(x))


def mish(x: Number) -> Number:
    return x * mp.tanh(softplus(x))


def log_sigmoid(x: Number) -> Number:
    return -mp.log1p(mp.exp(-x)) if x > 0 else x - mp.log1p(mp.exp(x))


def elu(x: Number) -> Number:
    return x if x > 0 else mp.expm1(x)


def erfc(x: Number) -> Number:
    """Beyond 1e4 mpmath gives up: there it is 2 or far below every format."""
    return mp.erfc(x) if abs(x) < 1e4 else mp.mpf(0 if x > 0 else 2)


def gelu(x: Number) -> Number:
    return x / 2 * erfc(-x / mp.sqrt(2))


def gelu_tanh(x: Number) -> Number:
    inner = mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)
    return x * sigmoid(2 * inner)


def logit(x: Number) -> Number:
    return mp.log(x / (1 - x))


def logaddexp(x: Number, y: Number) -> Number:
    return max(x, y) + mp.log1p(mp.exp(-abs(x - y)))


def logaddexp2(x: Number, y: Number) -> Number:
    return max(x, y) + mp.log1p(mp.power(2, -abs(x - y))) / mp.log(2)


def xlogy(x: Number, y: Number) -> Number:
    return mp.mpf(0) if x == 0 else x * mp.log(y)


def fmod(x: Number, y: Number) -> Number:
    return mp.mpf(math.fmod(float(x), float(y)))  # exact, as its arguments are


def remainder(x: Number, y: Number) -> Number:
    rest = fmod(x, y)
    return rest + y if rest and (rest < 0) != (y < 0) else rest


def lgamma(x: Number) -> Number:
    """Reflected below zero, where mpmath's logarithm of gamma is complex."""
    if x > 0:
        return mp.loggamma(x)
    return mp.log(mp.pi / abs(x * mp.sinpi(x))) - mp.loggamma(-x)


def erfinv(y: Number) -> Number:
    """Newton's steps on erfc, which keeps the digits of the tails."""
    if y == 0:
        return y
    tail = float((1 - abs(y)) / 2)
    if abs(y) < 1e-4:
        x = abs(y) * mp.sqrt(mp.pi) / 2
    else:
        x = -mp.mpf(statistics.NormalDist().inv_cdf(tail)) / mp.sqrt(2)
    for _ in range(6):
        miss = mp.erf(x) - abs(y) if abs(y) < 0.5 else (1 - abs(y)) - mp.erfc(x)
        x -= miss * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
    return mp.sign(y) * x


def i0e(x: Number) -> Number:
    return mp.besseli(0, x) * mp.exp(-abs(x))


def i1e(x: Number) -> Number:
    return mp.besseli(1, x) * mp.exp(-abs(x))


def erfcx(x: Number) -> Number:
    return mp.exp(x * x) * mp.erfc(x)


def ndtr(x: Number) -> Number:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def log_ndtr(x: Number) -> Number:
    return mp.log(ndtr(x))


def ndtri(p: Number) -> Number:
    return mp.sqrt(2) * mp.erfinv(2 * p - 1)
