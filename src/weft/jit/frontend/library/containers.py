"""Python's builtins about containers: loops, itertools, sorting."""

from __future__ import annotations

import builtins as python
import collections
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.conditions import by_member
from weft.jit.frontend.language.displays import common_type
from weft.jit.frontend.language.iteration import (
    Chain,
    Counted,
    Enumerate,
    Gathered,
    Mapped,
    Range,
    Reversed,
    Zip,
    collect,
    for_each,
)
from weft.jit.frontend.language.strings import repr_of, text_of
from weft.jit.frontend.library import prelude
from weft.jit.frontend.registry import builtin, verb
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

Handler = Callable[..., Sugared]


# Loops ----------------------------------------------------------------------------------------


@builtin(python.range, takes=(1, 3))
def _range(c: Compiler, call: Call) -> Sugared:
    values = [c.convert(arg.value, ty.INT, arg.range, "range") for arg in call.args]
    if len(values) == 1:
        return Range(None, values[0], None)
    return Range(values[0], values[1], values[2] if len(values) == 3 else None)


@builtin(python.enumerate, takes=(1, 2), keywords=("start",))
def _enumerate(c: Compiler, call: Call) -> Sugared:
    start = call.kwargs.get("start") or (call.args[1] if len(call.args) == 2 else None)
    value = None if start is None else c.convert(start.value, ty.INT, start.range, "enumerate")
    return Enumerate(c, call.args[0].value, value)


@builtin(python.zip)
def _zip(c: Compiler, call: Call) -> Sugared:
    call.expect_no_keywords("zip", "strict")
    strict = call.kwargs.get("strict")
    return Zip(c, [arg.value for arg in call.args], None if strict is None else strict.value)


@builtin(python.reversed, takes=1)
def _reversed(c: Compiler, call: Call) -> Sugared:
    return Reversed(c, call.args[0].value)


@builtin(python.iter)
def _iter(c: Compiler, call: Call) -> Sugared:
    fail("iter: expected a loop over the container itself, got iter()", call.range, "for x in xs")


# Containers -----------------------------------------------------------------------------------


@builtin(python.len, takes=1)
def _len(c: Compiler, call: Call) -> Sugared:
    value = call.args[0].value
    if (
        isinstance(value, Simple)
        and value.has_attr(c, "__len__")
        and isinstance(value.v.type, ty.ClassType)
    ):
        return value.attr(c, call.range, "__len__").call(c, Call(call.range))
    if not isinstance(value, Simple) or isinstance(value.v.type, ty.TupleType):
        known = value.length(c, call.range)
        if known is not None:
            return known
    items = value.unrolled(c, call.range) if isinstance(value, Simple) else None
    if items is not None:
        return Simple(c.constant(len(items)))
    actual = c.type_of(value, call.range)
    members = ty.members_of(actual)
    if len(members) > 1 and all(isinstance(member, ty.ListType) for member in members):
        held = value.value(c, call.range)
        return by_member(
            c, held, members, lambda each: c.apply("aten::len", call.range, each), call.range
        )
    if not isinstance(actual, ty.ListType | ty.DictType) and actual not in (ty.STR, ty.TENSOR):
        hint = "a test of x is not None before" if isinstance(actual, ty.OptionalType) else None
        fail(
            f"len: expected a list, dict, str, tuple or tensor, got {actual.annotation}",
            call.range,
            hint,
        )
    return c.apply("aten::len", call.range, value)


@builtin(python.list, takes=(0, 1))
def _list(c: Compiler, call: Call) -> Sugared:
    if not call.args:
        type_ = call.hint if isinstance(call.hint, ty.ListType) else ty.ListType(ty.TENSOR)
        return Simple(c.emit("prim::ListConstruct", (), type_, range=call.range))
    return c.as_list(call.args[0].value, call.range, call.hint)


@builtin(python.tuple, takes=(0, 1))
def _tuple(c: Compiler, call: Call) -> Sugared:
    if not call.args:
        return TupleLiteral([])
    value = call.args[0].value
    if (
        isinstance(value, Simple)
        and isinstance(value.v.type, ty.ListType)
        and c.annotations.generic
    ):
        return value  # weft's own functions: a list does where a tuple of sizes does
    known = value.known_numbers(c) if isinstance(value, Range) else None
    if known is not None:
        return TupleLiteral([Simple(c.constant(number)) for number in known])
    found = c.iterate(value, call.range)
    if isinstance(found, Counted):
        fail(
            "tuple: expected something whose length is known while compiling, got "
            f"{value.describe()}",
            call.range,
            "list(...)",
        )
    return TupleLiteral(found)


