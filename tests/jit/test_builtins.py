"""Every builtin: its C++ body and its Python function give the same on the same arguments.

Results, changed arguments and classes of errors are compared.
"""

from __future__ import annotations

import itertools
import math
import re
import struct
import sys
from functools import cache
from typing import Any

import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft._ops import builtins
from weft._ops.builtins.rows import Builtin

ROWS = {kind: row for kind, row in builtins.load().items() if row.python is not None}
# Arguments that say how often or how wide: large ones would only fill memory.
SMALL = {"n", "width", "tabsize", "ndigits", "max", "step"}
# C++ and Python compute these by other formulas: they agree to some units in the last place.
ROUNDED = ("aten::polar", "aten::hypot", "aten::gamma", "aten::lgamma", "aten::pow.", "aten::log")
# Characters: ASCII, which has case and classes, and some that take more bytes.
ASCII = st.text(st.sampled_from("aAbBzZ019 _-+.,\t\n\r{}%"), max_size=8)
TEXT = st.one_of(ASCII, st.text(st.sampled_from("aé€😀 \n"), max_size=6))
INTS = st.one_of(
    st.integers(-9, 9), st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), 2**63 - 1])
)
FLOATS = st.one_of(
    st.floats(-4, 4), st.floats(), st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 1e16, 2.0**53])
)
FEW_FLOATS = st.sampled_from([0.0, 1.0, -2.5, 3.0])
COMPLEX = st.builds(complex, st.floats(-3, 3), st.floats(-3, 3))
OPEN = ("int", "float", "bool", "str", "(int, str)", "int[]")
KEY_INTS = st.integers(-3, 3)


def strategy(type_: str, name: str, kind: str) -> st.SearchStrategy[Any]:
    """Values of a schema type."""
    if type_.endswith("?"):
        return st.one_of(st.none(), strategy(type_[:-1], name, kind))
    if type_.endswith("[]"):
        items = few(type_[:-2])
        return st.lists(items, max_size=5)
    if type_.startswith("Dict("):
        key, value = parts_of(type_[5:-1])
        return st.dictionaries(few(key), few(value), max_size=4)
    if type_ == "int":
        if name in SMALL or (kind in ("aten::mul.str", "aten::ldexp") and name in "bi"):
            return st.integers(-12, 12)
        if name in ("idx", "index", "start", "end", "dim"):
            return st.integers(-7, 7)
        return KEY_INTS if name in ("el", "item", "key") else INTS
    if type_ == "float" and ("complex" in kind or "polar" in kind):
        return st.floats(-9, 9)
    if type_ == "str" and name in ("key", "el", "item", "substr", "fillchar", "chars", "old"):
        return few("str") if name != "fillchar" else st.sampled_from([" ", "*", "é", "", "ab"])
    if type_ == "Any":
        return st.lists(KEY_INTS, max_size=4).map(tuple)
    table = {
        "float": FLOATS if name not in ("el", "item", "key") else FEW_FLOATS,
        "bool": st.booleans(), "complex": COMPLEX,
        "str": ASCII if is_classifier(kind) else TEXT,
        "Scalar": st.one_of(INTS, FLOATS, st.booleans()),
    }  # fmt: skip
    return table[type_] if type_ in table else few(type_)


def is_classifier(kind: str) -> bool:
    """Whether a row asks for the class or changes the case of letters."""
    name = kind.removeprefix("aten::")
    return name.startswith("is") or name in ("lower", "upper", "swapcase", "capitalize", "title")


def parts_of(types: str) -> list[str]:
    """ "int, (str, t)[]" at the commas outside of brackets."""
    parts = [""]
    for piece in types.split(", "):
        is_open = parts[-1].count("(") > parts[-1].count(")")
        parts = [*parts[:-1], f"{parts[-1]}, {piece}"] if is_open else [*parts, piece]
    return parts[1:]


@cache
def few(type_: str) -> st.SearchStrategy[Any]:
    """Items of which equal ones turn up often."""
    if type_.endswith("[]"):
        return st.lists(few(type_[:-2]), max_size=2)
    if type_.startswith("("):
        return st.tuples(*map(few, parts_of(type_[1:-1])))
    return {
        "int": KEY_INTS, "float": FEW_FLOATS, "bool": st.booleans(),
        "str": st.sampled_from(["", "a", "b", "ab", "é"]), "complex": st.sampled_from([0j, 1j, 2]),
        "Any": KEY_INTS, "Device": st.just(weft.device("cpu")),
        "ScalarType": st.sampled_from([weft.float32, weft.int64]),
    }[type_]  # fmt: skip


