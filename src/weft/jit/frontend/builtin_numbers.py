"""min, sum, any, int and the like."""

from __future__ import annotations

import ast
import builtins as python
from typing import Any

from weft.jit.frontend import written
from weft.jit.frontend.builtins import Handler, as_list, handles
from weft.jit.frontend.calls import apply_operator, call_operator, candidates, try_operator
from weft.jit.frontend.conditions import Condition, choose, truth
from weft.jit.frontend.conversions import coerce, type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.iteration import Counted, iterate
from weft.jit.frontend.sugared import Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.frontend.written import call_written
from weft.jit.ir import types as ty
from weft.jit.ir.source import SourceRange


@handles(python.pow)
def _pow(e: Emitter, call: Call) -> Sugared:
    from weft.jit.frontend.operators import binary

    call.expect_no_keywords("pow")
    call.expect_count("pow", 2, 2)
    return binary(e, ast.Pow, call.args[0].value, call.args[1].value, call.range)


def _is_tensor(value: Sugared) -> bool:
    return isinstance(value, Simple) and value.v.type is ty.TENSOR


def _extreme(name: str) -> Handler:
    def handler(e: Emitter, call: Call) -> Sugared:
        if call.kwargs:
            return _extreme_with(e, name, call)
        values = [arg.value for arg in call.args]
        if len(values) == 1:
            items = values[0].unrolled(e, call.range)
            if items is None:
                value = values[0]
                if _is_tensor(value):
                    return apply_operator(e, f"aten::{name}", call.range, value)
                return _extreme_of_list(e, name, as_list(e, value, call.range), call.range)
            values = items
        if not values:
            fail(f"{name}: expected at least one value, got none", call.range)
        result = values[0]
        for other in values[1:]:
            result = _better(e, name, result, other, call.range)
        return result

    return handler


def _extreme_of_list(e: Emitter, name: str, items: Sugared, range: SourceRange) -> Sugared:
    found = try_operator(e, candidates(f"prim::{name}"), Call.of(range, items))
    if not isinstance(found, list):
        return found
    call_written(e, written.check_not_empty, range, items, Simple(e.constant(name)))
    best = written.least if name == "min" else written.greatest
    return call_written(e, best, range, items, items)


def _better(e: Emitter, name: str, a: Sugared, b: Sugared, range: SourceRange) -> Sugared:
    """min(a, b) or max(a, b)."""
    found = try_operator(e, candidates(f"prim::{name}"), Call.of(range, a, b))
    if not isinstance(found, list):
        return found
    from weft.jit.frontend.comparison import compare

    less = compare(e, ast.Lt(), *((b, a) if name == "min" else (a, b)), range)
    test = Condition(truth(e, less, range))
    return choose(e, test, lambda: b, lambda: a, range)


def _extreme_with(e: Emitter, name: str, call: Call) -> Sugared:
    """min and max with key and default."""
    from weft.jit.frontend.sorting import keys_of

    call.expect_no_keywords(name, "key", "default")
    if not call.args or (len(call.args) > 1 and "default" in call.kwargs):
        fail(
            f"{name}: expected a default only with one list, got {len(call.args)} arguments",
            call.range,
        )
    one = call.args[0].value
    source = one if len(call.args) == 1 else TupleLiteral([arg.value for arg in call.args])
    items = as_list(e, source, call.range)
    made = items.value(e, call.range)
    key = call.kwargs.get("key")
    keys = items
    if key is not None and type_of_key(key) is not ty.NONE:
        keys = Simple(keys_of(e, made, key, call.range))
    best = written.least if name == "min" else written.greatest
    default = call.kwargs.get("default")

    def found() -> Sugared:
        return call_written(e, best, call.range, items, keys)

    if default is None:
        call_written(e, written.check_not_empty, call.range, items, Simple(e.constant(name)))
        return found()
    test = Condition(truth(e, items, call.range))
    return choose(e, test, found, lambda: default.value, call.range)


def type_of_key(key: Arg) -> ty.Type | None:
    """The type of a key that is a value, as None."""
    return key.value.v.type if isinstance(key.value, Simple) else None


handles(python.min)(_extreme("min"))


handles(python.max)(_extreme("max"))


def own_method(e: Emitter, value: Sugared, name: str, range: SourceRange) -> Sugared | None:
    """The call of a special method of a class of the program; None for other values."""
    if not isinstance(value, Simple) or not isinstance(value.v.type, ty.ClassType):
        return None
    if not value.has_attr(e, name):
        return None
    return value.attr(e, range, name).call(e, Call(range))


@handles(python.hash)
def _hash(e: Emitter, call: Call) -> Sugared:
    call.expect_count("hash", 1, 1)
    value = call.args[0].value
    own = own_method(e, value, "__hash__", call.range)
    if own is not None:
        return own
    actual = type_of(e, value, call.range)
    if isinstance(actual, ty.ClassType):
        fail(f"hash: expected a class with __hash__, got {actual.annotation}", call.range)
    return call_operator(e, "aten::hash", call)


@handles(python.abs)
def _abs(e: Emitter, call: Call) -> Sugared:
    call.expect_count("abs", 1, 1)
    own = own_method(e, call.args[0].value, "__abs__", call.range)
    if own is not None:
        return own
    is_tensor = type_of(e, call.args[0].value, call.range) is ty.TENSOR
    return call_operator(e, "aten::abs" if is_tensor else "prim::abs", call)


