"""min, sum, any, int and the like."""

from __future__ import annotations

import ast
import builtins as python
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import candidates, try_operator
from weft.jit.frontend.language.conditions import test_of
from weft.jit.frontend.language.control_flow import Condition, choose
from weft.jit.frontend.language.iteration import rows_of
from weft.jit.frontend.library import prelude
from weft.jit.frontend.library.containers import Handler, keys_of
from weft.jit.frontend.registry import builtin
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.source import SourceRange


@builtin(python.pow, takes=2)
def _pow(c: Compiler, call: Call) -> Sugared:
    return c.binary(ast.Pow, call.args[0].value, call.args[1].value, call.range)


def _is_tensor(value: Sugared) -> bool:
    return isinstance(value, Simple) and value.v.type is ty.TENSOR


def _extreme(name: str) -> Handler:
    def handler(c: Compiler, call: Call) -> Sugared:
        if call.kwargs:
            return _extreme_with(c, name, call)
        values = [arg.value for arg in call.args]
        if len(values) == 1:
            items = values[0].unrolled(c, call.range)
            if items is None:
                value = values[0]
                if _is_tensor(value):
                    return c.apply(f"aten::{name}", call.range, value)
                return _extreme_of_list(c, name, c.as_list(value, call.range), call.range)
            values = items
        if not values:
            fail(f"{name}: expected at least one value, got none", call.range)
        result = values[0]
        for other in values[1:]:
            result = _better(c, name, result, other, call.range)
        return result

    return handler


def _extreme_of_list(c: Compiler, name: str, items: Sugared, range: SourceRange) -> Sugared:
    found = try_operator(c, candidates(f"prim::{name}"), Call.of(range, items))
    if not isinstance(found, list):
        return found
    c.call(prelude.check_not_empty, range, items, Simple(c.constant(name)))
    best = prelude.least if name == "min" else prelude.greatest
    return c.call(best, range, items, items)


def _better(c: Compiler, name: str, a: Sugared, b: Sugared, range: SourceRange) -> Sugared:
    """min(a, b) or max(a, b)."""
    found = try_operator(c, candidates(f"prim::{name}"), Call.of(range, a, b))
    if not isinstance(found, list):
        return found

    less = c.compare(ast.Lt(), *((b, a) if name == "min" else (a, b)), range)
    test = Condition(c.truth(less, range))
    return choose(c, test, lambda: b, lambda: a, range)


def _extreme_with(c: Compiler, name: str, call: Call) -> Sugared:
    """min and max with key and default."""
    call.expect_no_keywords(name, "key", "default")
    if not call.args or (len(call.args) > 1 and "default" in call.kwargs):
        fail(
            f"{name}: expected a default only with one list, got {len(call.args)} arguments",
            call.range,
        )
    one = call.args[0].value
    source = one if len(call.args) == 1 else TupleLiteral([arg.value for arg in call.args])
    items = c.as_list(source, call.range)
    made = items.value(c, call.range)
    key = call.kwargs.get("key")
    keys = items
    if key is not None and type_of_key(key) is not ty.NONE:
        keys = Simple(keys_of(c, made, key, call.range))
    best = prelude.least if name == "min" else prelude.greatest
    default = call.kwargs.get("default")

    def found() -> Sugared:
        return c.call(best, call.range, items, keys)

    if default is None:
        c.call(prelude.check_not_empty, call.range, items, Simple(c.constant(name)))
        return found()
    test = Condition(c.truth(items, call.range))
    return choose(c, test, found, lambda: default.value, call.range)


def type_of_key(key: Arg) -> ty.Type | None:
    """The type of a key that is a value, as None."""
    return key.value.v.type if isinstance(key.value, Simple) else None


builtin(python.min)(_extreme("min"))
builtin(python.max)(_extreme("max"))


def own_method(c: Compiler, value: Sugared, name: str, range: SourceRange) -> Sugared | None:
    """The call of a special method of a class of the program; None for other values."""
    if not isinstance(value, Simple) or not isinstance(value.v.type, ty.ClassType):
        return None
    if not value.has_attr(c, name):
        return None
    return value.attr(c, range, name).call(c, Call(range))


@builtin(python.hash)
def _hash(c: Compiler, call: Call) -> Sugared:
    call.expect_count("hash", 1, 1)
    value = call.args[0].value
    own = own_method(c, value, "__hash__", call.range)
    if own is not None:
        return own
    actual = c.type_of(value, call.range)
    if isinstance(actual, ty.ClassType):
        fail(f"hash: expected a class with __hash__, got {actual.annotation}", call.range)
    return c.call_operator("aten::hash", call)


@builtin(python.abs)
def _abs(c: Compiler, call: Call) -> Sugared:
    call.expect_count("abs", 1, 1)
    own = own_method(c, call.args[0].value, "__abs__", call.range)
    if own is not None:
        return own
    is_tensor = c.type_of(call.args[0].value, call.range) is ty.TENSOR
    return c.call_operator("aten::abs" if is_tensor else "prim::abs", call)


