"""Functions of `math` written in the language, step by step as Python computes them, so that a
program gives the same bits."""

from __future__ import annotations

import math
from typing import Any

# Lanczos' approximation of the gamma function with 13 terms: a quotient of polynomials in x,
# highest powers first, and the constant g of its other factors.
_TOPS = (
    2.5066282746310002, 210.82427775157936, 8071.672002365816, 186056.26539522348,
    2876370.6289353725, 31426415.585400194, 248874557.86205417, 1439720407.3117216,
    6039542586.352028, 17921034426.03721, 35711959237.35567, 42919803642.6491,
    23531376880.41076,
)  # fmt: skip
_BOTTOMS = (
    1.0, 66.0, 1925.0, 32670.0, 357423.0, 2637558.0, 13339535.0, 45995730.0, 105258076.0,
    150917976.0, 120543840.0, 39916800.0, 0.0,
)  # fmt: skip
_LOWEST_FIRST = tuple(zip(reversed(_TOPS), reversed(_BOTTOMS)))
_HIGHEST_FIRST = tuple(zip(_TOPS, _BOTTOMS))
_G, _G_LESS_HALF = 6.024680040776729583740234375, 5.524680040776729583740234375
_LOG_PI = 1.144729885849400174143427351353058711647
_TINY = 1e-20  # below, gamma is 1 / x
_LARGE_FACTORIAL = 23  # the largest whose gamma is exact


def lanczos_sum(x: Any) -> Any:
    """The quotient; large numbers go in by their inverse, so that no power overflows."""
    top, bottom = 0.0, 0.0
    if x < 5.0:
        for a, b in _HIGHEST_FIRST:
            top = top * x + a
            bottom = bottom * x + b
    else:
        for a, b in _LOWEST_FIRST:
            top = top / x + a
            bottom = bottom / x + b
    return top / bottom


def sine_of_pi(x: Any) -> Any:
    """sin(pi * x), without the error of pi * x."""
    part = math.fmod(abs(x), 2.0)
    octant = round(2.0 * part)
    if octant == 0:
        result = math.sin(math.pi * part)
    elif octant == 1:
        result = math.cos(math.pi * (part - 0.5))
    elif octant == 2:
        result = math.sin(math.pi * (1.0 - part))
    elif octant == 3:
        result = -math.cos(math.pi * (part - 1.5))
    else:
        result = math.sin(math.pi * (part - 2.0))
    return math.copysign(1.0, x) * result


def is_whole(x: Any) -> Any:
    """Whether a number is an integer; it may be too large for an int."""
    return math.fmod(x, 1.0) == 0.0


def gamma(number: Any) -> Any:
    """math.gamma."""
    x = float(number)
    if x == math.inf or math.isnan(x):
        return x
    if x == 0.0 or x == -math.inf or (x < 0.0 and is_whole(x)):
        raise ValueError("math domain error: gamma has no value at 0 and negative integers")
    if x <= _LARGE_FACTORIAL and is_whole(x):
        exact = 1.0
        for factor in range(2, int(x)):
            exact = exact * factor
        return exact
    size = abs(x)
    if size < _TINY:
        small = 1.0 / x
        if math.isinf(small):
            raise OverflowError("math range error: gamma is too large for a float")
        return small
    if size > 200.0:
        if x < 0.0:
            return 0.0 / sine_of_pi(x)
        raise OverflowError("math range error: gamma is too large for a float")
    y = size + _G_LESS_HALF
    if size > _G_LESS_HALF:
        lost = (y - size) - _G_LESS_HALF
    else:
        lost = (y - _G_LESS_HALF) - size
    correction = lost * _G / y
    if x < 0.0:
        result = -math.pi / sine_of_pi(size) / size * math.exp(y) / lanczos_sum(size)
        result = result - correction * result
        if size < 140.0:
            result = result / y ** (size - 0.5)
        else:
            root = y ** (size / 2.0 - 0.25)
            result = result / root / root
    else:
        result = lanczos_sum(size) / math.exp(y)
        result = result + correction * result
        if size < 140.0:
            result = result * y ** (size - 0.5)
        else:
            root = y ** (size / 2.0 - 0.25)
            result = result * root * root
    if math.isinf(result):
        raise OverflowError("math range error: gamma is too large for a float")
    return result


def lgamma(number: Any) -> Any:
    """math.lgamma."""
    x = float(number)
    if math.isnan(x):
        return x
    if math.isinf(x):
        return math.inf
    if x <= 2.0 and is_whole(x):
        if x <= 0.0:
            raise ValueError("math domain error: lgamma has no value at 0 and negative integers")
        return 0.0
    size = abs(x)
    if size < _TINY:
        return -math.log(size)
    result = math.log(lanczos_sum(size)) - _G
    result = result + (size - 0.5) * (math.log(size + _G - 0.5) - 1.0)
    if x < 0.0:
        result = _LOG_PI - math.log(abs(sine_of_pi(size))) - math.log(size) - result
    if math.isinf(result):
        raise OverflowError("math range error: lgamma is too large for a float")
    return result


def power(x: Any, y: Any) -> Any:
    """math.pow, whose error for 0 to a negative power is not that of **."""
    base, exponent = float(x), float(y)
    if base == 0.0 and exponent < 0.0 and not math.isinf(exponent):
        raise ValueError("math domain error: 0 has no negative powers")
    return base**exponent


def floats(xs: Any) -> Any:
    """Numbers as floats."""
    return [float(x) for x in xs]


def length(xs: Any) -> Any:
    """math.hypot of a list."""
    return math.dist(xs, [0.0 for _ in xs])


def permutations(n: int, k: Any) -> int:
    """math.perm of a second number that may be None."""
    return math.factorial(n) if k is None else math.perm(n, k)
