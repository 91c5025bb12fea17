"""Arithmetic of numbers, strings and lists; bits. Ints are of 64 bits and never wrap: a result that
does not fit raises OverflowError."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any

from weft._ops.builtins.reference import check_int, int64, no_complex, number
from weft._ops.builtins.rows import builtin as _builtin

_COMPLEX_PAIRS = (
    ("int", "complex"),
    ("complex", "int"),
    ("float", "complex"),
    ("complex", "float"),
)
_REAL_PAIRS = (("int", "float"), ("float", "int"))


builtin = partial(_builtin, family="arithmetic")


def _both(a: str, b: str) -> str:
    """The arguments as complex numbers."""
    return ", ".join(
        name if type_ == "complex" else f"to_complex({name})"
        for type_, name in ((a, "a"), (b, "b"))
    )


def _of_one_kind(function: Any) -> Any:
    """The function, of complex numbers alone where one is complex. A real one has the imaginary
    part 0 then, as in PyTorch: from Python 3.14 on it has none, and 0.0 - 0j is -0j."""
    return lambda *both: function(*map(complex, both) if complex in map(type, both) else both)


def _ring(name: str, sign: str, of_python: Any, doc: str) -> None:
    tags = ("commutative",) if name != "sub" else ()
    function = _of_one_kind(of_python)
    builtin(f"{name}.int(int a, int b) -> int", f"checked_{name}(a, b)", int64(function), doc, tags)
    builtin(
        f"{name}.complex(complex a, complex b) -> complex", f"{name}_complex(a, b)", function, doc,
        tags,
    )  # fmt: skip
    builtin(
        f"{name}.float(float a, float b) -> float", f"a {sign} b", function, doc, (*tags, "total")
    )
    for a, b in _COMPLEX_PAIRS:
        builtin(
            f"{name}.{a}_{b}({a} a, {b} b) -> complex", f"{name}_complex({_both(a, b)})", function,
            doc,
        )  # fmt: skip
    for a, b in _REAL_PAIRS:
        cpp = f"to_double(a) {sign} b" if a == "int" else f"a {sign} to_double(b)"
        builtin(f"{name}.{a}_{b}({a} a, {b} b) -> float", cpp, function, doc)
    builtin(f"{name}(Scalar a, Scalar b) -> Scalar", f"scalar_{name}", number(function), doc, tags)


_ring("add", "+", operator.add, "The sum.")
_ring("sub", "-", operator.sub, "The difference.")
_ring("mul", "*", operator.mul, "The product.")

builtin("div.int(int a, int b) -> float", "divide(a, b)", operator.truediv, "The quotient.")
builtin(
    "div.complex(complex a, complex b) -> complex", "divide_complex", operator.truediv,
    "The quotient.",
)  # fmt: skip
builtin("div.float(float a, float b) -> float", "divide(a, b)", operator.truediv, "The quotient.")
builtin("div(Scalar a, Scalar b) -> float", "scalar_div", operator.truediv, "The quotient.")

_FLOOR = (
    ("floordiv", "floor_div", operator.floordiv, "The quotient, rounded down."),
    ("remainder", "floor_mod", operator.mod, "What division rounded down leaves: b's sign."),
)
for _name, _cpp, _function, _doc in _FLOOR:
    builtin(f"{_name}.int(int a, int b) -> int", f"{_cpp}(a, b)", int64(_function), _doc)
    builtin(f"{_name}.float(float a, float b) -> float", f"{_cpp}(a, b)", _function, _doc)
    builtin(
        f"{_name}.int_float(int a, float b) -> float", f"{_cpp}(to_double(a), b)", _function, _doc
    )
    builtin(
        f"{_name}.float_int(float a, int b) -> float", f"{_cpp}(a, to_double(b))", _function, _doc
    )
    builtin(f"{_name}(Scalar a, Scalar b) -> Scalar", f"scalar_{_name}", number(_function), _doc)


def _round_to_zero(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return check_int(quotient if (a < 0) == (b < 0) else -quotient)


builtin(
    "__round_to_zero_floordiv.int(int a, int b) -> int", "truncating_div(a, b)", _round_to_zero,
    "The quotient, rounded towards zero.",
)  # fmt: skip
_DIVMOD = (("int", "int"), ("float", "float"), ("int", "float"), ("float", "int"))
for _a, _b in _DIVMOD:
    _overload = _a if _a == _b else f"{_a}_{_b}"
    _result = "int" if _a == _b == "int" else "float"
    _cast = "" if _result == "int" else "to_double"
    builtin(
        f"divmod.{_overload}({_a} x, {_b} y) -> ({_result}, {_result})",
        f"div_and_mod({_cast}(a), {_cast}(b))",
        (lambda x, y: tuple(map(check_int, divmod(x, y)))) if _result == "int" else divmod,
        "Quotient rounded down, and remainder.",
    )


def _pow(a: Any, b: Any) -> Any:
    if math.isfinite(a) and math.isfinite(b) and a < 0 and b != int(b):
        raise ValueError(f"pow: expected a real result, got {a} ** {b}")
    return no_complex(operator.pow)(a, b)


builtin(
    "pow.int(int a, int b) -> float", "power(to_double(a), to_double(b))",
    lambda a, b: _pow(float(a), float(b)), "a to the b, as a float.",
)  # fmt: skip
builtin(
    "pow.complex(complex a, complex b) -> complex", "power_complex", operator.pow, "a to the b."
)
builtin("pow.float(float a, float b) -> float", "power(a, b)", _pow, "a to the b.")
builtin("pow.int_float(int a, float b) -> float", "power(to_double(a), b)", _pow, "a to the b.")
builtin("pow.float_int(float a, int b) -> float", "power(a, to_double(b))", _pow, "a to the b.")
for _a, _b in _COMPLEX_PAIRS[2:]:
    builtin(
        f"pow.{_a}_{_b}({_a} a, {_b} b) -> complex", f"power_complex({_both(_a, _b)})",
        operator.pow, "a to the b.",
    )  # fmt: skip
builtin(
    "pow.Scalar_Scalar(Scalar a, Scalar b) -> float", "scalar_pow",
    lambda a, b: _pow(float(a), float(b)), "a to the b, as a float.",
)  # fmt: skip


def _int_pow(a: int, b: int) -> int:
    if b < 0:
        raise ValueError(f"pow: expected an exponent of at least 0, got {b}")
    return check_int(a**b) if abs(a) < 2 or b < 64 else check_int(2**64)


builtin(
    "pow.int_to_int(int a, int b) -> int", "power(a, b)", _int_pow,
    "a to the b; ValueError where b is negative.",
)  # fmt: skip

builtin("neg.int(int a) -> int", "checked_neg(a)", int64(operator.neg), "-a.")
builtin("neg.float(float a) -> float", "-a", operator.neg, "-a.", ("total",))
builtin("neg.complex(complex a) -> complex", "-a", operator.neg, "-a.")
builtin("neg.Scalar(Scalar a) -> Scalar", "scalar_neg", number(operator.neg), "-a.")
builtin("prim::abs.int(int a) -> int", "checked_abs(a)", int64(abs), "Without its sign.")
builtin("prim::abs.float(float a) -> float", "std::fabs(a)", abs, "Without its sign.")
builtin("prim::abs.complex(complex a) -> float", "absolute(a)", abs, "The distance from 0.")
builtin("prim::abs.Scalar(Scalar a) -> Scalar", "scalar_abs", number(abs), "Without its sign.")

for _name, _sign, _function in (
    ("__and__", "&", operator.and_), ("__or__", "|", operator.or_), ("__xor__", "^", operator.xor),
):  # fmt: skip
    builtin(
        f"{_name}.bool(bool a, bool b) -> bool", f"static_cast<bool>(a {_sign} b)", _function,
        f"a {_sign} b.", ("commutative", "total"),
    )  # fmt: skip
    builtin(
        f"{_name}.int(int a, int b) -> int", f"a {_sign} b", _function, f"a {_sign} b, bit by bit.",
        ("commutative", "total"),
    )  # fmt: skip
builtin("__not__(bool self) -> bool", "!a", operator.not_, "Whether it is False.",
        ("total", "negation"))  # fmt: skip
builtin("bitwise_not.int(int a) -> int", "~a", operator.invert, "Every bit changed: -a - 1.")


def _shift_left(a: int, b: int) -> int:
    return check_int(a << b) if b < 64 or a == 0 else check_int(2**64)


builtin(
    "__lshift__.int(int a, int b) -> int", "shift_left(a, b)", _shift_left,
    "a times 2 to the b; ValueError where b is negative.",
)  # fmt: skip
builtin(
    "__rshift__.int(int a, int b) -> int", "shift_right(a, b)", operator.rshift,
    "a divided by 2 to the b, rounded down; ValueError where b is negative.",
)  # fmt: skip

for _name, _function in (("min", min), ("max", max)):
    _doc = "The smaller one." if _name == "min" else "The larger one."
    _total = partial(builtin, doc=_doc, tags=("total",))
    _total(f"prim::{_name}.int(int a, int b) -> int", f"std::{_name}(a, b)", _function)
    _total(f"prim::{_name}.float(float a, float b) -> float", f"py_{_name}(a, b)", _function)
    for _a, _b in _REAL_PAIRS:
        _total(
            f"prim::{_name}.{_a}_{_b}({_a} a, {_b} b) -> float",
            f"py_{_name}(to_double(a), to_double(b))",
            lambda a, b, f=_function: float(f(float(a), float(b))),
        )
    _total(f"prim::{_name}(Scalar a, Scalar b) -> Scalar", f"scalar_{_name}", _function)

builtin(
    "__range_length(int lo, int hi, int step) -> int", "range_length",
    lambda lo, hi, step: check_int((hi - lo + (step - (1 if step > 0 else -1))) // step)
    if step and (hi > lo if step > 0 else hi < lo) else len(range(lo, hi, step)),
    "How many numbers range(lo, hi, step) has.",
)  # fmt: skip
builtin(
    "__derive_index(int index, int start, int step) -> int",
    "checked_add(b, checked_mul(a, c))",
    lambda index, start, step: check_int(start + check_int(index * step)),
    "The number of a range at `index`.",
)
