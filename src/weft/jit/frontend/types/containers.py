"""Containers of modules and of parameters: items known while compiling, or picked by an index."""

from __future__ import annotations

from collections.abc import Sequence

from weft._runtime.public import weft
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.types.classes import implement, known_info
from weft.jit.frontend.types.module_types import ModuleInfo
from weft.jit.frontend.values import UNKNOWN, Call, Known, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

DICTS = ("dict", "parameter dict")


def child(c: Compiler, info: ModuleInfo, v: Value, name: str, range: SourceRange) -> Sugared:
    """A member of a container."""
    declared = info.type.attributes[name]
    if declared.type is ty.NONE:
        return c.none()
    return Simple(c.emit("prim::GetAttr", (v,), declared.type, {"name": name}, range))


def names_in(info: ModuleInfo) -> list[str]:
    """The names of the members of a container."""
    kind = "parameter" if info.container in ("parameters", "parameter dict") else "module"
    return [name for name, each in info.type.attributes.items() if each.kind == kind]


@verb(("items", ty.ClassType))
def children_of(c: Compiler, v: Value, range: SourceRange) -> list[Sugared] | None:
    """The items of a container of modules; None for other objects."""
    info = known_info(v.type)
    if not isinstance(info, ModuleInfo) or info.container is None:
        return None
    if info.container in DICTS:
        return [Simple(c.constant(name)) for name in names_in(info)]
    return [child(c, info, v, name, range) for name in names_in(info)]


def dict_parts(
    c: Compiler, info: ModuleInfo, v: Value, what: str, range: SourceRange
) -> list[Sugared]:
    """What keys(), values() or items() of a dict gives."""
    names = names_in(info)
    keys: list[Sugared] = [Simple(c.constant(name)) for name in names]
    if what == "keys":
        return keys
    values = [child(c, info, v, name, range) for name in names]
    if what == "values":
        return values
    return [TupleLiteral(pair) for pair in zip(keys, values)]


def module_item(
    c: Compiler,
    info: ModuleInfo,
    v: Value,
    index: Sugared,
    range: SourceRange,
    hint: ty.Type | None = None,
) -> Sugared:
    """container[index]. Where an interface is wanted the index may be known only at run time."""
    names = names_in(info)
    known = index.static(c)
    what = info.python_class.__name__
    if known is UNKNOWN and isinstance(hint, ty.InterfaceType) and names:
        return picked_module(c, info, v, index, range, hint)
    if info.container in DICTS or isinstance(known, str):
        if not isinstance(known, str) or known not in names:
            shown = repr(known) if known is not UNKNOWN else "one known only at run time"
            fail(f"{what}: expected one of the keys {names}, got {shown}", range)
        return child(c, info, v, known, range)
    if isinstance(known, slice):
        items = [child(c, info, v, name, range) for name in names[known]]
        is_chain = issubclass(info.python_class, weft.nn.Sequential)
        return SequentialSlice(items) if is_chain else TupleLiteral(items)
    if isinstance(known, bool) or not isinstance(known, int):
        fail(
            f"{what}: expected an index known while compiling, got one known only at run time",
            range,
            "item: Interface = self.modules_list[index], with a class marked @weft.jit.interface, "
            "or for i, module in enumerate(self.modules_list): if i == index: ...",
        )
    if not -len(names) <= known < len(names):
        fail(f"{what}: expected an index in [-{len(names)}, {len(names)}), got {known}", range)
    return child(c, info, v, names[known], range)


def picked_module(
    c: Compiler,
    info: ModuleInfo,
    v: Value,
    index: Sugared,
    range: SourceRange,
    wanted: ty.InterfaceType,
) -> Sugared:
    """container[index] by a row of comparisons; all members stand behind the interface."""
    names = names_in(info)
    for name in names:
        inner = info.type.attributes[name].type
        implement(inner, wanted)
        if isinstance(inner, ty.ClassType):
            info.classes.add(inner)
    by_name = c.type_of(index, range) is ty.STR
    given = c.convert(index, ty.STR if by_name else ty.INT, range, "index")
    place = given if by_name else _from_the_end(c, given, len(names), range)
    error, equal = (KeyError, "aten::eq.str") if by_name else (IndexError, "aten::eq.int")

    def from_member(i: int) -> Value:
        if i == len(names):
            text = f"{info.python_class.__name__}: expected an index in it, got another"
            c.raise_error(error, c.constant(text), range)
            return c.uninitialized(wanted)
        key = c.constant(names[i] if by_name else i)
        return c.either(
            c.emit(equal, (place, key), ty.BOOL, range=range),
            wanted,
            lambda: c.convert(child(c, info, v, names[i], range), wanted, range, names[i]),
            lambda: from_member(i + 1),
            range,
        )

    return Simple(from_member(0))


def _from_the_end(c: Compiler, index: Value, size: int, range: SourceRange) -> Value:
    """A negative index counted from the end."""
    below = c.emit("aten::lt.int", (index, c.constant(0)), ty.BOOL, range=range)
    return c.either(
        below,
        ty.INT,
        lambda: c.emit("aten::add.int", (index, c.constant(size)), ty.INT, range=range),
        lambda: index,
        range,
    )


def held_keys(names: Sequence[str]) -> Sugared:
    """The test whether a dict of modules or parameters has a key, which is known."""

    def contains(c: Compiler, call: Call) -> Sugared:
        known = call.args[0].value.static(c)
        if isinstance(known, str):
            return Simple(c.constant(known in names))
        keys: list[Sugared] = [Simple(c.constant(name)) for name in names]
        held = Simple(c.make_list(keys, ty.STR, call.range))
        return c.call_operator("aten::__contains__", call.behind(held))

    return Known("the method __contains__", contains)


class SequentialSlice(TupleLiteral):
    """Some modules of a weft.nn.Sequential: called one after the other."""

    def call(self, c: Compiler, call: Call) -> Sugared:
        if len(call.args) != 1 or call.kwargs:
            fail(
                f"Sequential: expected 1 argument, got {len(call.args) + len(call.kwargs)}",
                call.range,
            )
        value = call.args[0].value
        for item in self.items:
            value = item.call(c, Call.of(call.range, value))
        return value