@builtin(python.dict, collections.OrderedDict, name="dict")
def _dict(c: Compiler, call: Call) -> Sugared:
    call.expect_count("dict", 0, 1)
    if call.args:
        is_dict = isinstance(call.args[0].value, Simple) and isinstance(
            call.args[0].value.v.type, ty.DictType
        )
        if is_dict and not _is_empty_display(c, call.args[0].value):
            made = c.call_operator("aten::dict", Call(call.range, call.args))
        else:
            made = _dict_of_pairs(c, call.args[0].value, call.range, call.hint)
        store_keywords(c, made, call)
        return made
    flat = []
    for name, arg in call.kwargs.items():
        flat += [c.constant(name), arg.value.value(c, arg.range)]
    wanted = call.hint if isinstance(call.hint, ty.DictType) else ty.DictType(ty.STR, ty.TENSOR)
    if flat:
        wanted = ty.DictType(ty.STR, common_type(flat[1::2]))
    return Simple(c.emit("prim::DictConstruct", flat, wanted, range=call.range))


@builtin((python.dict, "fromkeys"), name="dict.fromkeys", takes=(1, 2))
def _from_keys(c: Compiler, call: Call) -> Sugared:
    keys = c.as_list(call.args[0].value, call.range)
    value = call.args[1].value if len(call.args) == 2 else c.none()
    return c.call(prelude.from_keys, call.range, keys, value)


def _dict_of_pairs(
    c: Compiler, pairs: Sugared, range: SourceRange, hint: ty.Type | None
) -> Sugared:
    """dict(zip(keys, values)) and the like."""
    wanted = hint if isinstance(hint, ty.DictType) else ty.DictType(ty.STR, ty.TENSOR)
    out = c.emit("prim::DictConstruct", (), wanted, range=range)
    if not isinstance(hint, ty.DictType):
        c.untyped.add(out)
    if _is_empty_display(c, pairs):
        return Simple(out)

    def add(pair: Sugared) -> None:
        items = pair.unrolled(c, range) or []
        if len(items) != 2:
            fail("dict: expected pairs of a key and a value, got something else", range)
        c.set_item(Simple(out), items[0], items[1], range)

    found = c.iterate(pairs, range)
    if not isinstance(found, Counted):
        for pair in found:
            add(pair)
        return Simple(out)
    for_each(c, found, add, range)
    return Simple(out)


def _is_empty_display(c: Compiler, value: Sugared) -> bool:
    """Whether it is a list or dict that was written as an empty one just now."""
    if not isinstance(value, Simple) or value.v.has_uses:
        return False
    node = value.v.node
    if node is None or node.inputs or node.owner is not c.block:
        return False
    return node.kind in ("prim::ListConstruct", "prim::DictConstruct")


@builtin(python.sorted)
def _sorted(c: Compiler, call: Call) -> Sugared:
    call.expect_count("sorted", 1, 1)
    made = c.as_list(call.args[0].value, call.range)
    call.expect_no_keywords("sorted", "key", "reverse")
    verb["sort_list"](c, made.value(c, call.range), Call(call.range, kwargs=call.kwargs))
    return made


# Numbers --------------------------------------------------------------------------------------


@builtin(python.str, takes=(0, 1))
def _str(c: Compiler, call: Call) -> Sugared:
    if not call.args:
        return Simple(c.constant(""))
    return Simple(text_of(c, call.args[0].value, call.range))


@builtin(python.repr, takes=1)
def _repr(c: Compiler, call: Call) -> Sugared:
    return repr_of(c, call.args[0].value, call.range)


# Other ----------------------------------------------------------------------------------------


def _refuse(obj: Any, name: str, shown: str, instead: str | None) -> None:
    @builtin(obj)
    def refuse(c: Compiler, call: Call) -> Sugared:
        fail(f"{name}: expected a function of the language, got {shown}", call.range, instead)


_INSTEAD = {
    "set": "a dict with True as values",
    "super": "super().method(...), inside a method",
    "next": "a for loop",
}
for _name in ("open", "input", "eval", "exec", "set", "frozenset", "vars",
              "globals", "locals", "super", "next", "bytes", "bytearray"):  # fmt: skip
    _refuse(getattr(python, _name), _name, f"{_name}()", _INSTEAD.get(_name))