def bind(type_: str, open_type: str) -> str:
    """The schema type with its type variable replaced."""
    return re.sub(r"\bk\b", "(int, str)", re.sub(r"\bt[12]?\b", open_type, type_))


def element(type_: str) -> str:
    """What the lists of an argument hold: the hint of _call_operator."""
    if type_.endswith("[]"):
        return type_[:-2]
    return parts_of(type_[5:-1])[1] if type_.startswith("Dict(") else ""


def made_here(row: Builtin) -> bool:
    """Whether arguments can be made here: tensors and enums have tests of their own."""
    types = " ".join(arg.type for arg in row.args)
    return not any(word in types for word in ("Tensor", "Enum", "Future", "Class"))


@cache
def calls(row: Builtin) -> st.SearchStrategy[tuple[list[Any], list[str]]]:
    """Arguments of a row, and what their lists hold."""
    is_open = any(bind(arg.type, "int") != bind(arg.type, "str") for arg in row.args)
    choices = OPEN[:5] if "sort" in row.name else OPEN
    return st.one_of([typed_calls(row, each) for each in (choices if is_open else OPEN[:1])])


def typed_calls(row: Builtin, open_type: str) -> st.SearchStrategy[tuple[list[Any], list[str]]]:
    types = [bind(arg.type, open_type) for arg in row.args]
    args = [strategy(t, a.name, row.kind) for t, a in zip(types, row.args)]
    return st.tuples(st.tuples(*args).map(list), st.just([*map(element, types)]))


def outcome(function: Any) -> tuple[Any, Any]:
    """The result of a call, and the class of its error."""
    try:
        return function(), None
    except (ArithmeticError, LookupError, ValueError, TypeError) as error:
        classes = (OverflowError, ZeroDivisionError, IndexError, KeyError, ValueError, TypeError)
        return None, next(c for c in classes if isinstance(error, c))


def same(a: Any, b: Any, rounded: bool) -> bool:
    """Equal, of the same types, NaN equal to NaN and -0.0 other than 0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y, rounded) for x, y in zip(a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()), rounded)
    if isinstance(a, complex):
        if any(map(math.isnan, (a.real, a.imag, b.real, b.imag))):
            return same(a.real, b.real, True) and same(a.imag, b.imag, True)
        zeros = [(x, y) for x, y in ((a.real, b.real), (a.imag, b.imag)) if x == y == 0]
        # cmath's own formulas lose units of the least subnormal numbers.
        return (a == b or abs(a - b) <= 1e-12 * abs(b) + 1e-322) and all(
            math.copysign(1, x) == math.copysign(1, y) for x, y in zeros
        )
    if isinstance(a, float):
        if math.isnan(a) or rounded:
            return math.isnan(a) == math.isnan(b) and (
                math.isnan(a) or math.isclose(a, b, rel_tol=1e-13, abs_tol=1e-13)
            )
        return struct.pack("d", a) == struct.pack("d", b)
    return bool(a == b)


# 'z' is of Python 3.11; programs have it with every Python.
PYTHON_HAS_Z = sys.version_info >= (3, 11)


@pytest.mark.parametrize("kind", [kind for kind, row in ROWS.items() if made_here(row)])
@examples(4)
@given(data=st.data())
def test_body_against_python(kind: str, data: Any) -> None:
    row = ROWS[kind]
    if row.schema.varargs:
        return
    for args, elements in data.draw(st.lists(calls(row), min_size=8, max_size=8)):
        if PYTHON_HAS_Z or kind != "aten::format_spec" or "z" not in args[1]:
            check_call(row, args, elements)


MIXED = "sum(xs), a - b, a + b, n - b, b * -a, n * c"


def test_numbers_do_not_depend_on_the_version_of_python() -> None:
    """Python makes up for what sums of floats round from 3.12 on, and mixes real and complex numbers otherwise
    from 3.14 on. Constants are folded to what the calls give."""
    constants = "xs, a, b, c, n = [0.1, 0.2, 0.3], 0.0, 0j, complex(math.inf, 0.0), 2"
    program = weft.jit.CompilationUnit(
        f"def called(xs: List[float], a: float, b: complex, c: complex, n: int):\n    return {MIXED}\n"
        f"def folded():\n    {constants}\n    return {MIXED}\n"
    )
    called = program.called([0.1, 0.2, 0.3], 0.0, 0j, complex(math.inf, 0.0), 2)
    for _ in range(3):
        assert repr(program.folded()) == repr(called)
    assert repr(called) == "(0.6000000000000001, 0j, 0j, (2+0j), (-0+0j), (inf+nanj))"


def check_call(row: Builtin, args: list[Any], elements: list[str]) -> None:
    """A body gives Python's results or Python's class of error, and leaves in its arguments what Python does."""
    assert row.python is not None
    kind = row.kind
    copies = weft_copy(args)
    wanted, wanted_error = outcome(lambda: row.python(*copies))  # type: ignore[misc]
    got, got_error = outcome(lambda: weft._C._call_operator(kind, tuple(args), elements))
    assert got_error == wanted_error, (args, wanted, got)
    if wanted_error is not None:
        return
    results, after = got
    if len(row.returns) == 0:
        assert wanted is None
    else:
        wanted = wanted if len(row.returns) > 1 else (wanted,)
        rounded = kind.startswith(ROUNDED)
        assert same(results, typed(wanted, row), rounded), (args, wanted, results)
    assert same(list(after), copies, False), (args, copies, after)


SPECIAL = {
    "int": [0, 1, -1, 2, -2, 3, 63, 64, 2**31, 2**63 - 1, -(2**63)],
    "float": [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 1e308, 5e-324, *map(float, ["inf", "-inf", "nan"])],
    "bool": [False, True],
}  # fmt: skip
NUMERIC = [
    kind
    for kind, row in ROWS.items()
    if not row.schema.varargs and row.args and all(arg.type in SPECIAL for arg in row.args)
]


@pytest.mark.parametrize("kind", NUMERIC)
def test_special_numbers_against_python(kind: str) -> None:
    row = ROWS[kind]
    for args in itertools.product(*(SPECIAL[arg.type] for arg in row.args)):
        if not (kind.endswith(("rangelist", "shift")) and args[-1] > 63) and not (
            "pow" in kind and abs(args[-1]) > 2**31
        ):
            check_call(row, list(args), [""] * len(args))


def weft_copy(args: list[Any]) -> list[Any]:
    """Copies of the containers among arguments."""
    return [type(a)(a) if isinstance(a, (list, dict)) else a for a in args]


def typed(results: tuple[Any, ...], row: Builtin) -> tuple[Any, ...]:
    """Python's results as the schema types them: True is 1 where an int is due."""
    kinds = {"int": int, "float": float, "bool": bool, "complex": complex}
    return tuple(
        kinds[part.type](value) if part.type in kinds else value
        for value, part in zip(results, row.returns)
    )


