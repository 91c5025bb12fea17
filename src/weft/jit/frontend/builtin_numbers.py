"""min, sum, any, int and the like."""

from __future__ import annotations

import ast
import builtins as python
from typing import Any

from weft.jit.frontend import written
from weft.jit.frontend.builtins import Handler, as_list, call, count, handles, no_keywords
from weft.jit.frontend.calls import call_operator, candidates, try_operator
from weft.jit.frontend.conditions import Condition, choose, truth
from weft.jit.frontend.conversions import type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.iteration import Counted, iterate
from weft.jit.frontend.sugared import Arg, Simple, Sugared, TupleLiteral
from weft.jit.frontend.written import call_written
from weft.jit.ir import types as ty
from weft.jit.ir.source import SourceRange


@handles(python.pow)
def _pow(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    from weft.jit.frontend.operators import binary

    no_keywords("pow", range, kwargs)
    count("pow", range, args, 2, 2)
    return binary(e, ast.Pow, args[0].value, args[1].value, range)


def _is_tensor(value: Sugared) -> bool:
    return isinstance(value, Simple) and value.v.type is ty.TENSOR


def _extreme(name: str) -> Handler:
    def handler(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
        if kwargs:
            return _extreme_with(e, name, range, args, kwargs)
        values = [arg.value for arg in args]
        if len(values) == 1:
            items = values[0].unrolled(e, range)
            if items is None:
                value = values[0]
                if _is_tensor(value):
                    return call(e, f"aten::{name}", range, value)
                return _extreme_of_list(e, name, as_list(e, value, range), range)
            values = items
        if not values:
            fail(f"{name}: expected at least one value, got none", range)
        result = values[0]
        for other in values[1:]:
            result = _better(e, name, result, other, range)
        return result

    return handler


def _extreme_of_list(e: Emitter, name: str, items: Sugared, range: SourceRange) -> Sugared:
    found = try_operator(e, candidates(f"prim::{name}"), range, [Arg(items, range)], {})
    if not isinstance(found, list):
        return found
    call_written(e, written.check_not_empty, range, items, Simple(e.constant(name)))
    best = written.least if name == "min" else written.greatest
    return call_written(e, best, range, items, items)


def _better(e: Emitter, name: str, a: Sugared, b: Sugared, range: SourceRange) -> Sugared:
    """min(a, b) or max(a, b)."""
    args = [Arg(a, range), Arg(b, range)]
    found = try_operator(e, candidates(f"prim::{name}"), range, args, {})
    if not isinstance(found, list):
        return found
    from weft.jit.frontend.comparison import compare

    less = compare(e, ast.Lt(), *((b, a) if name == "min" else (a, b)), range)
    test = Condition(truth(e, less, range))
    return choose(e, test, lambda: b, lambda: a, range)


def _extreme_with(e: Emitter, name: str, range: SourceRange, args: Any, kwargs: Any) -> Sugared:
    """min and max with key and default."""
    from weft.jit.frontend.sorting import keys_of

    rest = {k: v for k, v in kwargs.items() if k not in ("key", "default")}
    no_keywords(name, range, rest)
    if not args or (len(args) > 1 and "default" in kwargs):
        fail(f"{name}: expected a default only with one list, got {len(args)} arguments", range)
    one = args[0].value
    source = one if len(args) == 1 else TupleLiteral([arg.value for arg in args])
    items = as_list(e, source, range)
    made = items.value(e, range)
    key = kwargs.get("key")
    is_key = key is not None and type_of_key(key) is not ty.NONE
    keys = Simple(keys_of(e, made, key, range)) if is_key else items
    best = written.least if name == "min" else written.greatest
    default = kwargs.get("default")

    def found() -> Sugared:
        return call_written(e, best, range, items, keys)

    if default is None:
        call_written(e, written.check_not_empty, range, items, Simple(e.constant(name)))
        return found()
    test = Condition(truth(e, items, range))
    return choose(e, test, found, lambda: default.value, range)


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
    return value.attr(e, range, name).call(e, range, [], {})


@handles(python.hash)
def _hash(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    count("hash", range, args, 1, 1)
    value = args[0].value
    own = own_method(e, value, "__hash__", range)
    if own is not None:
        return own
    actual = type_of(e, value, range)
    if isinstance(actual, ty.ClassType):
        fail(f"hash: expected a class with __hash__, got {actual.annotation}", range)
    return call_operator(e, "aten::hash", range, args, kwargs)


@handles(python.abs)
def _abs(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    count("abs", range, args, 1, 1)
    own = own_method(e, args[0].value, "__abs__", range)
    if own is not None:
        return own
    is_tensor = type_of(e, args[0].value, range) is ty.TENSOR
    return call_operator(e, "aten::abs" if is_tensor else "prim::abs", range, args, {})


@handles(python.round)
def _round(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    """An int, as in Python, unless a number of digits is given."""
    count("round", range, args, 1, 2)
    made = call_operator(e, "aten::round", range, args, kwargs)
    actual = type_of(e, args[0].value, range)
    if len(args) == 2 or kwargs or actual is ty.TENSOR:
        return made
    return call(e, "aten::Int", range, made)


@handles(python.sum)
def _sum(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    from weft.jit.frontend.operators import binary

    count("sum", range, args, 1, 2)
    start = kwargs.get("start") or (args[1] if len(args) == 2 else None)
    value = args[0].value
    items = value.unrolled(e, range)
    if items is None:
        if not isinstance(value, Simple):
            value = as_list(e, value, range)
        actual = type_of(e, value, range)
        if actual is ty.TENSOR:
            from weft.jit.frontend.iteration import rows_of

            value = rows_of(e, value, range)
            actual = type_of(e, value, range)
        if isinstance(actual, ty.ListType) and actual.elem is ty.TENSOR:
            return _sum_tensors(e, value, start, range)
        total = call(e, "aten::sum", range, as_list(e, value, range))
        return total if start is None else binary(e, ast.Add, start.value, total, range)
    total = start.value if start is not None else Simple(e.constant(0))
    for item in items:
        total = binary(e, ast.Add, total, item, range)
    return total


def _sum_tensors(e: Emitter, value: Sugared, start: Arg | None, range: SourceRange) -> Sugared:
    """sum of a list of tensors, as Python's loop computes it."""
    from weft.jit.frontend.environment import Scope
    from weft.jit.frontend.operators import binary

    first = Simple(e.constant(0)) if start is None else start.value
    total = binary(
        e, ast.Add, first, call(e, "prim::NumToTensor", range, Simple(e.constant(0))), range
    )
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
    def handler(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
        from weft.jit.frontend.conditions import Condition, choose, static_truth

        count(name, range, args, 1, 1)
        value = args[0].value
        items = value.unrolled(e, range)
        if items is None:
            if _is_tensor(value):
                return call(e, "aten::Bool", range, call(e, f"aten::{name}", range, value))
            return call(e, f"aten::{name}", range, as_list(e, value, range))
        wanted = name == "any"

        def from_item(index: int) -> Sugared:
            if index == len(items):
                return Simple(e.constant(not wanted))
            known = static_truth(e, items[index])
            test = Condition(None if known is not None else truth(e, items[index], range), known)
            done = lambda: Simple(e.constant(wanted))  # noqa: E731
            rest = lambda: from_item(index + 1)  # noqa: E731
            yes, no = (done, rest) if wanted else (rest, done)
            return choose(e, test, yes, no, range)

        return from_item(0)

    return handler


handles(python.any)(_test("any"))


handles(python.all)(_test("all"))


def _cast(name: str, kind: str, empty: Any, type_: ty.Type) -> Handler:
    def handler(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
        no_keywords(name, range, kwargs)
        count(name, range, args, 0, 2 if name == "complex" else 1)
        if not args:
            return Simple(e.constant(empty))
        value = args[0].value
        own = own_method(e, value, f"__{name}__", range) if len(args) == 1 else None
        if own is not None:
            return own
        known = static_number(value.static(e), type_)
        if known is not None and len(args) == 1:
            return Simple(e.constant(known))
        if len(args) == 1 and type_of(e, value, range) is type_:
            return value
        if name == "bool":
            return Simple(truth(e, value, range))
        found = try_operator(e, candidates(kind), range, args, {})
        if isinstance(found, list):
            got = type_of(e, value, range).annotation
            fail(f"{name}: expected a number, a str or a tensor of one element, got {got}", range)
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
