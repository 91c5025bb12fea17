"""From Python objects found in closures, globals and attributes to what they mean in a program."""

from __future__ import annotations

import enum
import functools
import types as python_types
from typing import Any

import weft
from weft import _C
from weft.jit.frontend.annotations import type_of_value
from weft.jit.frontend.calls import BuiltinFunction, operator_name
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.python_objects import PythonModule, PythonObject
from weft.jit.frontend.python_values import as_type
from weft.jit.frontend.resolver import MISSING, is_module
from weft.jit.frontend.sugared import Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

_CONSTANTS: tuple[Any, ...] = (
    bool,
    int,
    float,
    complex,
    str,
    type(None),
    weft.dtype,
    weft.device,
    weft.layout,
)
_CONSTANTS += (weft.memory_format,)
_functions: dict[Any, Sugared] = {}  # operators of the table that have been met
# Schemas give these defaults by TorchScript's numbers.
_BY_NUMBER: dict[ty.Type, tuple[str, ...]] = {
    ty.MEMORY_FORMAT: ("contiguous_format", "preserve_format", "channels_last"),
    ty.LAYOUT: ("strided",),
}


def sugar(e: Emitter, obj: Any, range: SourceRange, what: str) -> Sugared:
    """What a Python object means where it is read."""
    known = _functions.get(obj) if type(obj) is _C._OpFunction else None
    if known is not None:
        return known
    if isinstance(obj, Sugared):
        return obj
    if isinstance(obj, python_types.ModuleType):
        return PythonModule(obj)
    if isinstance(obj, enum.Enum):
        return Simple(enum_constant(e, obj, range))
    if isinstance(obj, _CONSTANTS):
        if isinstance(obj, int) and not isinstance(obj, bool) and not -(2**63) <= obj < 2**63:
            fail(f"{what}: expected an int of 64 bits, got {obj}", range)
        return Simple(e.constant(_plain(obj)))
    if isinstance(obj, weft.Tensor):
        return Simple(e.constant(obj, ty.TENSOR))
    if isinstance(obj, tuple):
        items = [sugar(e, item, range, f"{what}[{i}]") for i, item in enumerate(obj)]
        fields = getattr(type(obj), "_fields", ())
        type_ = type_of_value(obj) if fields else None
        return TupleLiteral(items, tuple(fields), type_)
    if isinstance(obj, list | dict):
        return ConstantContainer(obj, what)
    found = _callable(e, obj, range, what)
    return found if found is not None else PythonObject(obj, what)


def _plain(obj: Any) -> Any:
    """Subclasses of int, str and the like as their base."""
    kinds: tuple[Any, ...] = (bool, int, float, complex, str)
    for kind in kinds:
        if isinstance(obj, kind):
            return kind(obj)
    return obj


def _callable(e: Emitter, obj: Any, range: SourceRange, what: str) -> Sugared | None:
    if isinstance(obj, type) and issubclass(obj, BaseException):
        from weft.jit.frontend.exceptions import ExceptionClass

        return ExceptionClass(obj)
    if type(obj) is _C._OpFunction:
        name = operator_name(obj)
        if name is not None:
            _functions[obj] = made = BuiltinFunction(name)  # which is nothing but its name
            return made
    from weft.jit.frontend.builtins import builtin_of

    special = builtin_of(obj)
    if special is not None:
        return special
    from weft.jit.frontend import classes, functions, modules

    if is_module(obj):
        return modules.closed_over(e, obj, range, what)
    if isinstance(obj, type):
        return classes.class_value(obj, what)
    if isinstance(obj, python_types.MethodType):
        return functions.bound_method(e, obj, range, what)
    if isinstance(obj, functools.partial):
        return Partial(obj, what)
    if callable(obj):
        return functions.function_value(e, obj, range, what)
    return None


class Partial(PythonObject):
    """functools.partial of something that can be called."""

    def call(self, e: Emitter, call: Call) -> Sugared:
        def given(value: Any) -> Arg:
            return Arg(sugar(e, value, call.range, self.what), call.range)

        first = [given(value) for value in self.obj.args]
        named = {name: given(value) for name, value in self.obj.keywords.items()}
        called = sugar(e, self.obj.func, call.range, self.what)
        return called.call(
            e, Call(call.range, [*first, *call.args], {**named, **call.kwargs}, call.hint)
        )


