"""exp, log, tanh, sigmoid and sqrt in float32 for AVX-512, which looks 16 entries up at once.

The tables (lookup_tables.py) make the polynomials short. What the portable forms in math.py do by
selects and integers, instructions do here: exponent and significand of any number, denormal ones
too (`getexp`, `getmant`), and the product with a power of two that overflows as it should.
"""

from __future__ import annotations

from . import lookup_tables as tables
from .expr import Value, bitcast, node, select, value_of
from .math import LN2, LN2_HIGH, LN2_LOW, LOG2_E, clamp, fma, horner
from .types import F32, I32

# Adding this to a small number leaves the nearest multiple of 1/16 in the low mantissa bits.
SIXTEENTHS = 786432.0


def look_up(table: tuple[float, ...], index: Value) -> Value:
    """The entry of the index's four lower bits."""
    assert len(table) == 16
    return node("lookup", F32, index, value=table)


def exp(x: Value, high: float = 89.0, exact: bool = False) -> Value:
    """2^k 2^(j/16) e^r for k + j/16 the multiple of 1/16 nearest to x / log 2.

    high: greater numbers count as this one. exact: with what the table's rounding lost.
    """
    x = clamp(x, -104.0, high)
    shifted = fma(x, LOG2_E, SIXTEENTHS)
    n = shifted - SIXTEENTHS
    # A multiple of 1/16 times the high part is exact, as a whole number is.
    r = fma(n, -LN2_LOW[F32], fma(n, -LN2_HIGH[F32], x))
    index = bitcast(shifted, I32)
    power = look_up(tables.EXP_POWERS, index)
    rest = fma(r * r, horner(r, tables.EXP_TAIL), r)
    if exact:
        rest = rest + look_up(tables.EXP_LOST, index)
    return node("scale2", F32, fma(power, rest, power), n)  # by 2^floor(n)


def sigmoid(x: Value) -> Value:
    """e^x / (1 + e^x); from 30 on that is 1."""
    e = exp(x, high=30.0, exact=True)
    return e / (1.0 + e)


def log(x: Value) -> Value:
    """e log 2 - log c + log(m c) for x = m 2^e, m in [3/4, 3/2), c near 1 / m from a table.

    Special values come with the instructions: m is NaN below zero, e is infinite at 0 and infinity.
    """
    m = node("getmant", F32, x)
    e = node("getexp", F32, x) - node("getexp", F32, m)
    index = bitcast(m, I32) >> 19
    r = fma(m, look_up(tables.LOG_INVERSES, index), -1.0)
    rest = fma(r * r, horner(r, tables.LOG_TAIL), r)
    return fma(e, LN2, look_up(tables.LOG_VALUES, index) + rest)


def tanh(x: Value) -> Value:
    """A polynomial around the centre of one of 16 pieces, two to the doubling from 2^-4 on."""
    a = clamp(node("fabs", F32, x), 0.0, 15.9)
    bits = bitcast(a, I32)
    least = value_of(0x3D800000, I32)  # 2^-4
    index = select(bits < least, least, bits) >> 22
    r = a - look_up(tables.TANH_CENTRES, index)
    columns = (
        tables.TANH_0, tables.TANH_1, tables.TANH_2, tables.TANH_3, tables.TANH_4, tables.TANH_5,
        tables.TANH_6,
    )  # fmt: skip
    result = look_up(columns[-1], index)
    for column in reversed(columns[:-1]):
        result = fma(result, r, look_up(column, index))
    return node("copysign", F32, result, x)


def sqrt(x: Value) -> Value:
    """The root rounded correctly, in less time than the instruction for it takes.

    One step of Goldschmidt's from an estimate of 1 / sqrt(x), then the root is corrected by its
    exact remainder: Markstein, "Software Division and Square Root Using Goldschmidt's Algorithms",
    2004.
    That it is right for each significand is tested, not proved.
    """
    small = x < 2.0**-96  # its remainder would be denormal
    scaled = select(small, x * 2.0**64, x)
    estimate = node("rsqrt14", F32, scaled)
    root, half = scaled * estimate, estimate * 0.5
    error = fma(-root, half, 0.5)
    root, half = fma(root, error, root), fma(half, error, half)
    root = fma(fma(-root, root, scaled), half, root)
    root = select(small, root * 2.0**-32, root)
    return select((x == 0.0) | (x == float("inf")), x, root)


FUNCTIONS = {"exp": exp, "log": log, "sigmoid": sigmoid, "tanh": tanh}
