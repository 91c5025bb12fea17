"""The kernel language: what a body in the operator table may write.

A body is a Python function over symbolic scalars (`expr.Value`); it is traced once for each compute
dtype. Numbers mix in freely and take the symbolic operand's type. Values of different types meet in
the higher category (bool < integer < floating < complex), then in the wider type. A body without
meaning for a dtype raises `Unsupported` while tracing, and that dtype gets no kernel.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from math import inf as inf
from math import nan as nan
from math import pi as pi
from typing import Any

from . import complexmath as _complex
from . import math as _math
from . import special as _special
from . import trig as _trig
from .expr import (
    Complex,
    Operand,
    Unsupported,
    Value,
    assemble,
    components,
    node,
    select,
    unify,
    value_of,
)
from .expr import cast as _cast
from .types import BOOL, F32, F64, I64, U8, DType, min_value
from .types import dtype as _dtype

# --- types ----------------------------------------------------------------------------------------


def _kind(x: Operand | DType) -> str:
    return x.kind if isinstance(x, DType) else value_of(x).dtype.kind


def is_floating(x: Operand | DType) -> bool:
    """Whether x is float32 or float64, known while tracing: use it in `if`."""
    return _kind(x) == "float"


def is_complex(x: Operand | DType) -> bool:
    return _kind(x) == "complex"


def is_integral(x: Operand | DType) -> bool:
    """Whether x is an integer; bool is none."""
    return _kind(x) in ("int", "uint")


def is_bool(x: Operand | DType) -> bool:
    return _kind(x) == "bool"


def is_byte(x: Operand) -> bool:
    """Whether x is uint8."""
    return value_of(x).dtype == U8


def cast(x: Operand, dtype: str | DType) -> Value:
    """x as `dtype` ("int64", "bool", another value's `.dtype`). See expr.cast for the rules."""
    d = _dtype(dtype)
    return _cast(value_of(x, d), d)


def to_bool(x: Operand) -> Value:
    """x != 0 as bool."""
    return _cast(value_of(x), BOOL)


# --- choice, comparison, logic --------------------------------------------------------------------


def where(condition: Operand, a: Operand, b: Operand) -> Value:
    """a where the condition holds, else b. Both sides are computed."""
    return select(condition, a, b)


def maximum(a: Operand, b: Operand) -> Value:
    """The greater one; NaN if either is."""
    x, y = _ordered("maximum", a, b)
    if x.dtype == BOOL:
        return x | y
    result = select(x > y, x, y)
    return select(x != x, x, result) if x.dtype.kind == "float" else result


def minimum(a: Operand, b: Operand) -> Value:
    """The lesser one; NaN if either is."""
    x, y = _ordered("minimum", a, b)
    if x.dtype == BOOL:
        return x & y
    result = select(x < y, x, y)
    return select(x != x, x, result) if x.dtype.kind == "float" else result


def fmax(a: Operand, b: Operand) -> Value:
    """The greater one; NaN only if both are."""
    x, y = _ordered("fmax", a, b)
    return maximum(x, y) if x.dtype.kind != "float" else select((x > y) | (y != y), x, y)


def fmin(a: Operand, b: Operand) -> Value:
    """The lesser one; NaN only if both are."""
    x, y = _ordered("fmin", a, b)
    return minimum(x, y) if x.dtype.kind != "float" else select((x < y) | (y != y), x, y)


def _ordered(name: str, *xs: Operand) -> list[Value]:
    values = unify(*xs)
    if isinstance(values[0], Complex):
        raise Unsupported(f"{name}: expected ordered values, got {values[0].dtype}")
    return values


def isnan(x: Operand) -> Value:
    x = value_of(x)
    return x != x


def isinf(x: Operand) -> Value:
    """Whether x (a part of it, if complex) is infinite; never on integers."""
    x = value_of(x)
    if isinstance(x, Complex):
        return isinf(x.real) | isinf(x.imag)
    return (abs(x) == inf) if is_floating(x) else value_of(False, BOOL)


def isfinite(x: Operand) -> Value:
    x = value_of(x)
    if isinstance(x, Complex):
        return isfinite(x.real) & isfinite(x.imag)
    return (abs(x) < inf) if is_floating(x) else value_of(True, BOOL)


def logical_and(a: Operand, b: Operand) -> Value:
    return to_bool(a) & to_bool(b)


def logical_or(a: Operand, b: Operand) -> Value:
    return to_bool(a) | to_bool(b)


def logical_xor(a: Operand, b: Operand) -> Value:
    return to_bool(a) ^ to_bool(b)


def logical_not(a: Operand) -> Value:
    return ~to_bool(a)


# --- sign and rounding ----------------------------------------------------------------------------


def abs(x: Operand) -> Value:
    """|x|; the modulus of a complex value. The least integer stays as it is."""
    x = value_of(x)
    if isinstance(x, Complex):
        return _complex.modulus(x)
    if x.dtype.kind == "float":
        return node("fabs", x.dtype, x)
    return select(x < 0, -x, x) if x.dtype.kind == "int" else x


def sign(x: Operand) -> Value:
    """-1, 0 or 1 (0 for NaN); x / |x| of a complex value."""
    x = value_of(x)
    if isinstance(x, Complex):
        size = abs(x)
        zero = size == 0
        return Complex(select(zero, 0, x.real / size), select(zero, 0, x.imag / size))
    if x.dtype == BOOL:
        return x
    return select(x > 0, 1, select(x < 0, -1, _cast(value_of(0, x.dtype), x.dtype)))


def signbit(x: Operand) -> Value:
    """Whether the sign bit is set (also of -0.0 and NaN)."""
    x = value_of(x)
    return copysign(1.0, x) < 0 if is_floating(x) else x < 0


def copysign(a: Operand, b: Operand) -> Value:
    """The size of a with the sign of b; floating values only."""
    x, y = unify(a, b)
    _need_floating("copysign", x)
    return node("copysign", x.dtype, x, y)


def _rounding(name: str, op: str, doc: str) -> Callable[[Operand], Value]:
    def apply(x: Operand) -> Value:
        x = value_of(x)
        if isinstance(x, Complex):
            raise Unsupported(f"{name}: expected real values, got {x.dtype}")
        return node(op, x.dtype, x) if x.dtype.kind == "float" else x

    apply.__name__, apply.__doc__ = name, doc + " Integers stay as they are."
    return apply


floor = _rounding("floor", "floor", "The greatest integer not above x.")
ceil = _rounding("ceil", "ceil", "The least integer not below x.")
trunc = _rounding("trunc", "trunc", "x without its fraction.")
round = _rounding("round", "roundeven", "The nearest integer, the even one of two.")


# --- division -------------------------------------------------------------------------------------


def reciprocal(x: Operand) -> Value:
    return 1.0 / value_of(x)


def _guarded(a: Operand, b: Operand) -> tuple[Value, Value, Value, Value]:
    """Operands of an integer division that cannot trap, and whether the divisor was zero."""
    x, y = unify(a, b)
    zero = y == 0
    unsafe = zero
    if x.dtype.kind == "int":
        # The least value by -1 overflows; by 1 it gives the wrapped result.
        unsafe = zero | ((y == -1) & (x == int(min_value(x.dtype))))
    return x, y, select(unsafe, 1, y), zero


def _no_bool(name: str, a: Operand, b: Operand) -> None:
    if all(v.dtype == BOOL for v in unify(a, b)) or is_complex(unify(a, b)[0]):
        raise Unsupported(f"{name}: expected real numbers, got {unify(a, b)[0].dtype}")


def trunc_divide(a: Operand, b: Operand) -> Value:
    """a / b rounded toward zero. An integer divided by zero gives 0 (the caller may check)."""
    _no_bool("trunc_divide", a, b)
    if is_floating(unify(a, b)[0]):
        return trunc(value_of(a) / b if isinstance(a, Value) else a / value_of(b))
    x, _, safe, zero = _guarded(a, b)
    return select(zero, 0, node("idiv", x.dtype, x, safe))


def floor_divide(a: Operand, b: Operand) -> Value:
    """Python's a // b. An integer divided by zero gives 0 (the caller may check)."""
    _no_bool("floor_divide", a, b)
    x, y = unify(a, b)
    if x.dtype.kind == "float":
        return _float_floor_divide(x, y)
    x, y, safe, zero = _guarded(a, b)
    quotient: Value = node("idiv", x.dtype, x, safe)
    if x.dtype.kind == "int":
        rest = x - quotient * safe
        quotient = select((rest != 0) & ((rest ^ y) < 0), quotient - 1, quotient)
    return select(zero, 0, quotient)


def _float_floor_divide(x: Value, y: Value) -> Value:
    """By the exact remainder, so that (x // y) * y + x % y is x up to one rounding."""
    rest = fmod(x, y)
    quotient = (x - rest) / y
    quotient = select((rest != 0) & ((y < 0) != (rest < 0)), quotient - 1.0, quotient)
    whole = floor(quotient)
    whole = select(quotient - whole > 0.5, whole + 1.0, whole)
    whole = select(quotient == 0, copysign(0.0, x / y), whole)
    return select(y == 0, x / y, whole)


def fmod(a: Operand, b: Operand) -> Value:
    """The exact remainder with the sign of a. An integer by zero gives 0."""
    _no_bool("fmod", a, b)
    x, y = unify(a, b)
    if x.dtype.kind == "float":
        return node("fmod", x.dtype, x, y)
    x, y, safe, zero = _guarded(a, b)
    return select(zero, 0, node("irem", x.dtype, x, safe))


def remainder(a: Operand, b: Operand) -> Value:
    """Python's a % b: it has the sign of b. An integer by zero gives 0."""
    x, y = unify(a, b)
    rest = fmod(x, y)
    if x.dtype.kind == "uint":
        return rest
    return select((rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest)


# --- floating functions ---------------------------------------------------------------------------


def _need_floating(name: str, x: Value) -> None:
    if x.dtype.kind != "float":
        raise Unsupported(f"{name}: expected floating values, got {x.dtype}")


def _function(real: Callable[[Value], Value], on_complex: Any = None) -> Callable[[Operand], Value]:
    """The public form of a function that is defined on floating, perhaps on complex values."""
    name = real.__name__

    def apply(x: Operand) -> Value:
        x = value_of(x)
        if isinstance(x, Complex) and on_complex is not None:
            return on_complex(x)
        _need_floating(name, x)
        return real(x)

    apply.__name__, apply.__doc__ = name, real.__doc__
    return apply


exp = _function(_math.exp, _complex.exp)
exp2 = _function(_math.exp2, _complex.exp2)
expm1 = _function(_math.expm1, _complex.expm1)
log = _function(_math.log, _complex.log)
log2 = _function(_math.log2, _complex.log_base_2)
log10 = _function(_math.log10, _complex.log_base_10)
log1p = _function(_math.log1p, _complex.log1p)
sqrt = _function(_math.sqrt, _complex.sqrt)
rsqrt = _function(_math.rsqrt, lambda x: 1.0 / _complex.sqrt(x))
sigmoid = _function(_math.sigmoid, _complex.sigmoid)
tanh = _function(_math.tanh, _complex.tanh)
sinh = _function(_math.sinh, _complex.sinh)
cosh = _function(_math.cosh, _complex.cosh)
asinh = _function(_math.asinh, _complex.asinh)
acosh = _function(_math.acosh, _complex.acosh)
atanh = _function(_math.atanh, _complex.atanh)
sin = _function(_trig.sin, _complex.sin)
cos = _function(_trig.cos, _complex.cos)
tan = _function(_trig.tan, _complex.tan)
asin = _function(_trig.asin, _complex.asin)
acos = _function(_trig.acos, _complex.acos)
atan = _function(_trig.atan, _complex.atan)
erf = _function(_special.erf)
erfc = _function(_special.erfc)
erfinv = _function(_special.erfinv)
normal_cdf = _function(_special.normal_cdf)
lgamma = _function(_special.lgamma)
digamma = _function(_special.digamma)
bessel_i0 = _function(_special.i0)
bessel_i1 = _function(_special.i1)
bessel_i0e = _function(_special.i0e)
bessel_i1e = _function(_special.i1e)


def atan2(y: Operand, x: Operand) -> Value:
    """The angle of the point (x, y), in -pi to pi, with the signs of zeros as in IEEE 754."""
    a, b = unify(y, x)
    _need_floating("atan2", a)
    return _trig.atan2(a, b)


def hypot(a: Operand, b: Operand) -> Value:
    """sqrt(a^2 + b^2) without overflow. float32: in float64. float64: the C library's."""
    x, y = unify(a, b)
    if x.dtype != F32:
        return call("hypot", x, y)
    u, v = _cast(x, F64), _cast(y, F64)
    endless = (abs(u) == inf) | (abs(v) == inf)
    return _cast(select(endless, inf, sqrt(u * u + v * v)), F32)


def fma(a: Operand, b: Operand, c: Operand) -> Value:
    """a * b + c, rounded once where the processor can (v3, v4), else twice."""
    x, y, z = unify(a, b, c)
    _need_floating("fma", x)
    return node("fma", x.dtype, x, y, z)


def square(x: Operand) -> Value:
    x = value_of(x)
    return x * x


def pow(a: Operand, b: Operand) -> Value:
    """a ** b. Small whole numbers as b become products; integers wrap around."""
    if isinstance(a, Value) and not isinstance(b, Value):
        short = _short_pow(a, b)
        if short is not None:
            return short
    x, y = unify(a, b)
    if x.dtype == BOOL:
        return x | ~y
    if x.dtype.is_integer:
        wide = [_cast(v, I64) for v in (x, y)]
        return _cast(node("call", I64, *wide, value="weft_pow_i64"), x.dtype)
    general = _complex.pow(x, y) if isinstance(x, Complex) else _math.pow(x, y)
    number = components(y)[0]
    if number.op == "source" and number.value[0] == "attribute":
        return _specialised_pow(x, y, general)
    return general


def _short_pow(x: Value, n: Any) -> Value | None:
    if isinstance(n, complex) or (is_bool(x)):
        return None
    if is_complex(x) and builtins.abs(n) == 0.5:
        return sqrt(x) if n > 0 else rsqrt(x)
    if n == 0.5 and is_floating(x):
        return select(x == -inf, inf, sqrt(x) + 0.0)
    if n == -0.5 and is_floating(x):
        return select(x == -inf, 0.0, 1.0 / (sqrt(x) + 0.0))
    if n != int(n) or builtins.abs(n) > 8 or (n < 0 and is_integral(x)):
        return None
    result: Value | None = None
    square_, rest = x, builtins.abs(int(n))
    while rest:
        if rest & 1:  # not by a complex 1, whose 0j would turn infinite parts into NaN
            result = square_ if result is None else result * square_
        rest >>= 1
        if rest:
            square_ = square_ * square_
    if result is None:
        return value_of(1, x.dtype)
    return 1.0 / result if n < 0 else result


def _specialised_pow(x: Value, y: Value, general: Value) -> Value:
    """The exponent is one number for the whole call: one loop for each common case of it.

    Of complex numbers the logarithm would spoil exact results, 1j ** 2 for example.
    """
    cases = [2.0, 3.0, 0.5, -1.0] + ([1.0, -2.0, -0.5] if is_complex(x) else [])
    bodies = [components(value_of(x**c)) for c in cases]
    conditions = [y == c for c in cases]
    parts = [
        node("cases", g.dtype, g, *(v for c, b in zip(conditions, bodies) for v in (c, b[i])))
        for i, g in enumerate(components(general))
    ]
    return assemble(x.dtype, parts)


def call(name: str, *xs: Operand) -> Value:
    """The C library's function `name`, element by element ("lgamma"; the float one on float32)."""
    values = unify(*xs)
    d = values[0].dtype
    _need_floating(name, values[0])
    return node("call", d, *values, value=name + ("f" if d.bits == 32 else ""))


# --- complex --------------------------------------------------------------------------------------


def real(x: Operand) -> Value:
    return value_of(x).real


def imag(x: Operand) -> Value:
    return value_of(x).imag


def conj(x: Operand) -> Value:
    x = value_of(x)
    return Complex(x.real, -x.imag) if isinstance(x, Complex) else x


def angle(x: Operand) -> Value:
    """The argument of a complex value; 0 or pi of a real one (NaN stays)."""
    x = value_of(x)
    if isinstance(x, Complex):
        return atan2(x.imag, x.real)
    _need_floating("angle", x)
    return select(x != x, x, select(x < 0, pi, 0.0))
