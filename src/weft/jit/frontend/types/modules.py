"""Modules in a program: their members, containers and hooks, and which methods are compiled."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any, NoReturn

from weft._runtime.public import weft
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.objects import EXPORT, ignored_value, mode_of
from weft.jit.frontend.language.python_objects import static_method
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import FrontendError, fail
from weft.jit.frontend.types.class_methods import Method, ReadyMethod, compile_as_method
from weft.jit.frontend.types.classes import class_info, implement, known_info
from weft.jit.frontend.types.module_types import ModuleInfo
from weft.jit.frontend.types.names import is_library
from weft.jit.frontend.values import UNKNOWN, Arg, Call, Known, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

_WALKS = frozenset(
    [
        "children",
        "named_children",
        "modules",
        "named_modules",
        "parameters",
        "named_parameters",
        "buffers",
        "named_buffers",
    ]
)

# Attributes in a program ----------------------------------------------------------------------


def module_member(
    c: Compiler, info: ModuleInfo, v: Value, name: str, range: SourceRange
) -> Sugared | None:
    """What only modules have: own functions, methods that came as text, hooks around forward, walks
    over members."""
    if name in info.defined:
        return ReadyMethod(v, name)
    if name in info.methods:
        return Method(v, name, info.methods[name])
    if name in info.functions:
        obj = info.functions[name]
        marked = ignored_value(obj)
        return marked if marked is not None else c.sugar(obj, range, f"self.{name}")
    if name in info.failed:
        _refuse_member(info, name, info.failed[name], range)
    if name in info.objects:
        return _object(c, info, v, name, range)
    if name == "__call__":  # forward with the hooks around it, where there are any
        if info.hooks or info.pre_hooks:
            return HookedForward(v, info)
        return module_member(c, info, v, "forward", range) or forward_of(info, v, range)
    if name in _WALKS:
        return static_method(lambda: _walked(c, info, v, name, range), name)
    if overrides(info, name):
        return None
    if info.container in DICTS and name == "__contains__":
        return held_keys(names_in(info))
    if info.container in DICTS and name in ("keys", "values", "items"):
        items = dict_parts(c, info, v, name, range)
        return static_method(lambda: TupleLiteral(items), name)
    if info.container is not None and name == "__len__":
        return static_method(lambda: len(names_in(info)), name)
    return None


def overrides(info: ModuleInfo, name: str) -> bool:
    """Whether a class of the program has its own method in the place of the library's."""
    function = info.find(name)
    return isinstance(function, FunctionType) and not is_library(function)


def _refuse_member(info: ModuleInfo, name: str, why: str, range: SourceRange) -> NoReturn:
    fail(
        f"{info.python_class.__name__}.{name}: {why}",
        range,
        "a type of the language, Final for a constant, or @weft.jit.ignore around its use",
    )


def _object(c: Compiler, info: ModuleInfo, v: Value, name: str, range: SourceRange) -> Sugared:
    """An object of a class that nobody has named to the compiler: it is an attribute of the program
    from its first use on."""
    cls = info.objects[name]
    known = f"expected a value that a program can hold, got {cls.__name__}"
    if info.type.runtime is not None:
        why = "which a method uses that is compiled later than the module: mark it @weft.jit.export"
        _refuse_member(info, name, f"{known}, {why}", range)
    try:
        type = class_info(cls, range).type
    except FrontendError as error:
        _refuse_member(info, name, f"{known}: {error.message}", range)
    info.type.attributes[name] = ty.Attribute(type, "attribute")
    del info.objects[name]
    return Simple(v).attr(c, range, name)


def forward_of(info: ModuleInfo, v: Value, range: SourceRange) -> Sugared:
    """The forward of a module without its hooks."""
    function = info.methods.get("forward", info.find("forward"))
    if not isinstance(function, FunctionType) or function is weft.nn.Module.forward:
        fail(f"{info.python_class.__name__}: expected a module with forward, got none", range)
    return Method(v, "forward", function)


@verb("closed_over")
def closed_over(c: Compiler, module: Any, range: SourceRange, what: str) -> Sugared:
    """A module found in a closure or global: it has no place in the program's state."""
    fail(
        f"{what}: expected a value of the program, got a module from outside of it",
        range,
        "self.name = module in __init__, and self.name(...) in forward",
    )


def _walked(c: Compiler, info: ModuleInfo, v: Value, name: str, range: SourceRange) -> Sugared:
    """self.children(), self.named_parameters() and the like: their number is known."""
    pairs = _walk(c, info, v, name.removeprefix("named_"), "", range)
    if not name.startswith("named_"):
        return TupleLiteral([value for _, value in pairs])
    return TupleLiteral([TupleLiteral([Simple(c.constant(n)), m]) for n, m in pairs])


