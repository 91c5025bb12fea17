"""Python's builtins and weft's own special functions, as they are called in a program."""

from __future__ import annotations

import builtins as python
import collections
import functools
import importlib
import typing
import warnings
from collections.abc import Callable
from typing import Any

import weft
from weft.jit.frontend.calls import BuiltinFunction, apply_operator, call_operator
from weft.jit.frontend.conversions import coerce, type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.iteration import Counted, Enumerate, Range, Reversed, Zip, iterate
from weft.jit.frontend.sugared import UNKNOWN, Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.fresh_stack import on_fresh_stack
from weft.jit.ir.source import SourceRange

Handler = Callable[..., Sugared]
_HANDLERS: dict[Any, tuple[str, Handler]] = {}


class SpecialFunction(Sugared):
    """A function the compiler knows: len, range, isinstance, weft.jit.annotate."""

    def __init__(self, obj: Any, name: str, handler: Handler) -> None:
        self.obj, self.name, self.handler = obj, name, handler

    def describe(self) -> str:
        return f"the builtin {self.name}"

    def call(self, e: Emitter, call: Call) -> Sugared:
        return self.handler(e, call)

    def attr(self, e: Emitter, range: SourceRange, name: str) -> Sugared:
        found = _HANDLERS.get((self.obj, name))
        return super().attr(e, range, name) if found is None else SpecialFunction(self.obj, *found)

    def key(self) -> Any:
        return ("special", self.name)


def handles(*objects: Any, name: str = "") -> Callable[[Handler], Handler]:
    """Registers the handler of Python objects: handler(e, call)."""

    def register(handler: Handler) -> Handler:
        for obj in objects:
            _HANDLERS[obj] = (name or getattr(obj, "__name__", str(obj)), handler)
        return handler

    return register


@functools.cache
def _import_handlers() -> None:
    """Imports the modules that register more."""
    for name in (
        "builtin_iterables",
        "builtin_math",
        "builtin_numbers",
        "builtin_objects",
        "context_managers",
        "limits",
    ):
        on_fresh_stack(importlib.import_module, f"weft.jit.frontend.{name}")


def builtin_of(obj: Any) -> Sugared | None:
    """What the compiler knows of a Python object, or None."""
    _import_handlers()
    if obj is typing.cast:
        return SpecialFunction(obj, "cast", _by_name_only)
    if obj is warnings.warn:
        return BuiltinFunction("aten::warn")
    if getattr(obj, "__module__", None) == "dataclasses" and obj.__name__ == "replace":
        from weft.jit.frontend.dataclass_methods import replaced

        return SpecialFunction(obj, "replace", replaced)
    mark = getattr(obj, "__weft_jit__", None)
    if isinstance(mark, str) and not isinstance(obj, weft.Tensor):
        return SpecialFunction(obj, mark, _by_name_only)
    try:
        found = _HANDLERS.get(obj)
    except TypeError:
        return None
    if found is None:
        return None
    return SpecialFunction(obj, *found)


def _by_name_only(e: Emitter, call: Call) -> Sugared:
    fail("expected a call by its own name, got it as a value", call.range)


def static_argument(e: Emitter, arg: Arg, name: str, kind: type) -> Any:
    """An argument that must be known while compiling."""
    known = arg.value.static(e)
    if known is UNKNOWN or not isinstance(known, kind):
        fail(f"{name}: expected a {kind.__name__} known while compiling, got another", arg.range)
    return known


# Loops ----------------------------------------------------------------------------------------