def store_keywords(c: Compiler, owner: Sugared, call: Call) -> None:
    """owner["a"] = x for every keyword a=x of a call."""
    for name, arg in call.kwargs.items():
        c.set_item(owner, Simple(c.constant(name)), arg.value, arg.range)


@builtin(python.map, takes=(2, 64))
def _map(c: Compiler, call: Call) -> Sugared:
    return Mapped(c, call.args[0].value, [arg.value for arg in call.args[1:]])


@builtin(python.filter, takes=2)
def _filter(c: Compiler, call: Call) -> Sugared:
    test, items = call.args[0].value, c.as_list(call.args[1].value, call.range)
    if isinstance(test, Simple) and test.v.type is ty.NONE:
        passed = c.call(prelude.true_items, call.range, items)
    else:
        passed = c.call(prelude.items_that, call.range, test, items)
    return Gathered(c, "a filter", passed)


@builtin(functools.reduce, takes=(2, 3))
def _reduce(c: Compiler, call: Call) -> Sugared:
    items = c.as_list(call.args[1].value, call.range)
    if len(call.args) == 3:
        return c.call(prelude.fold, call.range, call.args[0].value, items, call.args[2].value)
    return c.call(prelude.fold_all, call.range, call.args[0].value, items)


@builtin(math.prod, takes=1, keywords=("start",))
def _prod(c: Compiler, call: Call) -> Sugared:
    items = c.as_list(call.args[0].value, call.range)
    if "start" in call.kwargs:
        return c.call(prelude.product, call.range, items, call.kwargs["start"].value)
    type = items.v.type if isinstance(items, Simple) else None
    is_float = isinstance(type, ty.ListType) and type.elem is ty.FLOAT
    return c.call(prelude.product, call.range, items, Simple(c.constant(1.0 if is_float else 1)))


@builtin(itertools.chain)
def _chain(c: Compiler, call: Call) -> Sugared:
    call.expect_no_keywords("chain")
    return Chain(c, [arg.value for arg in call.args])


@builtin(itertools.product, takes=2)
def _product(c: Compiler, call: Call) -> Sugared:
    left, right = (c.iterate(arg.value, call.range) for arg in call.args)
    if not isinstance(left, Counted) and not isinstance(right, Counted):
        known = TupleLiteral([TupleLiteral([x, y]) for x in left for y in right])
        return Gathered(c, "a product", known)
    lists = [c.as_list(arg.value, call.range) for arg in call.args]
    return Gathered(c, "a product", c.call(prelude.pairs, call.range, *lists))


for _name in ("permutations", "combinations", "groupby", "islice", "repeat", "count", "cycle",
              "accumulate", "starmap", "takewhile", "dropwhile", "zip_longest"):  # fmt: skip
    _full = f"itertools.{_name}"
    _refuse(getattr(itertools, _name), _full, _full, "a loop that builds a list")


@verb("sort_list")
def sort_list(c: Compiler, items: Value, call: Call) -> None:
    """items.sort(reverse=..., key=...), in place."""
    rest = dict(call.kwargs)
    key = rest.pop("key", None)
    if key is not None and _is_none(key.value):
        key = None
    if key is None and not _has_lt(c, items):
        c.call_operator("aten::sort", call._replace(kwargs=rest).behind(Simple(items)))
        return
    reverse = rest.pop("reverse", None) if not call.args else call.args[0]
    if reverse is None:
        reverse = Arg(Simple(c.constant(False)), call.range)
    if rest or len(call.args) > 1:
        fail("sort: expected reverse and key, got another argument", call.range)
    keys = items if key is None else keys_of(c, items, key, call.range)
    function = prelude.sort_by_lt if _has_lt(c, keys) else prelude.sort_by_order
    c.call(function, call.range, Simple(items), Simple(keys), reverse.value)


def _is_none(value: Sugared) -> bool:
    return isinstance(value, Simple) and value.v.type is ty.NONE


def _has_lt(c: Compiler, items: Value) -> bool:
    """Whether the items are objects of a class with __lt__ of its own."""
    assert isinstance(items.type, ty.ListType)
    elem = items.type.elem
    return isinstance(elem, ty.ClassType) and Simple(c.uninitialized(elem)).has_attr(c, "__lt__")


def keys_of(c: Compiler, items: Value, key: Arg, range: SourceRange) -> Value:
    """[key(item) for item in items]."""
    found = c.iterate(Simple(items), range)
    assert isinstance(found, Counted)
    made = Counted(found.length, lambda i: key.value.call(c, Call.of(key.range, found.item(i))))
    return collect(c, made, range).value(c, range)
