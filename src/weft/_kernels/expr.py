"""Symbolic scalars: the nodes a traced kernel body is made of, and their arithmetic.

A real value is one `Expr`; a complex one is a `Complex`, a pair of them. A node is immutable;
shared nodes are shared computations. Bodies see operators and functions only (see `lang`).
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from math import inf
from typing import Any, Union

from .types import BOOL, C64, C128, F64, I32, I64, DType, common, max_value, min_value

Number = bool | int | float | complex
Operand = Union["Value", bool, int, float, complex]


class Unsupported(TypeError):
    """A body is not defined for the dtype it is traced with: there will be no such kernel."""


_compute: contextvars.ContextVar[DType] = contextvars.ContextVar("compute", default=F64)


@contextlib.contextmanager
def computing(d: DType) -> Iterator[None]:
    """Within it, numbers that meet no symbolic scalar have type `d`."""
    token = _compute.set(d)
    try:
        yield
    finally:
        _compute.reset(token)


class Value:
    """A symbolic scalar: + - * / // % ** comparisons & | ^ ~ << >> and `.dtype .real .imag`.

    It has no truth value: use `where(condition, a, b)`.
    """

    __slots__ = ()
    __hash__ = object.__hash__
    dtype: DType

    def __bool__(self) -> bool:
        raise TypeError(
            "kernel body: expected where(condition, a, b), got a symbolic value in `if`"
        )

    # fmt: off
    def __add__(self, o: Operand) -> Value: return add(self, o)
    def __radd__(self, o: Operand) -> Value: return add(o, self)
    def __sub__(self, o: Operand) -> Value: return sub(self, o)
    def __rsub__(self, o: Operand) -> Value: return sub(o, self)
    def __mul__(self, o: Operand) -> Value: return mul(self, o)
    def __rmul__(self, o: Operand) -> Value: return mul(o, self)
    def __truediv__(self, o: Operand) -> Value: return div(self, o)
    def __rtruediv__(self, o: Operand) -> Value: return div(o, self)
    def __and__(self, o: Operand) -> Value: return bitwise("and", self, o)
    def __rand__(self, o: Operand) -> Value: return bitwise("and", o, self)
    def __or__(self, o: Operand) -> Value: return bitwise("or", self, o)
    def __ror__(self, o: Operand) -> Value: return bitwise("or", o, self)
    def __xor__(self, o: Operand) -> Value: return bitwise("xor", self, o)
    def __rxor__(self, o: Operand) -> Value: return bitwise("xor", o, self)
    def __lshift__(self, o: Operand) -> Value: return shift_left(self, o)
    def __rlshift__(self, o: Operand) -> Value: return shift_left(o, self)
    def __rshift__(self, o: Operand) -> Value: return shift_right(self, o)
    def __rrshift__(self, o: Operand) -> Value: return shift_right(o, self)
    def __neg__(self) -> Value: return neg(self)
    def __pos__(self) -> Value: return self
    def __invert__(self) -> Value: return bitwise_not(self)
    def __lt__(self, o: Operand) -> Value: return compare("lt", self, o)
    def __le__(self, o: Operand) -> Value: return compare("le", self, o)
    def __gt__(self, o: Operand) -> Value: return compare("gt", self, o)
    def __ge__(self, o: Operand) -> Value: return compare("ge", self, o)
    def __eq__(self, o: Operand) -> Value: return compare("eq", self, o)  # type: ignore[override]
    def __ne__(self, o: Operand) -> Value: return compare("ne", self, o)  # type: ignore[override]

    # The operators below need functions of the language itself.
    def __floordiv__(self, o: Operand) -> Value: return _lang().floor_divide(self, o)
    def __rfloordiv__(self, o: Operand) -> Value: return _lang().floor_divide(o, self)
    def __mod__(self, o: Operand) -> Value: return _lang().remainder(self, o)
    def __rmod__(self, o: Operand) -> Value: return _lang().remainder(o, self)
    def __pow__(self, o: Operand) -> Value: return _lang().pow(self, o)
    def __rpow__(self, o: Operand) -> Value: return _lang().pow(o, self)
    def __abs__(self) -> Value: return _lang().abs(self)

    # fmt: on
    @property
    def real(self) -> Value:
        return self

    @property
    def imag(self) -> Value:
        return constant(0, self.dtype.real)


def _lang() -> Any:
    from . import lang

    return lang


class Expr(Value):
    """One node: `op` on `args`, of a real type. `value` holds what is not an operand."""

    __slots__ = ("args", "dtype", "op", "value")

    def __init__(self, op: str, dtype: DType, args: tuple[Expr, ...] = (), value: Any = None):
        self.op, self.dtype, self.args, self.value = op, dtype, args, value

    def __repr__(self) -> str:
        inner = [repr(a) for a in self.args] + ([] if self.value is None else [repr(self.value)])
        return f"{self.op}.{self.dtype}({', '.join(inner)})"


class Complex(Value):
    """A complex value: its parts are real nodes of one type."""

    __slots__ = ("_imag", "_real")

    def __init__(self, real: Value, imag: Value):
        assert isinstance(real, Expr) and isinstance(imag, Expr)
        self._real, self._imag = real, imag

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return C128 if self._real.dtype == F64 else C64

    @property
    def real(self) -> Value:
        return self._real

    @property
    def imag(self) -> Value:
        return self._imag


def components(v: Value) -> tuple[Expr, ...]:
    """The real nodes of a value: one, or two for a complex one."""
    if isinstance(v, Complex):
        return (*components(v.real), *components(v.imag))
    assert isinstance(v, Expr)
    return (v,)


def assemble(d: DType, parts: list[Expr] | tuple[Expr, ...]) -> Value:
    """The inverse of `components` for a value of type `d`."""
    return Complex(*parts) if d.kind == "complex" else parts[0]


def source(kind: str, index: int, d: DType) -> Value:
    """A value that comes from outside the expression: operand, attribute, row value..."""
    parts = [Expr("source", d.real, (), (kind, index, i)) for i in range(2)]
    return Complex(*parts) if d.kind == "complex" else parts[0]


def constant(number: Number, d: DType) -> Value:
    """A number as a value of type `d`. Raises Unsupported if it is not one (0.5 as an integer)."""
    if d.kind == "complex":
        z = complex(number)
        return Complex(constant(z.real, d.real), constant(z.imag, d.real))
    if isinstance(number, complex):
        raise Unsupported(f"constant: expected a real number for {d}, got {number}")
    if d.kind == "float":
        return Expr("const", d, (), float(number))
    if isinstance(number, float) and not number.is_integer():
        raise Unsupported(f"constant: expected an integer for {d}, got {number}")
    if d.kind == "bool":
        return Expr("const", d, (), bool(number))
    span = 1 << d.bits
    wrapped = (int(number) - int(min_value(d))) % span + int(min_value(d))
    return Expr("const", d, (), wrapped)


def value_of(x: Operand, d: DType | None = None) -> Value:
    """x itself, or the number x as a constant of type `d` (by default the compute dtype)."""
    return x if isinstance(x, Value) else constant(x, d or _compute.get())


def unify(*xs: Operand) -> list[Value]:
    """The operands as values of one type; plain numbers adapt to the symbolic ones."""
    types = [x.dtype for x in xs if isinstance(x, Value)]
    if not types:
        return [value_of(x) for x in xs]
    d = types[0]
    for t in types[1:]:
        d = common(d, t)
    if d == BOOL and any(not isinstance(x, (Value, bool)) for x in xs):
        d = BOOL if all(isinstance(x, Value) or x in (0, 1) for x in xs) else I64
    return [cast(x, d) if isinstance(x, Value) else constant(x, d) for x in xs]


def node(op: str, d: DType, *args: Value, value: Any = None) -> Expr:
    """A node over real arguments."""
    assert all(isinstance(a, Expr) for a in args), f"{op}: expected real arguments"
    return Expr(op, d, args, value)  # type: ignore[arg-type]


def is_const(x: Value, number: Number) -> bool:
    return isinstance(x, Expr) and x.op == "const" and x.value == number


# --- arithmetic ---------------------------------------------------------------------------------


def add(a: Operand, b: Operand) -> Value:
    """a + b; logical or on bool."""
    x, y = unify(a, b)
    if isinstance(x, Complex):
        return Complex(x.real + y.real, x.imag + y.imag)
    return node("or" if x.dtype == BOOL else "add", x.dtype, x, y)


def sub(a: Operand, b: Operand) -> Value:
    """a - b; not defined on bool."""
    x, y = unify(a, b)
    if isinstance(x, Complex):
        return Complex(x.real - y.real, x.imag - y.imag)
    if x.dtype == BOOL:
        raise Unsupported("sub: expected numbers, got bool")
    return node("sub", x.dtype, x, y)


def mul(a: Operand, b: Operand) -> Value:
    """a * b; logical and on bool."""
    x, y = unify(a, b)
    if isinstance(x, Complex):
        return Complex(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)
    if is_const(y, 1) and y.dtype != BOOL:
        return x
    if is_const(x, 1) and x.dtype != BOOL:
        return y
    return node("and" if x.dtype == BOOL else "mul", x.dtype, x, y)


def div(a: Operand, b: Operand) -> Value:
    """a / b on floating and complex values."""
    x, y = unify(a, b)
    if isinstance(x, Complex):
        return _complex_div(x, y)
    if x.dtype.kind != "float":
        raise Unsupported(f"div: expected floating values, got {x.dtype}")
    return node("div", x.dtype, x, y)


def _complex_div(x: Value, y: Value) -> Value:
    """Smith's method: scale by the larger part of the divisor, so that nothing overflows early.

    By a zero, both parts are divided by +0.
    """
    c, d = y.real, y.imag
    swap = _magnitude(c) < _magnitude(d)
    big, small = select(swap, d, c), select(swap, c, d)
    ratio = small / big
    scale = 1.0 / (big + small * ratio)
    re = select(swap, x.real * ratio + x.imag, x.real + x.imag * ratio)
    im = select(swap, x.imag * ratio - x.real, x.imag - x.real * ratio)
    zero = (c == 0) & (d == 0)
    return Complex(select(zero, x.real * inf, re * scale), select(zero, x.imag * inf, im * scale))


def _magnitude(x: Value) -> Value:
    return node("fabs", x.dtype, x)


def neg(a: Operand) -> Value:
    """-a; not defined on bool."""
    x = value_of(a)
    if isinstance(x, Complex):
        return Complex(-x.real, -x.imag)
    if x.dtype == BOOL:
        raise Unsupported("neg: expected numbers, got bool")
    return node("neg", x.dtype, x)


def compare(op: str, a: Operand, b: Operand) -> Value:
    """A comparison (eq ne lt le gt ge): Bool. Complex values compare for equality only."""
    x, y = unify(a, b)
    if isinstance(x, Complex):
        if op == "eq":
            return (x.real == y.real) & (x.imag == y.imag)
        if op == "ne":
            return (x.real != y.real) | (x.imag != y.imag)
        raise Unsupported(f"{op}: expected ordered values, got {x.dtype}")
    return node(op, BOOL, x, y)


def bitwise(op: str, a: Operand, b: Operand) -> Value:
    """and, or, xor on bool and integers."""
    x, y = unify(a, b)
    if x.dtype != BOOL and not x.dtype.is_integer:
        raise Unsupported(f"bitwise {op}: expected bool or integers, got {x.dtype}")
    return node(op, x.dtype, x, y)


def bitwise_not(a: Operand) -> Value:
    """~a on bool (logical not) and integers."""
    x = value_of(a)
    if x.dtype != BOOL and not x.dtype.is_integer:
        raise Unsupported(f"bitwise not: expected bool or integers, got {x.dtype}")
    return node("not", x.dtype, x)


def _shift_count(a: Operand, b: Operand) -> tuple[Value, Value, Value]:
    x, n = unify(a, b)
    if not x.dtype.is_integer:
        raise Unsupported(f"shift: expected integers, got {x.dtype}")
    return x, n, (n >= 0) & (n < x.dtype.bits)


def shift_left(a: Operand, b: Operand) -> Value:
    """a << b; 0 where b is negative or not below the width."""
    x, n, valid = _shift_count(a, b)
    shifted = node("shl", x.dtype, x, select(valid, n, 0))
    return select(valid, shifted, 0)


def shift_right(a: Operand, b: Operand) -> Value:
    """a >> b, keeping the sign; where b is out of range, what remains is the sign alone."""
    x, n, valid = _shift_count(a, b)
    if x.dtype.kind == "int":
        return node("shr", x.dtype, x, select(valid, n, x.dtype.bits - 1))
    return select(valid, node("shr", x.dtype, x, select(valid, n, 0)), 0)


# --- choice and conversion ----------------------------------------------------------------------


def select(condition: Operand, a: Operand, b: Operand) -> Value:
    """a where condition holds (is not zero), else b."""
    c = cast(value_of(condition, BOOL), BOOL)
    x, y = unify(a, b)
    if isinstance(x, Complex):
        return Complex(select(c, x.real, y.real), select(c, x.imag, y.imag))
    return node("select", x.dtype, c, x, y)


def cast(a: Operand, d: DType) -> Value:
    """a as type `d`.

    To bool: is it not zero. Floating to integer truncates, through a signed integer of at least 32
    bits that saturates, NaN giving 0; narrower and unsigned types then wrap. Complex to real drops
    the imaginary part.
    """
    x = value_of(a, d)
    if x.dtype == d:
        return x
    if d.kind == "complex":
        return Complex(cast(x.real, d.real), cast(x.imag, d.real))
    if isinstance(x, Complex):
        return (x != 0) if d == BOOL else cast(x.real, d)
    if isinstance(x, Expr) and x.op == "const" and (d.kind == "float" or x.dtype.kind != "float"):
        return constant(x.value if d != BOOL else x.value != 0, d)
    if d == BOOL:
        return x != 0
    if x.dtype.kind == "float" and d.is_integer:
        return _float_to_int(x, d)
    return node("cast", d, x)


def _float_to_int(x: Value, d: DType) -> Value:
    wide = I64 if d.bits == 64 or d.name == "U32" else I32
    low = float(min_value(wide))
    # The greatest value of `x.dtype` that is still in range.
    mantissa = 24 if x.dtype.bits == 32 else 53
    digits = wide.bits - 1
    high = (
        float(max_value(wide))
        if mantissa >= digits
        else float((1 << digits) - (1 << (digits - mantissa)))
    )
    safe = select(x != x, 0.0, x)
    # Where 2^63 and more is representable, the excess is taken off first and added as an integer.
    excess = safe >= 9223372036854775808.0 if d.name == "U64" else None
    if excess is not None:
        safe = select(excess, safe - 9223372036854775808.0, safe)
    safe = select(safe > low, safe, low)
    safe = select(safe < high, safe, high)
    result = cast(node("fptosi", wide, safe), d)
    if excess is not None:
        result = select(excess, result ^ (1 << 63), result)
    elif wide.bits - 1 > mantissa:  # saturate to the very end of the integer type
        result = select(x > high, int(max_value(wide)) if d == wide else -1, result)
    return result


def bitcast(a: Value, d: DType) -> Value:
    """The bits of a as type `d` of the same width."""
    assert isinstance(a, Expr) and a.dtype.bits == d.bits
    return a if a.dtype == d else node("bitcast", d, a)
