"""Classes in a program: their constructors, members of enums."""

from __future__ import annotations

import enum
from types import FunctionType
from typing import Any

from weft._runtime.public import weft
from weft.amp.autocast_mode import autocast
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import convert_arguments
from weft.jit.frontend.language.constants import enum_constant
from weft.jit.frontend.language.context_managers import MANAGERS, AutocastClass, ManagerClass
from weft.jit.frontend.language.python_objects import PythonObject
from weft.jit.frontend.library import prelude
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import compiling, fail
from weft.jit.frontend.types.class_attributes import call_method, of_class
from weft.jit.frontend.types.classes import (
    ClassInfo,
    class_info,
    dataclass_fields,
    enum_type,
    is_dataclass,
)
from weft.jit.frontend.types.names import is_written
from weft.jit.frontend.types.parameters import Parameter
from weft.jit.frontend.types.python_values import static_attribute
from weft.jit.frontend.types.tuples import NamedTupleClass
from weft.jit.frontend.values import Call, Known, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


class EnumClass(Sugared):
    """An enum class: E.A, E["A"], for e in E."""

    def __init__(self, cls: type[enum.Enum]) -> None:
        self.cls = cls

    def describe(self) -> str:
        return f"the enum {self.cls.__name__}"

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        members: Any = self.cls.__members__
        if name not in members:
            fail(f"{self.cls.__name__}: expected one of {', '.join(members)}, got {name!r}", range)
        return Simple(enum_constant(c, members[name], range))

    def has_attr(self, c: Compiler, name: str) -> bool:
        return name in self.cls.__members__

    def item(self, c: Compiler, range: SourceRange, index: Sugared) -> Sugared:
        known = index.static(c)
        if not isinstance(known, str):
            fail(f"{self.cls.__name__}: expected a name known while compiling, got another", range)
        return self.attr(c, range, known)

    def unrolled(self, c: Compiler, range: SourceRange) -> list[Sugared] | None:
        return [self.attr(c, range, member.name) for member in self.cls]

    def call(self, c: Compiler, call: Call) -> Sugared:
        """E(value): the member of a value."""
        name = self.cls.__name__
        call.expect_no_keywords(name)
        call.expect_count(name, 1, 1)
        type = enum_type(self.cls, call.range)
        given = call.args[0].value
        if isinstance(given, Simple) and given.v.type is type:
            return given
        wanted = Simple(c.convert(given, type.value_type, call.range, name, strict=True))
        held = [self.attr(c, call.range, n).value(c, call.range) for n, _ in type.members]
        values = [c.constant(value) for _, value in type.members]
        lists = [
            Simple(
                c.emit("prim::ListConstruct", items, ty.ListType(items[0].type), range=call.range)
            )
            for items in (values, held)
        ]
        return c.call(prelude.member, call.range, *lists, wanted, Simple(c.constant(name)))

    def key(self) -> Any:
        return self.cls


class ScriptClass(Sugared):
    """A class of the program: its constructor, static methods and constants."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def describe(self) -> str:
        return f"the class {self.cls.__name__}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        info, v = self.new(c, call)
        if is_dataclass(self.cls):
            _fill_dataclass(c, info, v, call)
        elif isinstance(info.find("__init__"), FunctionType):
            call_method(c, v, "__init__", call)
        else:
            call.expect_nothing(self.cls.__name__)
        return Simple(v)

    def new(self, c: Compiler, call: Call) -> tuple[ClassInfo, Value]:
        """An object whose attributes are not set."""
        with compiling(self.cls.__qualname__, c.name, call.range):
            info = class_info(self.cls, call.range)
        return info, c.emit("prim::CreateObject", (), info.type, range=call.range)

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        if name == "__new__":
            return Known("__new__", self._bare)
        return of_class(c, self.cls, range, name)

    def _bare(self, c: Compiler, call: Call) -> Sugared:
        """C.__new__(C), as archives write it: an object whose attributes are not set."""
        if len(call.args) != 1 or call.args[0].value.key() is not self.cls or call.kwargs:
            fail("__new__: expected the class as its only argument", call.range)
        return Simple(self.new(c, call)[1])

    def has_attr(self, c: Compiler, name: str) -> bool:
        return hasattr(self.cls, name)

    def key(self) -> Any:
        return self.cls


class ModuleClass(PythonObject):
    """A class of modules: Base.forward(self, x) calls its method for a module."""

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        if isinstance(static_attribute(self.obj, name, None), FunctionType):
            return of_class(c, self.obj, range, name)
        return super().attr(c, range, name)


def _fill_dataclass(c: Compiler, info: ClassInfo, v: Any, call: Call) -> None:
    parameters = []
    factories: dict[str, Any] = {}
    for field in dataclass_fields(info.python_class):
        if not field.init:
            continue
        has_default = True
        if callable(field.default_factory):
            factories[field.name] = field.default_factory()
        else:  # which is dataclasses.MISSING
            has_default = field.default is not field.default_factory
        default = factories.get(field.name, field.default if has_default else None)
        type_ = info.type.attributes[field.name].type
        parameters.append(Parameter(field.name, type_, default, has_default, bool(field.kw_only)))
    values = convert_arguments(c, info.python_class.__name__, parameters, call)
    for parameter, value in zip(parameters, values):
        c.node("prim::SetAttr", (v, value), (), {"name": parameter.name}, call.range)
    if isinstance(info.find("__post_init__"), FunctionType):
        call_method(c, v, "__post_init__", Call(call.range))


@verb("class_value")
def class_value(cls: type, what: str) -> Sugared:
    """What a Python class means in a program."""
    if issubclass(cls, enum.Enum):
        return EnumClass(cls)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return NamedTupleClass(cls)

    if cls in MANAGERS:
        return ManagerClass(cls)
    if issubclass(cls, autocast):
        return AutocastClass(cls)
    if issubclass(cls, weft.nn.Module):
        return ModuleClass(cls, what)
    return ScriptClass(cls) if is_written(cls) else PythonObject(cls, what)
