"""Classes and functions of an archive's code, as Python objects that only the frontend reads."""

from __future__ import annotations

import ast
import collections
import enum
import re
import sys
import types as python_types
from collections.abc import Callable
from typing import Any, NamedTuple

from weft.jit import python_classes
from weft.jit.archive import quantized
from weft.jit.archive.code import ArchiveCode, dotted
from weft.jit.archive.debug import ArchivedCode
from weft.jit.archive.managers import MANAGERS
from weft.jit.archive.names import BUILTINS, Archive, globals_of, is_known
from weft.jit.archive.unknown import CLASSES_OF_TORCH, class_of_torch, message, unknown_operators
from weft.jit.frontend.source.resolver import Resolver
from weft.jit.frontend.types.annotations import Annotations
from weft.jit.markers import interface
from weft.nn import Module
from weft.serialization.errors import LoadError, shown


class Layout(NamedTuple):
    """What the body of a module class declares."""

    parameters: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    pre_hooks: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    constants: dict[str, Any] = {}  # noqa: RUF012


class LoadedModule(Module):
    """The base of modules of archives."""

    __weft_container__ = "any"
    __weft_layout__ = Layout()


def _not_python(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("expected a call of a loaded program, got one of its source")


class Definitions:
    """The classes and functions of one archive, each made when it is first named."""

    def __init__(
        self,
        code: ArchiveCode,
        constants: list[Any],
        version: int,
        located: Callable[[str], str] = str,
    ) -> None:
        self._code = code
        self.digest = code.digest
        self.version = version
        self.constants = constants
        self.located = located
        self._made: dict[str, Any] = {}
        self._unknown: dict[str, str] | None = None
        self.globals = globals_of(
            Archive(self.find, self._has_prefix, constants, version, self._missing, located)
        )

    def _has_prefix(self, name: str) -> bool:
        return self._code.has_prefix(name) or any(
            each.startswith(f"{name}.") for each in quantized.CLASSES
        )

    def _missing(self, kind: str) -> str:
        """The text of the error for an operator that weft has not."""
        if self._unknown is None:
            self._unknown = unknown_operators(self._code, is_known)
        return message(kind, self._unknown)

    def add(self, module: str, path: str, text: bytes) -> None:
        """Adds a file of code."""
        self._code.add(module, path, text)

    def names(self) -> list[str]:
        """The qualified names of all definitions."""
        return self._code.all_names()

    def find(self, name: str) -> Any:
        """The class or function of a qualified name; None if there is none."""
        if name in MANAGERS:
            return MANAGERS[name]
        if name in quantized.CLASSES:
            return quantized.CLASSES[name]
        if name not in self._made:
            code = self._code.find(name)
            self._made[name] = None if code is None else self._make(name, code)
        return self._made[name]

    def _make(self, name: str, code: ArchivedCode) -> Any:
        node = code.tree.body[0]
        if isinstance(node, ast.FunctionDef):
            made = self._function(name, code, node)
            # One that takes a module is compiled for the modules that it is called with.
            types = [each.annotation for each in node.args.args if each.annotation is not None]
            made.__weft_open__ = any(map(self._is_module, types))
            return made
        assert isinstance(node, ast.ClassDef)
        base = _base_of(node)
        make = _KINDS.get(base)
        if make is None:
            raise LoadError(
                f"load: expected {shown(name)} to be one of {', '.join(filter(None, _KINDS))} "
                f"or a plain class, got one of {shown(base)}"
            )
        return make(self, name, code, node)

    def _function(self, name: str, code: ArchivedCode, node: ast.FunctionDef) -> Any:
        made = python_types.FunctionType(_not_python.__code__, self.globals, node.name)
        made.__module__, made.__qualname__ = _module_of(name), node.name
        made.__weft_source__ = code  # type: ignore[attr-defined]
        return made

    def _members(self, name: str, code: ArchivedCode, node: ast.ClassDef) -> dict[str, Any]:
        members: dict[str, Any] = {"__module__": _module_of(name), "__weft_source__": code}
        for each in node.body:
            if isinstance(each, ast.FunctionDef):
                method = self._function(f"{name}.{each.name}", code.part(each), each)
                method.__module__ = members["__module__"]
                method.__qualname__ = f"{node.name}.{each.name}"
                members[each.name] = method
        return members

    def _module(self, name: str, code: ArchivedCode, node: ast.ClassDef) -> type:
        members = self._members(name, code, node)
        annotations: dict[str, Any] = {}
        constants: dict[str, Any] = {}
        types = self._types(code)
        for attribute, type_, value in _declared(node):
            if value is not None:
                constants[attribute] = self._constant(value)
            elif not self._is_module(type_):  # modules have their types from their objects
                annotations[attribute] = types(type_)
        members.update(
            __annotations__=annotations,
            __constants__=list(constants),
            __weft_layout__=Layout(
                _names(node, "__parameters__"),
                _names(node, "__buffers__"),
                _hooks(node, "__forward_pre_hooks__"),
                _hooks(node, "__forward_hooks__"),
                constants,
            ),
        )
        return type(node.name, (LoadedModule,), members)

    def _types(self, code: ArchivedCode) -> Callable[[ast.expr], Any]:
        """A function that gives the types of annotations in that code."""
        resolver = Resolver(self.globals, builtins=BUILTINS)
        reader = Annotations(code.without_origins(), resolver)

        def read(node: ast.expr) -> Any:
            if CLASSES_OF_TORCH in code.text:
                for each in _OF_TORCH.findall(ast.unparse(node)):
                    if each not in quantized.CLASSES:
                        raise class_of_torch(each)
            return reader.read(node)

        return read

    def _is_module(self, node: ast.expr) -> bool:
        code = self._code.find(dotted(node))
        return code is not None and _base_of(code.tree.body[0]) == "Module"

    def _constant(self, node: ast.expr) -> Any:
        """The value of a Final: a literal, or one of the constants."""
        if isinstance(node, ast.Attribute) and dotted(node.value) == "CONSTANTS":
            try:
                return getattr(self.globals["CONSTANTS"], node.attr)
            except AttributeError as error:
                raise LoadError(f"load: {error}") from None
        return _literal(node)

    def _plain(self, name: str, code: ArchivedCode, node: ast.ClassDef) -> type:
        members = self._members(name, code, node)
        made = type(node.name, (), members)
        self._made[name] = made  # it may name itself
        types = self._types(code)
        made.__annotations__ = {attribute: types(type_) for attribute, type_, _ in _declared(node)}
        return made

    def _interface(self, name: str, code: ArchivedCode, node: ast.ClassDef) -> type:
        return interface(type(node.name, (), self._members(name, code, node)))

    def _module_interface(self, name: str, code: ArchivedCode, node: ast.ClassDef) -> type:
        return interface(type(node.name, (Module,), self._members(name, code, node)))

    def _tuple(self, name: str, code: ArchivedCode, node: ast.ClassDef) -> type:
        types = self._types(code)
        fields = {attribute: types(type_) for attribute, type_, _ in _declared(node)}
        made: Any = collections.namedtuple(node.name, fields, module=_module_of(name))  # type: ignore[misc]
        made.__annotations__ = fields  # typing.NamedTuple refuses types of programs (Python 3.10)
        return made

    def _enum(self, name: str, code: ArchivedCode, node: ast.ClassDef) -> type:
        members = [
            (dotted(each.targets[0]), _literal(each.value))
            for each in node.body
            if isinstance(each, ast.Assign)
        ]
        return _enum_here(name, members) or enum.Enum(node.name, members, module=_module_of(name))  # type: ignore[return-value]


_OF_TORCH = re.compile(re.escape(CLASSES_OF_TORCH) + r"[\w.]+")
_KINDS = {
    "Module": Definitions._module,
    "NamedTuple": Definitions._tuple,
    "Enum": Definitions._enum,
    "Interface": Definitions._interface,
    "ModuleInterface": Definitions._module_interface,
    "": Definitions._plain,
}


def _enum_here(name: str, members: list[tuple[str, Any]]) -> type | None:
    """The enum of Python that an archive's was made of, so that its members are taken and given:
    one compiled before, or of an imported module; None if there is none with those members."""
    module, _, last = name.removeprefix("__torch__.").rpartition(".")
    module = module or "__main__"
    imported = vars(sys.modules.get(module) or object).get(last)
    for cls in (python_classes.find(f"__torch__.{module}.{last}"), imported):
        if isinstance(cls, type) and issubclass(cls, enum.Enum):
            found: type[enum.Enum] = cls
            if [(each.name, each.value) for each in found] == members:
                return found
    return None


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
        if isinstance(each, ast.Assign) and dotted(each.targets[0]) == of:
            return tuple(_literal(each.value))
    return ()


def _hooks(node: ast.ClassDef, of: str) -> tuple[str, ...]:
    names = _names(node, of)
    methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    if not methods.issuperset(names):
        raise LoadError(f"load: expected methods of {node.name} in {of}, got {shown(str(names))}")
    return names


def _base_of(node: ast.stmt) -> str:
    """The name of a class's base; empty where it has none."""
    bases = node.bases if isinstance(node, ast.ClassDef) else []
    return dotted(bases[0]) if bases else ""


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise LoadError(f"load: expected a literal, got {ast.unparse(node)[:80]!r}") from None
