"""sin, cos, tan and their inverses.

Arguments beyond 2^20 leave the range of the three-part reduction and go to the C library, lane by
lane: a `rare` node, whose slow side runs only when a lane needs it.
"""

from __future__ import annotations

from math import inf, pi

from . import coefficients as tables
from .expr import Value, bitcast, cast, node, select, value_of
from .math import SHIFTER, by_type, fabs, fma, horner, integer_of, sqrt
from .types import F32, F64, I64

# pi/2 in parts of 33, 33 and 53 bits: a whole number below 2^20 times the first two is exact.
PIO2_1 = float.fromhex("0x1.921fb544p+0")
PIO2_2 = float.fromhex("0x1.0b4611a6p-34")
PIO2_3 = float.fromhex("0x1.3198a2e037073p-69")
PIO2_23 = float.fromhex("0x1.0b4611a626331p-34")  # the last two together
LIMIT = 2.0**20


def _quadrant(x: Value) -> tuple[Value, Value]:
    """round(x / (pi/2)) as a float64 and as an integer (its low bits matter)."""
    shifted = x * (2.0 / pi) + SHIFTER[F64]
    return shifted - SHIFTER[F64], bitcast(shifted, I64)


def _reduce(x: Value) -> tuple[Value, Value, Value]:
    """r, its low part, and the quadrant: x = q pi/2 + r + low, |r| <= pi/4, in x's type."""
    d = x.dtype
    wide = cast(x, F64)
    n, q = _quadrant(wide)
    first = fma(n, -PIO2_1, wide)
    if d == F32:
        r = cast(fma(n, -PIO2_23, first), F32)
        return r, value_of(0.0, F32), cast(q, integer_of(F32))
    second = n * PIO2_2
    r = first - second
    part = r - first
    lost = (first - (r - part)) - (second + part)
    low = fma(n, -PIO2_3, lost)
    total = r + low
    return total, (r - total) + low, q


def _sin_part(r: Value, low: Value) -> Value:
    z = r * r
    tail = r * z * horner(z, by_type(r, tables.SIN_32, tables.SIN_64))
    return r + tail if r.dtype == F32 else r + (tail + low * (1.0 - 0.5 * z))


def _cos_part(r: Value, low: Value) -> Value:
    """1 - z/2 + ..., with the rounding error of 1 - z/2 put back."""
    z = r * r
    half = 0.5 * z
    head = 1.0 - half
    tail = z * z * horner(z, by_type(r, tables.COS_32, tables.COS_64))
    return head + (((1.0 - head) - half) + (tail if r.dtype == F32 else tail - r * low))


def _rare(x: Value, fast: Value, name: str) -> Value:
    """The C library's function where |x| is too large for the reduction; infinities give NaN."""
    large = fabs(x) > LIMIT
    return node("rare", x.dtype, large, fast, x, value=name + ("f" if x.dtype == F32 else ""))


def _signed(value: Value, q: Value) -> Value:
    """-value where bit 1 of q is set."""
    i = integer_of(value.dtype)
    sign = (q & 2) << (i.bits - 2)
    return bitcast(bitcast(value, i) ^ sign, value.dtype)


def sin(x: Value) -> Value:
    """Cody-Waite reduction by pi/2 in float64, then the polynomial of sin or of cos."""
    r, low, q = _reduce(x)
    result = _signed(select((q & 1) != 0, _cos_part(r, low), _sin_part(r, low)), q)
    return _rare(x, select(x == 0, x, result), "sin")


def cos(x: Value) -> Value:
    """As sin, a quadrant further."""
    r, low, q = _reduce(x)
    result = _signed(select((q & 1) != 0, _sin_part(r, low), _cos_part(r, low)), q + 1)
    return _rare(x, result, "cos")


def tan(x: Value) -> Value:
    """sin / cos of the reduced argument, or -cos / sin; float32 divides in float64."""
    if x.dtype == F32:
        fast = cast(_tan_fast(cast(x, F64)), F32)
    else:
        fast = _tan_fast(x)
    return _rare(x, select(x == 0, x, fast), "tan")


def _tan_fast(x: Value) -> Value:
    r, low, q = _reduce(x)
    s, c = _sin_part(r, low), _cos_part(r, low)
    odd = (q & 1) != 0
    return select(odd, -c, s) / select(odd, s, c)