class ConstantContainer(PythonObject):
    """A list or dict of the Python program; read as a value it is a copy."""

    def describe(self) -> str:
        return f"{self.what}, a {type(self.obj).__name__} of the Python program"

    def value(self, e: Emitter, range: SourceRange) -> Value:
        wanted = type_of_value(self.obj)
        if wanted is None:
            return super().value(e, range)
        return constant_value(e, self.obj, wanted, range)

    def item(self, e: Emitter, range: SourceRange, index: Sugared) -> Sugared:
        from weft.jit.frontend.sugared import UNKNOWN

        if index.static(e) is UNKNOWN and type_of_value(self.obj) is not None:
            from weft.jit.frontend.subscripts import get_item

            return get_item(e, Simple(self.value(e, range)), index, range)
        return super().item(e, range, index)

    def contains(self, e: Emitter, range: SourceRange, item: Sugared) -> Sugared:
        from weft.jit.frontend.comparison import contains_value
        from weft.jit.frontend.sugared import UNKNOWN

        if item.static(e) is UNKNOWN:
            return contains_value(e, item, Simple(self.value(e, range)), range)
        return super().contains(e, range, item)

    def attr(self, e: Emitter, range: SourceRange, name: str) -> Sugared:
        if type_of_value(self.obj) is not None:
            return Simple(self.value(e, range)).attr(e, range, name)
        return super().attr(e, range, name)


def enum_constant(e: Emitter, member: enum.Enum, range: SourceRange | None) -> Value:
    """A member of an enum as a constant."""
    from weft.jit.frontend.classes import enum_type

    type_ = enum_type(type(member), range)
    return e.constant(ty.EnumValue(type_, member.name), type_)


def default_value(
    e: Emitter,
    default: Any,
    wanted: ty.Type,
    range: SourceRange,
    length: int | None = None,
) -> Value:
    """The value of a default argument."""
    inner = ty.non_none(wanted) if isinstance(wanted, ty.OptionalType) else wanted
    if default is None:
        return e.constant(None)
    if isinstance(inner, ty.ListType) and isinstance(default, int | float):
        default = [default] * (length or 1)
    return constant_value(e, default, wanted, range)


def constant_value(e: Emitter, obj: Any, wanted: ty.Type, range: SourceRange | None) -> Value:
    """A Python value as a value of the graph. Lists and dicts are made anew each time."""
    inner = ty.non_none(wanted) if isinstance(wanted, ty.OptionalType) else wanted
    if isinstance(inner, ty.ListType) and isinstance(obj, list | tuple):
        items = [constant_value(e, item, inner.elem, range) for item in obj]
        return e.emit("prim::ListConstruct", items, inner, range=range)
    if (
        isinstance(inner, ty.TupleType)
        and isinstance(obj, tuple | list)
        and len(obj) == len(inner.elems)
    ):
        pairs = zip(obj, inner.elems)
        parts = [constant_value(e, item, elem, range) for item, elem in pairs]
        return e.emit("prim::TupleConstruct", parts, inner, range=range)
    if isinstance(inner, ty.DictType) and isinstance(obj, dict):
        flat = []
        for key, item in obj.items():
            flat.append(constant_value(e, key, inner.key, range))
            flat.append(constant_value(e, item, inner.value, range))
        return e.emit("prim::DictConstruct", flat, inner, range=range)
    if isinstance(obj, enum.Enum):
        return enum_constant(e, obj, range)
    if isinstance(obj, list | tuple | dict):
        found = type_of_value(obj)
        if found is not None and not isinstance(inner, ty.ListType | ty.TupleType | ty.DictType):
            return constant_value(e, obj, found, range)
    if isinstance(obj, int | float) and (number := as_type(obj, inner)) is not MISSING:
        obj = number
    if inner in _BY_NUMBER and isinstance(obj, int):
        obj = getattr(weft, _BY_NUMBER[inner][obj])
    if isinstance(obj, weft.Tensor):
        return e.constant(obj, ty.TENSOR)
    if isinstance(obj, _CONSTANTS):
        return e.constant(_plain(obj))
    fail(f"expected a constant of type {wanted.annotation}, got {type(obj).__name__}", range)
