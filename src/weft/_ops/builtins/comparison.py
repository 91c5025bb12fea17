"""Comparison: of numbers exactly, of containers item by item."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

from weft._ops.builtins.rows import builtin as _builtin

_ORDER = (
    ("lt", "<", operator.lt), ("gt", ">", operator.gt), ("le", "<=", operator.le),
    ("ge", ">=", operator.ge),
)  # fmt: skip
_EQUALITY = (("eq", "==", operator.eq), ("ne", "!=", operator.ne))


builtin = partial(_builtin, family="comparison")


for _name, _sign, _function in (*_ORDER, *_EQUALITY):
    for _types, _overload, _cpp in (
        ("int int", ".int", f"a {_sign} b"), ("float float", ".float", f"a {_sign} b"),
        ("int float", ".int_float", f"compare(a, b) {_sign} 0"),
        ("float int", ".float_int", f"0 {_sign} compare(b, a)"),
        ("str str", ".str", f"a {_sign} b"), ("Scalar Scalar", "", f"scalar_{_name}"),
    ):  # fmt: skip
        _a, _b = _types.split()
        builtin(
            f"{_name}{_overload}({_a} a, {_b} b) -> bool", _cpp, _function, f"a {_sign} b.",
            ("total",),
        )  # fmt: skip

for _name, _sign, _function in _EQUALITY:
    _doc = f"a {_sign} b."
    _not = "" if _name == "eq" else "!"
    for _types, _overload in (
        ("bool bool", "bool"), ("complex complex", "complex"), ("float complex", "float_complex"),
        ("complex float", "complex_float"),
    ):  # fmt: skip
        _a, _b = _types.split()
        builtin(
            f"{_name}.{_overload}({_a} a, {_b} b) -> bool", f"a {_sign} b", _function, _doc,
            ("total",),
        )  # fmt: skip
    for _type, _overload in (
        ("Device", "device"), ("AnyEnumType", "enum"), ("ScalarType", "dtype"),
        ("int[]", "int_list"), ("float[]", "float_list"), ("bool[]", "bool_list"),
        ("str[]", "str_list"), ("Tensor[]", "Tensor_list"), ("t", "t"),
    ):  # fmt: skip
        builtin(
            f"{_name}.{_overload}({_type} a, {_type} b) -> bool", f"{_not}equal(a, b)", _function,
            _doc, ("total",) if _overload in ("device", "enum", "dtype") else (),
        )  # fmt: skip

for _name, _cpp, _function in (
    ("lt", "less(a, b)", operator.lt), ("gt", "less(b, a)", operator.gt),
    ("le", "less_or_equal(a, b)", operator.le), ("ge", "less_or_equal(b, a)", operator.ge),
):  # fmt: skip
    builtin(
        f"{_name}.t(t a, t b) -> bool", _cpp, _function,
        "The order of lists and tuples: that of the first items that differ.",
    )  # fmt: skip


def _is(a: Any, b: Any) -> bool:
    """Numbers and strings have no identity of their own: equal ones of one type are the same."""
    return a is b or (
        type(a) is type(b) and isinstance(a, (int, float, complex, str)) and repr(a) == repr(b)
    )


_IDENTITY = ("total", "compares_identity")
builtin("__is__(t1 self, t2 obj) -> bool", "is_same(a, b)", _is, "The same object.", _IDENTITY)
builtin(
    "__isnot__(t1 self, t2 obj) -> bool", "!is_same(a, b)", lambda a, b: not _is(a, b),
    "Another object.", (*_IDENTITY, "negation"),
)  # fmt: skip