@handles(python.range)
def _range(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("range")
    call.expect_count("range", 1, 3)
    values = [coerce(e, arg.value, ty.INT, arg.range, "range") for arg in call.args]
    if len(values) == 1:
        return Range(None, values[0], None)
    return Range(values[0], values[1], values[2] if len(values) == 3 else None)


@handles(python.enumerate)
def _enumerate(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("enumerate", "start")
    call.expect_count("enumerate", 1, 2)
    start = call.kwargs.get("start") or (call.args[1] if len(call.args) == 2 else None)
    value = None if start is None else coerce(e, start.value, ty.INT, start.range, "enumerate")
    return Enumerate(e, call.args[0].value, value)


@handles(python.zip)
def _zip(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("zip", "strict")
    strict = call.kwargs.get("strict")
    return Zip(e, [arg.value for arg in call.args], None if strict is None else strict.value)


@handles(python.reversed)
def _reversed(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("reversed")
    call.expect_count("reversed", 1, 1)
    return Reversed(e, call.args[0].value)


@handles(python.iter)
def _iter(e: Emitter, call: Call) -> Sugared:
    fail("iter: expected a loop over the container itself, got iter()", call.range, "for x in xs")


# Containers -----------------------------------------------------------------------------------


@handles(python.len)
def _len(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("len")
    call.expect_count("len", 1, 1)
    value = call.args[0].value
    if (
        isinstance(value, Simple)
        and value.has_attr(e, "__len__")
        and isinstance(value.v.type, ty.ClassType)
    ):
        return value.attr(e, call.range, "__len__").call(e, Call(call.range))
    if not isinstance(value, Simple) or isinstance(value.v.type, ty.TupleType):
        known = value.length(e, call.range)
        if known is not None:
            return known
    items = value.unrolled(e, call.range) if isinstance(value, Simple) else None
    if items is not None:
        return Simple(e.constant(len(items)))
    actual = type_of(e, value, call.range)
    members = ty.members_of(actual)
    if len(members) > 1 and all(isinstance(member, ty.ListType) for member in members):
        held = e.cast(value.value(e, call.range), members[0])  # every kind of list knows its length
        return apply_operator(e, "aten::len", call.range, Simple(held))
    if not isinstance(actual, ty.ListType | ty.DictType) and actual not in (ty.STR, ty.TENSOR):
        hint = "a test of x is not None before" if isinstance(actual, ty.OptionalType) else None
        fail(
            f"len: expected a list, dict, str, tuple or tensor, got {actual.annotation}",
            call.range,
            hint,
        )
    return apply_operator(e, "aten::len", call.range, value)


def as_list(e: Emitter, value: Sugared, range: SourceRange, hint: ty.Type | None = None) -> Sugared:
    """A new list of the items of anything that can be looped over."""
    from weft.jit.frontend.displays import make_list

    actual = None
    if isinstance(value, Simple):
        actual = value.v.type
    if isinstance(actual, ty.ListType):
        return apply_operator(e, "aten::list", range, value)
    if actual is ty.STR:
        return apply_operator(e, "aten::list", range, value)
    if isinstance(actual, ty.DictType):
        return apply_operator(e, "aten::keys", range, value)
    found = iterate(e, value, range)
    if not isinstance(found, Counted):
        wanted = hint.elem if isinstance(hint, ty.ListType) else None
        return Simple(make_list(e, found, wanted, range))
    return collect(e, found, range)


def collect(e: Emitter, found: Counted, range: SourceRange) -> Sugared:
    """A list of what a loop gives."""
    out = e.emit("prim::ListConstruct", (), ty.ListType(ty.TENSOR), range=range)

    def add(held: Sugared) -> None:
        item = held.value(e, range)
        out.type = ty.ListType(item.type)
        apply_operator(e, "aten::append", range, Simple(out), Simple(item))

    _repeat(e, found, add, range)
    return Simple(out)


@handles(python.list)
def _list(e: Emitter, call: Call) -> Sugared:
    call.expect_count("list", 0, 1)
    call.expect_no_keywords("list")
    if not call.args:
        type_ = call.hint if isinstance(call.hint, ty.ListType) else ty.ListType(ty.TENSOR)
        return Simple(e.emit("prim::ListConstruct", (), type_, range=call.range))
    return as_list(e, call.args[0].value, call.range, call.hint)


@handles(python.tuple)
def _tuple(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("tuple")
    call.expect_count("tuple", 0, 1)
    if not call.args:
        return TupleLiteral([])
    value = call.args[0].value
    if (
        isinstance(value, Simple)
        and isinstance(value.v.type, ty.ListType)
        and e.annotations.generic
    ):
        return value  # weft's own functions: a list does where a tuple of sizes does
    known = value.known_numbers(e) if isinstance(value, Range) else None
    if known is not None:
        return TupleLiteral([Simple(e.constant(number)) for number in known])
    found = iterate(e, value, call.range)
    if isinstance(found, Counted):
        fail(
            "tuple: expected something whose length is known while compiling, got "
            f"{value.describe()}",
            call.range,
            "list(...)",
        )
    return TupleLiteral(found)


@handles(python.dict, collections.OrderedDict, name="dict")
def _dict(e: Emitter, call: Call) -> Sugared:
    from weft.jit.frontend.displays import common_type
    from weft.jit.frontend.item_assignment import store_keywords

    call.expect_count("dict", 0, 1)
    if call.args:
        is_dict = isinstance(call.args[0].value, Simple) and isinstance(
            call.args[0].value.v.type, ty.DictType
        )
        if is_dict and not _is_empty_display(e, call.args[0].value):
            made = call_operator(e, "aten::dict", Call(call.range, call.args))
        else:
            made = _dict_of_pairs(e, call.args[0].value, call.range, call.hint)
        store_keywords(e, made, call)
        return made
    flat = []
    for name, arg in call.kwargs.items():
        flat += [e.constant(name), arg.value.value(e, arg.range)]
    wanted = call.hint if isinstance(call.hint, ty.DictType) else ty.DictType(ty.STR, ty.TENSOR)
    if flat:
        wanted = ty.DictType(ty.STR, common_type(flat[1::2], call.range, "dict"))
    return Simple(e.emit("prim::DictConstruct", flat, wanted, range=call.range))


@handles((python.dict, "fromkeys"), name="dict.fromkeys")
def _from_keys(e: Emitter, call: Call) -> Sugared:
    from weft.jit.frontend import written
    from weft.jit.frontend.written import call_written

    call.expect_no_keywords("dict.fromkeys")
    call.expect_count("dict.fromkeys", 1, 2)
    keys = as_list(e, call.args[0].value, call.range)
    value = call.args[1].value if len(call.args) == 2 else e.none()
    return call_written(e, written.from_keys, call.range, keys, value)


def _dict_of_pairs(e: Emitter, pairs: Sugared, range: SourceRange, hint: ty.Type | None) -> Sugared:
    """dict(zip(keys, values)) and the like."""
    wanted = hint if isinstance(hint, ty.DictType) else ty.DictType(ty.STR, ty.TENSOR)
    out = e.emit("prim::DictConstruct", (), wanted, range=range)
    if not isinstance(hint, ty.DictType):
        e.untyped.add(out)
    if _is_empty_display(e, pairs):
        return Simple(out)

    def add(pair: Sugared) -> None:
        from weft.jit.frontend.item_assignment import store

        items = pair.unrolled(e, range) or []
        if len(items) != 2:
            fail("dict: expected pairs of a key and a value, got something else", range)
        store(e, Simple(out), items[0], items[1], range)

    found = iterate(e, pairs, range)
    if not isinstance(found, Counted):
        for pair in found:
            add(pair)
        return Simple(out)
    _repeat(e, found, add, range)
    return Simple(out)


def _is_empty_display(e: Emitter, value: Sugared) -> bool:
    """Whether it is a list or dict that was written as an empty one just now."""
    if not isinstance(value, Simple) or value.v.has_uses:
        return False
    node = value.v.node
    if node is None or node.inputs or node.owner is not e.block:
        return False
    return node.kind in ("prim::ListConstruct", "prim::DictConstruct")


def _repeat(
    e: Emitter, found: Counted, step: Callable[[Sugared], None], range: SourceRange
) -> None:
    """step(item) for every item."""
    from weft.jit.frontend.environment import Scope

    node = e.node("prim::Loop", (found.length, e.constant(True)), (), range=range)
    block = node.add_block()
    index = block.add_param(ty.INT, "i")
    with e.within(block, Scope(e.scope)):
        step(found.item(index))
        again = e.constant(True)
    block.set_returns([again])


@handles(python.sorted)
def _sorted(e: Emitter, call: Call) -> Sugared:
    from weft.jit.frontend.sorting import sort_list

    call.expect_count("sorted", 1, 1)
    made = as_list(e, call.args[0].value, call.range)
    call.expect_no_keywords("sorted", "key", "reverse")
    sort_list(e, made.value(e, call.range), Call(call.range, kwargs=call.kwargs))
    return made


# Numbers --------------------------------------------------------------------------------------


@handles(python.str)
def _str(e: Emitter, call: Call) -> Sugared:
    from weft.jit.frontend.exceptions import text_of

    call.expect_no_keywords("str")
    call.expect_count("str", 0, 1)
    if not call.args:
        return Simple(e.constant(""))
    return Simple(text_of(e, call.args[0].value, call.range))


@handles(python.repr)
def _repr(e: Emitter, call: Call) -> Sugared:
    from weft.jit.frontend.strings import repr_of

    call.expect_count("repr", 1, 1)
    call.expect_no_keywords("repr")
    return repr_of(e, call.args[0].value, call.range)


# Other ----------------------------------------------------------------------------------------


for _name in ("open", "input", "eval", "exec", "set", "frozenset", "vars",
              "globals", "locals", "super", "next", "bytes", "bytearray"):  # fmt: skip
    _INSTEAD = {
        "set": "a dict with True as values",
        "type": "isinstance(x, T)",
        "super": "super().method(...), inside a method",
        "next": "a for loop",
    }

    def _refused(
        e: Emitter,
        call: Call,
        name: str = _name,
        instead: str | None = _INSTEAD.get(_name),
    ) -> Sugared:
        fail(f"{name}: expected a function of the language, got {name}()", call.range, instead)

    handles(getattr(python, _name))(_refused)