@handles(python.round)
def _round(e: Emitter, call: Call) -> Sugared:
    """An int, as in Python, unless a number of digits is given."""
    call.expect_count("round", 1, 2)
    made = call_operator(e, "aten::round", call)
    actual = type_of(e, call.args[0].value, call.range)
    if len(call.args) == 2 or call.kwargs or actual is ty.TENSOR:
        return made
    return apply_operator(e, "aten::Int", call.range, made)


@handles(python.sum)
def _sum(e: Emitter, call: Call) -> Sugared:
    from weft.jit.frontend.operators import binary

    call.expect_no_keywords("sum", "start")
    call.expect_count("sum", 1, 2)
    start = call.kwargs.get("start") or (call.args[1] if len(call.args) == 2 else None)
    value = call.args[0].value
    items = value.unrolled(e, call.range)
    if items is None:
        if not isinstance(value, Simple):
            value = as_list(e, value, call.range)
        actual = type_of(e, value, call.range)
        if actual is ty.TENSOR:
            from weft.jit.frontend.iteration import rows_of

            value = rows_of(e, value, call.range)
            actual = type_of(e, value, call.range)
        if isinstance(actual, ty.ListType) and actual.elem is ty.TENSOR:
            return _sum_tensors(e, value, start, call.range)
        return _sum_list(e, as_list(e, value, call.range), start, call.range)
    total = start.value if start is not None else Simple(e.constant(0))
    for item in items:
        total = binary(e, ast.Add, total, item, call.range)
    return total


def _sum_list(e: Emitter, xs: Sugared, start: Arg | None, range: SourceRange) -> Sugared:
    """sum(xs, start), added up from the left as Python does."""
    elem = xs.value(e, range).type.children[0]
    if start is None and elem in (ty.BOOL, ty.INT, ty.FLOAT, ty.COMPLEX):
        return apply_operator(e, "aten::sum", range, xs)
    first = Simple(e.constant(0)) if start is None else start.value
    type = type_of(e, first, range)
    widest = next((each for each in (ty.COMPLEX, ty.FLOAT) if each in (type, elem)), ty.INT)
    if type in (ty.BOOL, ty.INT, ty.FLOAT, ty.COMPLEX):
        first = Simple(coerce(e, first, widest, range, "sum"))
    return call_written(e, written.total, range, xs, first)


def _sum_tensors(e: Emitter, value: Sugared, start: Arg | None, range: SourceRange) -> Sugared:
    """sum of a list of tensors, as Python's loop computes it."""
    from weft.jit.frontend.environment import Scope
    from weft.jit.frontend.operators import binary

    first = Simple(e.constant(0)) if start is None else start.value
    zero = apply_operator(e, "prim::NumToTensor", range, Simple(e.constant(0)))
    total = binary(e, ast.Add, first, zero, range)
    begin = total.value(e, range)
    found = iterate(e, value, range)
    assert isinstance(found, Counted)
    node = e.node("prim::Loop", (found.length, e.constant(True), begin), (), range=range)
    block = node.add_block()
    step = block.add_param(ty.INT, "i")
    carried = block.add_param(ty.TENSOR, "total")
    with e.within(block, Scope(e.scope)):
        more = binary(e, ast.Add, Simple(carried), found.item(step), range).value(e, range)
        again = e.constant(True)
    block.set_returns([again, more])
    return Simple(node.add_output(ty.TENSOR, "total"))


def _test(name: str) -> Handler:
    def handler(e: Emitter, call: Call) -> Sugared:
        from weft.jit.frontend.conditions import Condition, choose, static_truth

        call.expect_no_keywords(name)
        call.expect_count(name, 1, 1)
        value = call.args[0].value
        items = value.unrolled(e, call.range)
        if items is None:
            if _is_tensor(value):
                made = apply_operator(e, f"aten::{name}", call.range, value)
                return apply_operator(e, "aten::Bool", call.range, made)
            return apply_operator(e, f"aten::{name}", call.range, as_list(e, value, call.range))
        wanted = name == "any"

        def from_item(index: int) -> Sugared:
            if index == len(items):
                return Simple(e.constant(not wanted))
            known = static_truth(e, items[index])
            test = Condition(
                None if known is not None else truth(e, items[index], call.range), known
            )
            ways = [lambda: Simple(e.constant(wanted)), lambda: from_item(index + 1)]
            yes, no = ways if wanted else reversed(ways)
            return choose(e, test, yes, no, call.range)

        return from_item(0)

    return handler


handles(python.any)(_test("any"))


handles(python.all)(_test("all"))


def _cast(name: str, kind: str, empty: Any, type_: ty.Type) -> Handler:
    def handler(e: Emitter, call: Call) -> Sugared:
        call.expect_no_keywords(name)
        call.expect_count(name, 0, 2 if name == "complex" else 1)
        if not call.args:
            return Simple(e.constant(empty))
        value = call.args[0].value
        own = own_method(e, value, f"__{name}__", call.range) if len(call.args) == 1 else None
        if own is not None:
            return own
        known = static_number(value.static(e), type_)
        if known is not None and len(call.args) == 1:
            return Simple(e.constant(known))
        if len(call.args) == 1 and type_of(e, value, call.range) is type_:
            return value
        if name == "bool":
            return Simple(truth(e, value, call.range))
        found = try_operator(e, candidates(kind), call)
        if isinstance(found, list):
            got = type_of(e, value, call.range).annotation
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


handles(python.int)(_cast("int", "aten::Int", 0, ty.INT))


handles(python.float)(_cast("float", "aten::Float", 0.0, ty.FLOAT))


handles(python.bool)(_cast("bool", "aten::Bool", False, ty.BOOL))


handles(python.complex)(_cast("complex", "aten::Complex", 0j, ty.COMPLEX))