@builtin(python.round)
def _round(c: Compiler, call: Call) -> Sugared:
    """An int, as in Python, unless a number of digits is given."""
    call.expect_count("round", 1, 2)
    made = c.call_operator("aten::round", call)
    actual = c.type_of(call.args[0].value, call.range)
    if len(call.args) == 2 or call.kwargs or actual is ty.TENSOR:
        return made
    return c.apply("aten::Int", call.range, made)


@builtin(python.sum, takes=(1, 2), keywords=("start",))
def _sum(c: Compiler, call: Call) -> Sugared:
    start = call.kwargs.get("start") or (call.args[1] if len(call.args) == 2 else None)
    value = call.args[0].value
    items = value.unrolled(c, call.range)
    if items is None:
        if not isinstance(value, Simple):
            value = c.as_list(value, call.range)
        actual = c.type_of(value, call.range)
        if actual is ty.TENSOR:
            value = rows_of(c, value, call.range)
            actual = c.type_of(value, call.range)
        if isinstance(actual, ty.ListType) and actual.elem is ty.TENSOR:
            return _sum_tensors(c, value, start, call.range)
        return _sum_list(c, c.as_list(value, call.range), start, call.range)
    total = start.value if start is not None else Simple(c.constant(0))
    for item in items:
        total = c.binary(ast.Add, total, item, call.range)
    return total


def _sum_list(c: Compiler, xs: Sugared, start: Arg | None, range: SourceRange) -> Sugared:
    """sum(xs, start), added up from the left as Python does."""
    elem = xs.value(c, range).type.children[0]
    if start is None and elem in (ty.BOOL, ty.INT, ty.FLOAT, ty.COMPLEX):
        return c.apply("aten::sum", range, xs)
    first = Simple(c.constant(0)) if start is None else start.value
    type = c.type_of(first, range)
    widest = next((each for each in (ty.COMPLEX, ty.FLOAT) if each in (type, elem)), ty.INT)
    if type in (ty.BOOL, ty.INT, ty.FLOAT, ty.COMPLEX):
        first = Simple(c.convert(first, widest, range, "sum"))
    return c.call(prelude.total, range, xs, first)


def _sum_tensors(c: Compiler, value: Sugared, start: Arg | None, range: SourceRange) -> Sugared:
    """sum of a list of tensors, as Python's loop computes it."""
    first = Simple(c.constant(0)) if start is None else start.value
    zero = c.apply("prim::NumToTensor", range, Simple(c.constant(0)))
    return c.call(prelude.total, range, value, c.binary(ast.Add, first, zero, range))


def _test(name: str) -> Handler:
    def handler(c: Compiler, call: Call) -> Sugared:
        value = call.args[0].value
        items = value.unrolled(c, call.range)
        if items is None:
            if _is_tensor(value):
                made = c.apply(f"aten::{name}", call.range, value)
                return c.apply("aten::Bool", call.range, made)
            return c.apply(f"aten::{name}", call.range, c.as_list(value, call.range))
        wanted = name == "any"

        def from_item(index: int) -> Sugared:
            if index == len(items):
                return Simple(c.constant(not wanted))
            test = test_of(c, items[index], call.range)
            exits = [lambda: Simple(c.constant(wanted)), lambda: from_item(index + 1)]
            yes, no = exits if wanted else reversed(exits)
            return choose(c, test, yes, no, call.range)

        return from_item(0)

    return handler


builtin(python.any, takes=1)(_test("any"))
builtin(python.all, takes=1)(_test("all"))


def _cast(name: str, kind: str, empty: Any, type_: ty.Type) -> Handler:
    def handler(c: Compiler, call: Call) -> Sugared:
        if not call.args:
            return Simple(c.constant(empty))
        value = call.args[0].value
        own = own_method(c, value, f"__{name}__", call.range) if len(call.args) == 1 else None
        if own is not None:
            return own
        known = static_number(value.static(c), type_)
        if known is not None and len(call.args) == 1:
            return Simple(c.constant(known))
        if len(call.args) == 1 and c.type_of(value, call.range) is type_:
            return value
        if name == "bool":
            return Simple(c.truth(value, call.range))
        found = try_operator(c, candidates(kind), call)
        if isinstance(found, list):
            got = c.type_of(value, call.range).annotation
            fail(
                f"{name}: expected a number, a str or a tensor of one element, got {got}",
                call.range,
            )
        return found

    return handler


def static_number(known: Any, type_: ty.Type) -> Any:
    """int(x), float(x) of a constant; None where it is not known."""
    kinds: dict[ty.Type, Any] = {ty.INT: int, ty.FLOAT: float, ty.BOOL: bool}
    python_type = kinds.get(type_)
    if python_type is None or not isinstance(known, int | float | str):
        return None
    try:
        made = python_type(known)
    except (ValueError, OverflowError):
        return None
    in_range = not isinstance(made, int) or -(2**63) <= made < 2**63
    return made if in_range else None


builtin(python.int, takes=(0, 1))(_cast("int", "aten::Int", 0, ty.INT))
builtin(python.float, takes=(0, 1))(_cast("float", "aten::Float", 0.0, ty.FLOAT))
builtin(python.bool, takes=(0, 1))(_cast("bool", "aten::Bool", False, ty.BOOL))
builtin(python.complex, takes=(0, 2))(_cast("complex", "aten::Complex", 0j, ty.COMPLEX))