def _walk(
    c: Compiler, info: ModuleInfo, v: Value, kind: str, prefix: str, range: SourceRange
) -> list[tuple[str, Sugared]]:
    found: list[tuple[str, Sugared]] = [(prefix, Simple(v))] if kind == "modules" else []
    wanted = {"parameters": "parameter", "buffers": "buffer", "children": "module"}.get(kind)
    for name, each in info.type.attributes.items():
        if each.kind == wanted and each.type is not ty.NONE:
            found.append((prefix + ("." if prefix else "") + name, child(c, info, v, name, range)))
    if kind == "children":
        return found
    for name, inner in info.children.items():
        below = child(c, info, v, name, range).value(c, range)
        path = f"{prefix}.{name}" if prefix else name
        found += _walk(c, inner, below, kind, path, range)
    return found


# Hooks ----------------------------------------------------------------------------------------


class HookedForward(Sugared):
    """forward with the hooks around it."""

    def __init__(self, v: Value, info: ModuleInfo) -> None:
        self.v, self.info = v, info

    def describe(self) -> str:
        return f"the module {self.info.python_class.__name__}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        given: Sugared = TupleLiteral([arg.value for arg in call.args])
        for number, hook in enumerate(self.info.pre_hooks):
            method = Method(self.v, _hook_name("pre_hook", number, hook), hook)
            made = method.call(c, Call.of(call.range, given))
            if not (isinstance(made, Simple) and made.v.type is ty.NONE):
                items = made.unrolled(c, call.range)
                given = TupleLiteral([made] if items is None else items)
        parts = given.unrolled(c, call.range) or []
        forward = forward_of(self.info, self.v, call.range)
        out = forward.call(
            c, Call(call.range, [Arg(part, call.range) for part in parts], call.kwargs)
        )
        for number, hook in enumerate(self.info.hooks):
            method = Method(self.v, _hook_name("hook", number, hook), hook)
            made = method.call(c, Call.of(call.range, given, out))
            if not (isinstance(made, Simple) and made.v.type is ty.NONE):
                out = made
        return out


def _hook_name(kind: str, number: int, hook: Any) -> str:
    return f"{kind}_{number}_{getattr(hook, '__name__', 'hook')}"


# Compiling ------------------------------------------------------------------------------------


def compile_methods(info: ModuleInfo) -> list[str]:
    """Compiles forward and what is marked @export, here and below; gives their names."""
    names = []
    if _has_forward(info):
        _compile_entry(info, "forward")
        names.append("forward")
    for name in exported(info.python_class):
        if name not in names:
            _compile_entry(info, name)
            names.append(name)
    for inner in infos_below(info)[1:]:
        for name in exported(inner.python_class):
            _compile_entry(inner, name)
    compile_interfaces(info)
    return names


def exported(cls: type) -> list[str]:
    """The methods marked @export in the bodies of a class and its bases, by name."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found.update(vars(base))
    functions = {name: getattr(each, "__func__", each) for name, each in found.items()}
    written = {name: each for name, each in functions.items() if isinstance(each, FunctionType)}
    return sorted(name for name, each in written.items() if mode_of(each) == EXPORT)


def compile_interfaces(info: ModuleInfo) -> None:
    """Compiles what submodules must have because they are declared as interfaces."""
    for each in infos_below(info):
        for name, inner in each.children.items():
            declared = each.type.attributes[name].type
            if isinstance(declared, ty.InterfaceType):
                stand_behind(each, inner.type, declared)


def stand_behind(info: ModuleInfo, inner: ty.ClassType, declared: ty.InterfaceType) -> None:
    """Objects of a class stand behind an interface in a module."""
    implement(inner, declared)
    info.classes.add(inner)


def has_interfaces(info: ModuleInfo) -> bool:
    """Whether a module or object is declared as an interface, here or below."""
    return any(
        isinstance(attribute.type, ty.InterfaceType)
        for each in infos_below(info)
        for attribute in each.type.attributes.values()
    )


def classes_below(info: ModuleInfo) -> set[ty.ClassType]:
    """Classes that stand behind interfaces, here and below."""
    return {type for each in infos_below(info) for type in each.classes}


def infos_below(info: ModuleInfo) -> list[ModuleInfo]:
    """The types of a module and of those in it, each once, outer ones first."""
    found: dict[int, ModuleInfo] = {}
    waiting = [info]
    while waiting:
        each = waiting.pop()
        if id(each) not in found:
            found[id(each)] = each
            waiting += reversed(each.children.values())
    return list(found.values())


def _has_forward(info: ModuleInfo) -> bool:
    function = info.methods.get("forward", info.find("forward"))
    if function is weft.nn.Module.forward or not isinstance(function, FunctionType):
        return False
    return mode_of(function) not in ("ignore", "unused")


def _compile_entry(info: ModuleInfo, name: str) -> None:
    known = info.compiled.get(name)
    if known is not None and known.error is None:
        return
    function = info.methods.get(name, info.find(name))
    function = getattr(function, "__func__", function)
    compile_as_method(info, name, getattr(function, "_jit_form", function))


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
