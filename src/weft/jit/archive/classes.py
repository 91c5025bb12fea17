"""Classes and functions of an archive's code, as Python objects that only the frontend reads."""

from __future__ import annotations

import ast
import enum
import types as python_types
import typing
from typing import Any

from weft.jit.archive.code import ArchiveCode, part_of
from weft.jit.archive.names import BUILTINS, globals_of
from weft.jit.frontend.annotations import Annotations
from weft.jit.frontend.interfaces import is_interface
from weft.jit.frontend.resolver import Resolver
from weft.jit.frontend.source import Code
from weft.jit.markers import interface
from weft.nn import Module
from weft.serialization.errors import LoadError, shown


class LoadedModule(Module):
    """The base of modules of archives; `_parameter_names` and `_buffer_names` are as declared."""

    # Without annotations, which would make them attributes of programs.
    _parameter_names = tuple[str, ...]()
    _buffer_names = tuple[str, ...]()
    _constants = dict[str, Any]()  # noqa: RUF012


def _not_python(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("expected a call of a loaded program, got one of its source")


class Definitions:
    """The classes and functions of one archive, each made when it is first named."""

    def __init__(self, code: ArchiveCode, constants: list[Any], version: int) -> None:
        self._code = code
        self._made: dict[str, Any] = {}
        self.globals = globals_of(self.find, code.has_prefix, constants, version)

    def find(self, name: str) -> Any:
        """The class or function of a qualified name; None if there is none."""
        if name not in self._made:
            code = self._code.find(name)
            self._made[name] = None if code is None else self._make(name, code)
        return self._made[name]

    def _make(self, name: str, code: Code) -> Any:
        node = code.tree.body[0]
        if isinstance(node, ast.FunctionDef):
            return self._function(name, code, node)
        assert isinstance(node, ast.ClassDef)
        base = ast.unparse(node.bases[0]) if node.bases else ""
        make = _KINDS.get(base)
        if make is None:
            raise LoadError(
                f"load: expected {shown(name)} to be one of {', '.join(filter(None, _KINDS))} "
                f"or a plain class, got one of {shown(base)}"
            )
        return make(self, name, code, node)

    def _function(self, name: str, code: Code, node: ast.FunctionDef) -> Any:
        made = python_types.FunctionType(_not_python.__code__, self.globals, node.name)
        made.__module__, made.__qualname__ = _module_of(name), node.name
        made.__weft_source__ = code  # type: ignore[attr-defined]
        return made

    def _members(self, name: str, code: Code, node: ast.ClassDef) -> dict[str, Any]:
        members: dict[str, Any] = {"__module__": _module_of(name), "__weft_source__": code}
        for each in node.body:
            if isinstance(each, ast.FunctionDef):
                method = self._function(f"{name}.{each.name}", part_of(code, each), each)
                method.__module__ = members["__module__"]
                method.__qualname__ = f"{node.name}.{each.name}"
                members[each.name] = method
        return members

    def _module(self, name: str, code: Code, node: ast.ClassDef) -> type:
        members = self._members(name, code, node)
        annotations: dict[str, Any] = {}
        constants: dict[str, Any] = {}
        reader = Annotations(code, Resolver(self.globals, builtins=BUILTINS))
        for attribute, type_, value in _declared(node):
            if value is not None:
                constants[attribute] = _literal(value)
            elif not _is_qualified(type_) or self._is_interface(type_):
                annotations[attribute] = reader.read(type_)
        members.update(
            __annotations__=annotations,
            __constants__=list(constants),
            _constants=constants,
            _parameter_names=_names(node, "__parameters__"),
            _buffer_names=_names(node, "__buffers__"),
        )
        return type(node.name, (LoadedModule,), members)

    def _is_interface(self, type_: ast.expr) -> bool:
        found = self.find(ast.unparse(type_))
        return isinstance(found, type) and is_interface(found)

    def _plain(self, name: str, code: Code, node: ast.ClassDef) -> type:
        members = self._members(name, code, node)
        made = type(node.name, (), members)
        self._made[name] = made  # it may name itself
        reader = Annotations(code, Resolver(self.globals, builtins=BUILTINS))
        made.__annotations__ = {
            attribute: reader.read(type_) for attribute, type_, _ in _declared(node)
        }
        return made

    def _interface(self, name: str, code: Code, node: ast.ClassDef) -> type:
        return interface(type(node.name, (), self._members(name, code, node)))

    def _module_interface(self, name: str, code: Code, node: ast.ClassDef) -> type:
        return interface(type(node.name, (Module,), self._members(name, code, node)))

    def _tuple(self, name: str, code: Code, node: ast.ClassDef) -> type:
        reader = Annotations(code, Resolver(self.globals, builtins=BUILTINS))
        fields = [(attribute, reader.read(type_)) for attribute, type_, _ in _declared(node)]
        made: Any = typing.NamedTuple(node.name, fields)  # type: ignore[misc]
        made.__module__ = _module_of(name)
        return made

    def _enum(self, name: str, code: Code, node: ast.ClassDef) -> type:
        members = [
            (ast.unparse(each.targets[0]), _literal(each.value))
            for each in node.body
            if isinstance(each, ast.Assign)
        ]
        return enum.Enum(node.name, members, module=_module_of(name))  # type: ignore[return-value]


_KINDS = {
    "Module": Definitions._module,
    "NamedTuple": Definitions._tuple,
    "Enum": Definitions._enum,
    "Interface": Definitions._interface,
    "ModuleInterface": Definitions._module_interface,
    "": Definitions._plain,
}


def _module_of(name: str) -> str:
    """The module of a qualified name: "__torch__.a.b" of "__torch__.a.b.C". No module of Python has
    such a name."""
    return name.rpartition(".")[0]


def _declared(node: ast.ClassDef) -> list[tuple[str, ast.expr, ast.expr | None]]:
    """Name, type and value of what a class body declares; names that are no identifiers as well."""
    found: list[tuple[str, ast.expr, ast.expr | None]] = []
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            found.append((each.target.id, each.annotation, each.value))
        elif isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Subscript):
            found.append((_literal(each.targets[0].slice), each.value, None))
    return found


def _names(node: ast.ClassDef, of: str) -> tuple[str, ...]:
    for each in node.body:
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == of:
            return tuple(_literal(each.value))
    return ()


def _is_qualified(node: ast.expr) -> bool:
    """Whether a type is named `__torch__....`: submodules have their types from their objects."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "__torch__"


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise LoadError(f"load: expected a literal, got {ast.unparse(node)[:80]!r}") from None
