"""The definitions that a program needs: classes, enums, named tuples, interfaces, functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from weft.jit.archive.canonical import canonical
from weft.jit.archive.known import operator_of
from weft.jit.frontend.source.resolver import MISSING
from weft.jit.frontend.types.class_methods import compile_method
from weft.jit.ir import Function, Graph
from weft.jit.ir import types as ty
from weft.jit.module_methods import compiled_method

Definition = ty.Type | Function


class Collector:
    """Definitions in the order of their first use. Graphs are made canonical once each, `portable`
    as told there."""

    def __init__(self, portable: bool = True) -> None:
        self._portable = portable
        self.definitions: list[Definition] = []
        self._graphs: dict[int, Graph] = {}
        self._known: set[int | ty.Type] = set()

    def graph(self, function: Function) -> Graph:
        """The graph of a function as it is printed."""
        made = self._graphs.get(id(function))
        if made is None:
            made = self._graphs[id(function)] = canonical(function.graph, self._portable)
        return made

    def type(self, type: ty.Type) -> None:
        """Adds the definitions that a type names."""
        if isinstance(type, ty.TupleType) and type.name is not None:
            self._named(type, type.elems)
        elif isinstance(type, ty.EnumType):
            self._named(type, (type.value_type,))
        elif isinstance(type, ty.InterfaceType):
            self._named(type, (part for each in type.methods.values() for part in _parts(each)))
        elif isinstance(type, ty.ClassType):
            if self._add(type, id(type)):
                _compile_all(type)
                for _, held in attributes_of(type):
                    self.type(held)
                for _, method in methods_of(type):
                    self._body(method)
        else:
            for child in type.children:
                self.type(child)

    def function(self, function: Function) -> None:
        """Adds a function and the definitions that it uses."""
        if self._add(function, id(function)):
            self._body(function)

    def _named(self, type: ty.Type, parts: Iterable[ty.Type]) -> None:
        if self._add(type, type):
            for part in parts:
                self.type(part)

    def _add(self, definition: Definition, key: Any) -> bool:
        if key in self._known:
            return False
        self._known.add(key)
        self.definitions.append(definition)
        return True

    def _body(self, function: Function) -> None:
        graph = self.graph(function)
        for value in () if is_closure(function) else graph.inputs:
            self.type(value.type)
        for node in graph.walk():
            for block in node.blocks:
                for value in block.params:
                    self.type(value.type)
            for value in node.outputs:
                self.type(value.type)
            for each in node.attrs.get("types", ()):
                self.type(each)
            called: Function | None = node.attrs.get("function")
            if called is None:
                continue
            if node.kind == "prim::fork" and is_closure(called):
                self._body(called)
            elif operator_of(called) is None:
                self.function(called)


def is_closure(function: Function) -> bool:
    """Whether a function is only forked, so that it stands where that happens."""
    return function.name.rpartition(".")[2].lstrip("_").startswith("forked")


def _parts(schema: ty.FunctionSchema) -> Iterator[ty.Type]:
    yield from (arg.type for arg in schema.args)
    yield schema.returns


def _compile_all(type: ty.ClassType) -> None:
    """Compiles what nobody has called: hooks, and the methods of a class of an archive."""
    info = type.info
    if info is None:
        return
    if _hooks(type) and "forward" in type.methods:
        compiled_method(info, _HOOKED)
    if "__setstate__" in type.methods:
        compile_method(info, "__getstate__", "", None)
    if "__weft_source__" not in vars(info.python_class):
        return
    for name, member in vars(info.python_class).items():
        if name in type.methods or name in _names_of_hooks(info) or not is_source(member):
            continue
        if info.find(name) is MISSING:  # frozen, and not preserved
            continue
        if type.is_module:
            compiled_method(info, name)
        else:
            compile_method(info, name, "", None)


def is_source(member: Any) -> bool:
    """Whether a member of a class is a function of an archive's code."""
    return hasattr(member, "__weft_source__")


# Methods ------------------------------------------------------------------------------------------

_HOOKED = "__hooked__"  # forward between its hooks: archives have them apart
_HOOK = re.compile(r"(pre_hook|hook)_\d+_(\w+)")


def _hooks(type: ty.ClassType) -> list[Any]:
    return [*getattr(type.info, "pre_hooks", ()), *getattr(type.info, "hooks", ())]


def _names_of_hooks(info: Any) -> set[str]:
    return {hook.__name__ for hook in _hooks(info.type)}


def methods_of(type: ty.ClassType) -> list[tuple[str, Function]]:
    """The compiled methods of a class by the names they have in archives: forward first."""
    named = {
        method_name(type, name): method for name, method in type.methods.items() if name != _HOOKED
    }
    return sorted(named.items(), key=lambda item: (item[0] != "forward", item[0]))


def method_name(type: ty.Type | None, name: str) -> str:
    """The name of a method in an archive: "size.setter", of a property, is "_size_setter", and the
    hook "hook_0_post" is "post", if that is no other one's name."""
    if not name.isidentifier():
        return f"_{name.replace('.', '_')}"
    match = _HOOK.fullmatch(name)
    if match is None or not is_hook(type, name):
        return name
    assert isinstance(type, ty.ClassType)
    same = [each for each in map(_HOOK.fullmatch, type.methods) if each and each[2] == match[2]]
    is_method = match[2] in type.methods and match[2] not in _names_of_hooks(type.info)
    return name if len(same) > 1 or is_method else match[2]


def is_hook(type: ty.Type | None, name: str) -> bool:
    """Whether a method of a class is one of its hooks, which programs call by the class."""
    if not isinstance(type, ty.ClassType) or not _hooks(type):
        return False
    return _HOOK.fullmatch(name) is not None or name in _names_of_hooks(type.info)


def hooks_of(type: ty.ClassType, kind: str) -> list[str]:
    """The names of the hooks of a kind, "pre_hook" or "hook", in their order."""
    found = [(name, _HOOK.fullmatch(name)) for name in type.methods if _hooks(type)]
    return [method_name(type, name) for name, match in found if match and match[1] == kind]


# Attributes ---------------------------------------------------------------------------------------


def attributes_of(type: ty.ClassType) -> list[tuple[str, ty.Type]]:
    """The attributes that objects of a class have, in the order in which a module that is loaded
    has them: members, whether it is trained, the rest."""
    found = [item for item in type.attributes.items() if item[1].kind != "constant"]
    if type.is_module:
        if "training" not in dict(found):  # as in frozen modules
            found.append(("training", ty.Attribute(ty.BOOL)))
        found.sort(key=lambda item: (not _is_member(item[1]), item[0] != "training"))
    return [(name, each.type) for name, each in found]


def _is_member(attribute: ty.Attribute) -> bool:
    return any(is_kind(attribute, kind) for kind in ("parameter", "buffer", "module"))


def is_kind(attribute: ty.Attribute, kind: str) -> bool:
    """Whether an attribute is declared as a parameter, buffer or module: None is a buffer only."""
    return attribute.kind == kind and (attribute.type is not ty.NONE or kind == "buffer")
