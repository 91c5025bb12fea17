"""Containers of modules and of parameters: items known while compiling, or picked by an index."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import weft
from weft.jit.frontend.calls import call_operator
from weft.jit.frontend.classes import known_info
from weft.jit.frontend.conversions import coerce, type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.environment import Scope
from weft.jit.frontend.errors import fail
from weft.jit.frontend.exceptions import emit_raise
from weft.jit.frontend.module_types import ModuleInfo
from weft.jit.frontend.sugared import UNKNOWN, Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

DICTS = ("dict", "parameter dict")


def child(e: Emitter, info: ModuleInfo, v: Value, name: str, range: SourceRange) -> Sugared:
    """A member of a container."""
    declared = info.type.attributes[name]
    if declared.type is ty.NONE:
        return e.none()
    return Simple(e.emit("prim::GetAttr", (v,), declared.type, {"name": name}, range))


def names_in(info: ModuleInfo) -> list[str]:
    """The names of the members of a container."""
    kind = "parameter" if info.container in ("parameters", "parameter dict") else "module"
    return [name for name, each in info.type.attributes.items() if each.kind == kind]


def children_of(e: Emitter, v: Value, range: SourceRange) -> list[Sugared] | None:
    """The items of a container of modules; None for other objects."""
    info = known_info(v.type)
    if not isinstance(info, ModuleInfo) or info.container is None:
        return None
    if info.container in DICTS:
        return [Simple(e.constant(name)) for name in names_in(info)]
    return [child(e, info, v, name, range) for name in names_in(info)]


def dict_parts(
    e: Emitter, info: ModuleInfo, v: Value, what: str, range: SourceRange
) -> list[Sugared]:
    """What keys(), values() or items() of a dict gives."""
    names = names_in(info)
    keys: list[Sugared] = [Simple(e.constant(name)) for name in names]
    if what == "keys":
        return keys
    values = [child(e, info, v, name, range) for name in names]
    if what == "values":
        return values
    return [TupleLiteral(pair) for pair in zip(keys, values)]


def module_item(
    e: Emitter,
    info: ModuleInfo,
    v: Value,
    index: Sugared,
    range: SourceRange,
    hint: ty.Type | None = None,
) -> Sugared:
    """container[index]. Where an interface is wanted the index may be known only at run time."""
    names = names_in(info)
    known = index.static(e)
    what = info.python_class.__name__
    if known is UNKNOWN and isinstance(hint, ty.InterfaceType) and names:
        return picked_module(e, info, v, index, range, hint)
    if info.container in DICTS or isinstance(known, str):
        if not isinstance(known, str) or known not in names:
            shown = repr(known) if known is not UNKNOWN else "one known only at run time"
            fail(f"{what}: expected one of the keys {names}, got {shown}", range)
        return child(e, info, v, known, range)
    if isinstance(known, slice):
        items = [child(e, info, v, name, range) for name in names[known]]
        is_chain = issubclass(info.python_class, weft.nn.Sequential)
        return Chain(items) if is_chain else TupleLiteral(items)
    if isinstance(known, bool) or not isinstance(known, int):
        fail(
            f"{what}: expected an index known while compiling, got one known only at run time",
            range,
            "item: Interface = self.modules_list[index], with a class marked @weft.jit.interface, "
            "or for i, module in enumerate(self.modules_list): if i == index: ...",
        )
    if not -len(names) <= known < len(names):
        fail(f"{what}: expected an index in [-{len(names)}, {len(names)}), got {known}", range)
    return child(e, info, v, names[known], range)


def picked_module(
    e: Emitter,
    info: ModuleInfo,
    v: Value,
    index: Sugared,
    range: SourceRange,
    wanted: ty.InterfaceType,
) -> Sugared:
    """container[index] by a row of comparisons; all members stand behind the interface."""
    from weft.jit.frontend.modules import implement

    names = names_in(info)
    for name in names:
        inner = info.type.attributes[name].type
        implement(inner, wanted)
        if isinstance(inner, ty.ClassType):
            info.classes.add(inner)
    by_name = type_of(e, index, range) is ty.STR
    given = coerce(e, index, ty.STR if by_name else ty.INT, range, "index")
    place = given if by_name else _from_the_end(e, given, len(names), range)
    error, equal = (KeyError, "aten::eq.str") if by_name else (IndexError, "aten::eq.int")

    def from_member(i: int) -> Value:
        if i == len(names):
            text = f"{info.python_class.__name__}: expected an index in it, got another"
            emit_raise(e, error, e.constant(text), range)
            return e.uninitialized(wanted)
        key = e.constant(names[i] if by_name else i)
        return _either(
            e, e.emit(equal, (place, key), ty.BOOL, range=range), wanted,
            lambda: coerce(e, child(e, info, v, names[i], range), wanted, range, names[i]),
            lambda: from_member(i + 1), range,
        )  # fmt: skip

    return Simple(from_member(0))


def _from_the_end(e: Emitter, index: Value, size: int, range: SourceRange) -> Value:
    """A negative index counted from the end."""
    below = e.emit("aten::lt.int", (index, e.constant(0)), ty.BOOL, range=range)
    return _either(
        e, below, ty.INT,
        lambda: e.emit("aten::add.int", (index, e.constant(size)), ty.INT, range=range),
        lambda: index, range,
    )  # fmt: skip


def _either(
    e: Emitter,
    test: Value,
    type: ty.Type,
    yes: Callable[[], Value],
    no: Callable[[], Value],
    range: SourceRange,
) -> Value:
    node = e.node("prim::If", (test,), (type,), range=range)
    for make in (yes, no):
        block = node.add_block()
        with e.within(block, Scope(e.scope)):
            made = make()
        block.set_returns([made])
    return node.output


class HeldKeys(Sugared):
    """The test whether a dict of modules or parameters has a key, which is known."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def call(self, e: Emitter, call: Call) -> Sugared:
        known = call.args[0].value.static(e)
        if isinstance(known, str):
            return Simple(e.constant(known in self.names))
        from weft.jit.frontend.displays import make_list

        keys: list[Sugared] = [Simple(e.constant(name)) for name in self.names]
        held = Simple(make_list(e, keys, ty.STR, call.range))
        return call_operator(
            e, "aten::__contains__", Call(call.range, [Arg(held, call.range), call.args[0]])
        )


class Chain(TupleLiteral):
    """Some modules of a Sequential: called one after the other."""

    def call(self, e: Emitter, call: Call) -> Sugared:
        if len(call.args) != 1 or call.kwargs:
            fail(
                f"Sequential: expected 1 argument, got {len(call.args) + len(call.kwargs)}",
                call.range,
            )
        value = call.args[0].value
        for item in self.items:
            value = item.call(e, Call.of(call.range, value))
        return value