# --- inverses -------------------------------------------------------------------------------------

TAN_PI_8, TAN_3PI_8 = 0.41421356237309503, 2.414213562373095
# pi/2, pi/4 and pi with what their float64 (float32) value lacks.
PIO2 = {F64: (pi / 2, 6.123233995736766e-17), F32: (1.5707963705062866, -4.371139000186241e-08)}


_LIFTED = 2.0**-900  # sides below it are far from the end of float64 when divided by it


def _atan_ratio(a: Value, b: Value) -> Value:
    """atan(a / b) for a, b >= 0, by one division: about 0, pi/4 or pi/2."""
    d = a.dtype
    big, mid = a > b * TAN_3PI_8, a > b * TAN_PI_8
    above = select(big, -b, select(mid, a - b, a))
    below = select(big, a, select(mid, a + b, b))
    t = above / below
    z = t * t
    tail = t * z * horner(z, by_type(a, tables.ATAN_32, tables.ATAN_64))
    high, low = PIO2[d]
    base = select(big, high, select(mid, high / 2, value_of(0.0, d)))
    rest = select(big, low, select(mid, low / 2, value_of(0.0, d)))
    return base + (t + (tail + rest))


def atan(x: Value) -> Value:
    """The argument near 0, pi/4 or pi/2, then a minimax polynomial."""
    a = fabs(x)
    result = _atan_ratio(a, value_of(1.0, x.dtype))
    result = select(a == inf, PIO2[x.dtype][0], result)
    return node("copysign", x.dtype, result, x)


def atan2(y: Value, x: Value) -> Value:
    """The angle of the smaller over the larger side, mirrored into place. float32 uses float64."""
    if x.dtype == F32:
        return cast(_atan2(cast(y, F64), cast(x, F64)), F32)
    # Denormals are lifted: their sums and ratios would be rounded to the few bits they have.
    low = (fabs(y) < _LIFTED) & (fabs(x) < _LIFTED)
    lift = select(low, 1 / _LIFTED, value_of(1.0, F64))
    return _atan2(y * lift, x * lift)


def _atan2(y: Value, x: Value) -> Value:
    d = x.dtype
    a, b = fabs(y), fabs(x)
    steep = a > b
    small, large = select(steep, b, a), select(steep, a, b)
    large = select(large == 0, 1.0, large)
    # Two infinities make an angle of pi/4: a ratio of 1.
    both = (a == inf) & (b == inf)
    angle = _atan_ratio(select(both, 1.0, small), select(both, 1.0, large))
    high, low = PIO2[d]
    angle = select(steep, high - (angle - low), angle)
    left = node("copysign", d, value_of(1.0, d), x) < 0
    angle = select(left, 2 * high - (angle - 2 * low), angle)
    angle = select((a != a) | (b != b), a + b, angle)
    return node("copysign", d, angle, y)


def _asin_core(z: Value, s: Value) -> Value:
    """asin(s) - s for z = s^2 <= 1/4."""
    return s * z * horner(z, by_type(s, tables.ASIN_32, tables.ASIN_64))


def asin(x: Value) -> Value:
    """A minimax polynomial up to 1/2, beyond by asin a = pi/2 - 2 asin sqrt((1 - a) / 2)."""
    a = fabs(x)
    far = a > 0.5
    z = select(far, 0.5 * (1.0 - a), a * a)
    s = select(far, sqrt(z), a)
    core = _asin_core(z, s)
    high, low = PIO2[x.dtype]
    result = select(far, high - (2.0 * (s + core) - low), s + core)
    return node("copysign", x.dtype, result, x)


def acos(x: Value) -> Value:
    """pi/2 - asin x up to 1/2; beyond, twice asin sqrt((1 - a) / 2), mirrored for negative x."""
    a = fabs(x)
    far = a > 0.5
    z = select(far, 0.5 * (1.0 - a), a * a)
    s = select(far, sqrt(z), x)
    core = _asin_core(z, s)
    high, low = PIO2[x.dtype]
    near = high - (s - (low - core))
    double = 2.0 * (s + core)
    mirrored = select(x < 0, 2 * high - (double - 2 * low), double)
    return select(far, mirrored, near)