COMPLEX_UNARY = [
    kind
    for kind in ROWS
    if kind.endswith(".complex") and [a.type for a in ROWS[kind].args] == ["complex"]
]


@pytest.mark.parametrize("kind", COMPLEX_UNARY)
def test_subnormal_complex_numbers_against_python(kind: str) -> None:
    parts = [0.0, -0.0, 5e-324, -5e-324, 1e-310, 1e-200, 0.5, 1.0]
    for real, imag in itertools.product(parts, parts):
        check_call(ROWS[kind], [complex(real, imag)], [""])


@pytest.mark.parametrize("name", ["asin", "atan", "asinh", "atanh", "sin", "tan", "sinh", "tanh"])
def test_small_complex_numbers_are_their_own_images(name: str) -> None:
    parts = [0.0, -0.0, 5e-324, -5e-324, 1e-310, -1e-200]
    for number in itertools.starmap(complex, itertools.product(parts, parts)):
        assert repr(format_outcome(f"aten::{name}.complex", number)[0]) == repr(number)


CODES = [0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]


@pytest.mark.parametrize("code", CODES, ids=hex)
def test_characters_where_they_take_a_byte_more(code: int) -> None:
    for kind, args in {
        "aten::chr": (code,), "aten::format_spec": (code, "c"), "aten::percentFormat": ("%c", (code,)),
    }.items():  # fmt: skip
        assert format_outcome(kind, *args) == (chr(code), None)
    assert format_outcome("aten::ord", chr(code)) == (code, None)


# ---- formats ----

FILLS = st.sampled_from(["", "<", ">", "^", "=", "*<", "é^", "0>", "+="])
SPECS = st.builds(
    lambda *parts: "".join(parts),
    FILLS, st.sampled_from(["", "+", "-", " "]),
    st.sampled_from(["", "", "z"] if PYTHON_HAS_Z else [""]), st.sampled_from(["", "#"]),
    st.sampled_from(["", "0"]), st.sampled_from(["", "1", "5", "12", "20"]),
    st.sampled_from(["", ",", "_"]), st.sampled_from(["", ".0", ".1", ".3", ".10"]),
    st.sampled_from(["", "d", "x", "X", "o", "b", "c", "e", "E", "f", "F", "g", "G", "%", "s", "q"]),
)  # fmt: skip
SHOWN = st.one_of(
    st.integers(-300, 300), INTS, FLOATS, st.floats(-1e6, 1e6), st.booleans(), TEXT,
    st.sampled_from([0.1, 123456789.0, 1e-5, 999999.5, 0.00012345, 12345.678, 9.995]),
)  # fmt: skip


