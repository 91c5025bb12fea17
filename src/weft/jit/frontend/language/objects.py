"""From Python objects found in closures, globals and attributes to what they mean in a program."""

from __future__ import annotations

import enum
import types as python_types
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.jit.cache import reads
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import BuiltinFunction, operator_name
from weft.jit.frontend.language.comparison import contains_value
from weft.jit.frontend.language.constants import CONSTANTS, constant_value, enum_constant, plain
from weft.jit.frontend.language.python_objects import PythonModule, PythonObject
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.types.annotations import type_of_value
from weft.jit.frontend.values import UNKNOWN, Dots, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

_functions: dict[Any, Sugared] = {}  # operators of the table that have been met


@verb("sugar")
def sugar(c: Compiler, obj: Any, range: SourceRange, what: str) -> Sugared:
    """What a Python object means where it is read."""
    reads.read(obj, c.code.source.filename)
    known = _functions.get(obj) if type(obj) is _C._OpFunction else None
    if known is not None:
        return known
    if isinstance(obj, Sugared):
        return obj
    if isinstance(obj, python_types.ModuleType):
        return PythonModule(obj)
    if isinstance(obj, enum.Enum):
        return Simple(enum_constant(c, obj, range))
    if isinstance(obj, CONSTANTS):
        if isinstance(obj, int) and not isinstance(obj, bool) and not -(2**63) <= obj < 2**63:
            fail(f"{what}: expected an int of 64 bits, got {obj}", range)
        return Simple(c.constant(plain(obj)))
    if obj is Ellipsis:  # by its name, as code that fx writes has it
        return Dots()
    if isinstance(obj, Tensor):
        return Simple(c.constant(obj, ty.TENSOR))
    if isinstance(obj, tuple):
        items = [c.sugar(item, range, f"{what}[{i}]") for i, item in enumerate(obj)]
        fields = getattr(type(obj), "_fields", ())
        type_ = type_of_value(obj) if fields else None
        return TupleLiteral(items, tuple(fields), type_)
    if isinstance(obj, list | dict):
        return ConstantContainer(obj, what)
    if type(obj) is _C._OpFunction and (name := operator_name(obj)) is not None:
        _functions[obj] = made = BuiltinFunction(name)  # which is nothing but its name
        return made
    found = verb["callable"](c, obj, range, what)
    return found if found is not None else PythonObject(obj, what)


class ConstantContainer(PythonObject):
    """A list or dict of the Python program; read as a value it is a copy."""

    def describe(self) -> str:
        return f"{self.what}, a {type(self.obj).__name__} of the Python program"

    def value(self, c: Compiler, range: SourceRange) -> Value:
        wanted = type_of_value(self.obj)
        if wanted is None:
            return super().value(c, range)
        return constant_value(c, self.obj, wanted, range)

    def item(self, c: Compiler, range: SourceRange, index: Sugared) -> Sugared:
        if index.static(c) is UNKNOWN and type_of_value(self.obj) is not None:
            return c.get_item(Simple(self.value(c, range)), index, range)
        return super().item(c, range, index)

    def contains(self, c: Compiler, range: SourceRange, item: Sugared) -> Sugared:
        if item.static(c) is UNKNOWN:
            return contains_value(c, item, Simple(self.value(c, range)), range)
        return super().contains(c, range, item)

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        if type_of_value(self.obj) is not None:
            return Simple(self.value(c, range)).attr(c, range, name)
        return super().attr(c, range, name)
