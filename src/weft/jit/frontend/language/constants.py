"""Python values as constants of a graph: defaults of parameters, globals."""

from __future__ import annotations

import enum
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.source.resolver import MISSING
from weft.jit.frontend.types.annotations import type_of_value
from weft.jit.frontend.types.classes import enum_type
from weft.jit.frontend.types.python_values import as_type
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

CONSTANTS: tuple[Any, ...] = (
    bool,
    int,
    float,
    complex,
    str,
    type(None),
    _C.dtype,
    _C.device,
    _C.layout,
)
CONSTANTS += (_C.memory_format,)


# Schemas give these defaults by TorchScript's numbers.
_BY_NUMBER: dict[ty.Type, tuple[Any, ...]] = {
    ty.MEMORY_FORMAT: _C._memory_formats,
    ty.LAYOUT: (_C.strided,),
}


def plain(obj: Any) -> Any:
    """Subclasses of int, str and the like as their base."""
    kinds: tuple[Any, ...] = (bool, int, float, complex, str)
    for kind in kinds:
        if isinstance(obj, kind):
            return kind(obj)
    return obj


def enum_constant(c: Compiler, member: enum.Enum, range: SourceRange | None) -> Value:
    """A member of an enum as a constant."""
    type_ = enum_type(type(member), range)
    return c.constant(ty.EnumValue(type_, member.name), type_)


def default_value(
    c: Compiler,
    default: Any,
    wanted: ty.Type,
    range: SourceRange,
    length: int | None = None,
) -> Value:
    """The value of a default argument."""
    inner = ty.non_none(wanted) if isinstance(wanted, ty.OptionalType) else wanted
    if default is None:
        return c.constant(None)
    if isinstance(inner, ty.ListType) and isinstance(default, int | float):
        default = [default] * (length or 1)
    return constant_value(c, default, wanted, range)


def constant_value(c: Compiler, obj: Any, wanted: ty.Type, range: SourceRange | None) -> Value:
    """A Python value as a value of the graph. Lists and dicts are made anew each time."""
    inner = ty.non_none(wanted) if isinstance(wanted, ty.OptionalType) else wanted
    if isinstance(inner, ty.ListType) and isinstance(obj, list | tuple):
        items = [constant_value(c, item, inner.elem, range) for item in obj]
        return c.emit("prim::ListConstruct", items, inner, range=range)
    if (
        isinstance(inner, ty.TupleType)
        and isinstance(obj, tuple | list)
        and len(obj) == len(inner.elems)
    ):
        pairs = zip(obj, inner.elems)
        parts = [constant_value(c, item, elem, range) for item, elem in pairs]
        return c.emit("prim::TupleConstruct", parts, inner, range=range)
    if isinstance(inner, ty.DictType) and isinstance(obj, dict):
        flat = []
        for key, item in obj.items():
            flat.append(constant_value(c, key, inner.key, range))
            flat.append(constant_value(c, item, inner.value, range))
        return c.emit("prim::DictConstruct", flat, inner, range=range)
    if isinstance(obj, enum.Enum):
        return enum_constant(c, obj, range)
    if isinstance(obj, list | tuple | dict):
        found = type_of_value(obj)
        if found is not None and not isinstance(inner, ty.ListType | ty.TupleType | ty.DictType):
            return constant_value(c, obj, found, range)
    if isinstance(obj, int | float) and (number := as_type(obj, inner)) is not MISSING:
        obj = number
    if inner in _BY_NUMBER and isinstance(obj, int):
        obj = _BY_NUMBER[inner][obj]
    if isinstance(obj, Tensor):
        return c.constant(obj, ty.TENSOR)
    if isinstance(obj, CONSTANTS):
        return c.constant(plain(obj))
    fail(f"expected a constant of type {wanted.annotation}, got {type(obj).__name__}", range)