def format_outcome(kind: str, *args: Any) -> tuple[Any, Any]:
    """What the body of a format row gives."""
    return outcome(lambda: weft._C._call_operator(kind, args)[0][0])


@examples(200)
@given(value=SHOWN, spec=SPECS)
def test_format_specifications(value: Any, spec: str) -> None:
    wanted = outcome(lambda: format(value, spec))
    assert format_outcome("aten::format_spec", value, spec) == wanted
    text = "<{:" + spec + "}>"
    assert format_outcome("aten::format", text, (value,)) == outcome(lambda: text.format(value))


@pytest.mark.parametrize(
    ("value", "spec", "shown"),
    [
        (0.0, "z", "0.0"), (-0.0, "z", "0.0"), (-0.0, "", "-0.0"), (-0.04, "z.1f", "0.0"),
        (-0.06, "z.1f", "-0.1"), (-0.0, "+z.0E", "+0E+00"), (-1e-9, "z.3g", "-1e-09"),
        (-1e-9, "z.1%", "0.0%"), (-0.0, "z010.2f", "0000000.00"), (True, "zf", "1.000000"),
        (float("-inf"), "z", "-inf"), ("x", "z>3", "zzx"), (0, "z", None), (5, "zc", None),
        ("a", "z", None), (-0.0, "z+", None), (-0.0, "zz", None),
    ],
)  # fmt: skip
def test_no_negative_zero(value: Any, spec: str, shown: str | None) -> None:
    wanted = (shown, None if shown is not None else ValueError)
    assert format_outcome("aten::format_spec", value, spec) == wanted
    if PYTHON_HAS_Z:
        assert outcome(lambda: format(value, spec)) == wanted


PERCENTS = st.builds(
    lambda *parts: "%" + "".join(parts),
    st.sampled_from(["", "-", "+", " ", "#", "0", "-+", "0#", "+0"]),
    st.sampled_from(["", "1", "8", "14"]), st.sampled_from(["", ".0", ".2", ".9"]),
    st.sampled_from([*"diuoxXeEfFgGsr", "%", "y"]),
)  # fmt: skip


@examples(200)
@given(
    value=st.one_of(st.integers(-300, 300), st.floats(-1e15, 1e15), TEXT, st.booleans()),
    form=PERCENTS,
)
def test_percent_formats(value: Any, form: str) -> None:
    wanted = outcome(lambda: ("[" + form + "]") % (value,))
    assert format_outcome("aten::percentFormat", f"[{form}]", (value,)) == wanted


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("{} and {}", (1, "b")), ("{1}{0}{1}", (1, "b")), ("{!r:>6}|{!s}", ("a", "a")),
        ("{:{}}|", (3, 7)), ("{0:{1}.{2}f}", (3.14159, 9, 2)), ("{{}}{}", ([1, "x"],)),
        ("{", (1,)), ("}", (1,)), ("{}{}", (1,)), ("{0}{}", (1, 2)), ("{}{0}", (1, 2)),
        ("{2}", (1, 2)), ("{!z}", (1,)), ("{!r", (1,)), ("{:d}", ("a",)), ("", ()),
        ("{}", ((1, (2.0, None)),)), ("{}", ({"a": [True]},)), ("{:5}", (None,)),
    ],
)  # fmt: skip
def test_format_fields(text: str, args: tuple[Any, ...]) -> None:
    wanted = outcome(lambda: text.format(*args))
    assert format_outcome("aten::format", text, args) == wanted


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("%s %d", (1, 2)), ("%s", (1, 2)), ("%s %s", (1,)), ("%*d|", (6, 42)), ("%", (1,)),
        ("%-*s|", (6, "a")), ("%c%c", ("a", 98)), ("%d", ("a",)), ("%x", (1.5,)), ("100%%", ()),
    ],
)  # fmt: skip
def test_percent_fields(text: str, args: tuple[Any, ...]) -> None:
    wanted = outcome(lambda: text % args)
    assert format_outcome("aten::percentFormat", text, args) == wanted
