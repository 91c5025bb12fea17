"""Python's values as constants, and conversions of one argument: what fits a type as it is, and
what is silently made to fit."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.library import prelude
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.source.resolver import MISSING
from weft.jit.frontend.types.annotations import type_of_value
from weft.jit.frontend.types.classes import enum_type, implement
from weft.jit.frontend.types.names import as_type
from weft.jit.frontend.types.signatures import Parameter, bind_type
from weft.jit.frontend.values import UNKNOWN, Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

EXACT, CONVERTED, WIDENED = 0, 1, 2
LEVELS = (EXACT, CONVERTED, WIDENED)


Convert = Callable[[Compiler, SourceRange], Value]


def converter(
    c: Compiler, arg: Arg, wanted: Parameter, level: int, bindings: dict[str, ty.Type]
) -> Convert | None:
    """How the argument becomes a value of the wanted type, or None where it does not."""
    actual = c.type_of(arg.value, arg.range)
    if actual is wanted.type:
        return lambda c, r: arg.value.value(c, arg.range)
    formal = ty.substitute(wanted.type, bindings)
    target = ty.non_none(formal)
    if isinstance(target, ty.InterfaceType) and isinstance(actual, ty.ClassType):
        implement(actual, target)
    trial = dict(bindings)
    if bind_type(wanted.type, actual, trial):
        bindings.update(trial)
        return lambda c, r: arg.value.value(c, arg.range)
    inner = ty.non_none(formal) if isinstance(formal, ty.OptionalType) else formal
    if isinstance(inner, ty.ListType):
        return _to_list(c, arg, wanted, inner, level, bindings)
    if isinstance(inner, ty.TupleType) and isinstance(arg.value, TupleLiteral):
        return _to_tuple(c, arg, inner, level)
    if isinstance(inner, ty.DictType) and isinstance(arg.value, Simple):
        return _retyped(arg.value.v, inner, level)
    if level >= CONVERTED:
        return _convert_value(arg, actual, inner, level)
    return None


def _to_list(
    c: Compiler,
    arg: Arg,
    wanted: Parameter,
    formal: ty.ListType,
    level: int,
    bindings: dict[str, ty.Type],
) -> Convert | None:
    value = arg.value
    actual = c.type_of(value, arg.range)
    if isinstance(actual, ty.TupleType):
        items = value.unrolled(c, arg.range) or []
        if isinstance(formal.elem, ty.TypeVar):
            if not items or len({c.type_of(item, arg.range) for item in items}) != 1:
                return None
            bindings[formal.elem.name] = c.type_of(items[0], arg.range)
        elem = ty.substitute(formal.elem, bindings)
        parts = _of_items(c, items, [elem] * len(items), arg.range, level, bindings)
        return None if parts is None else _list_maker(parts, elem)
    if wanted.length is not None and not ty.has_variables(formal):
        one = converter(c, arg, Parameter("", formal.elem), level, bindings)
        if one is not None:
            return _list_maker([one] * wanted.length, formal.elem)
    if not isinstance(value, Simple):
        return None
    if wanted.read and level >= CONVERTED and (actual, formal) == (_TENSORS, _INDICES):
        return lambda c, range: c.call(prelude.indices, range, value).value(c, range)
    return _retyped(value.v, formal, level)


_TENSORS, _INDICES = ty.ListType(ty.TENSOR), ty.ListType(ty.OptionalType(ty.TENSOR))


def _of_items(
    c: Compiler,
    items: Sequence[Sugared],
    types: Sequence[ty.Type],
    range: SourceRange,
    level: int,
    bindings: dict[str, ty.Type] | None = None,
) -> list[Convert] | None:
    """How each item becomes one of its type; None where one does not. Without `bindings` each binds
    type variables for itself."""
    parts = []
    for item, type in zip(items, types):
        bound = {} if bindings is None else bindings
        part = converter(c, Arg(item, range), Parameter("", type), level, bound)
        if part is None:
            return None
        parts.append(part)
    return parts


def _list_maker(parts: Sequence[Convert], elem: ty.Type) -> Convert:
    def make(c: Compiler, range: SourceRange) -> Value:
        made: dict[Convert, Value] = {}
        for part in parts:
            if part not in made:
                made[part] = part(c, range)
        values = [made[part] for part in parts]
        return c.emit("prim::ListConstruct", values, ty.ListType(elem), range=range)

    return make


def _retyped(v: Value, formal: ty.Type, level: int) -> Convert | None:
    """A literal list or dict that nobody has seen yet takes the type that is wanted: [] or [x]."""
    node = v.node
    if node is None or v.has_uses or level == EXACT:  # an operator may take the type that it has
        return None
    if isinstance(formal, ty.ListType) and node.kind == "prim::ListConstruct":
        fits = all(ty.is_subtype(item.type, formal.elem) for item in node.inputs)
    elif isinstance(formal, ty.DictType) and node.kind == "prim::DictConstruct":
        fits = all(
            ty.is_subtype(item.type, formal.value if index % 2 else formal.key)
            for index, item in enumerate(node.inputs)
        )
    else:
        return None
    if not fits or ty.has_variables(formal):
        return None

    def make(c: Compiler, range: SourceRange) -> Value:
        v.type = formal
        return v

    return make


def _to_tuple(c: Compiler, arg: Arg, formal: ty.TupleType, level: int) -> Convert | None:
    items = arg.value.unrolled(c, arg.range) or []
    if len(items) != len(formal.elems):
        return None
    parts = _of_items(c, items, formal.elems, arg.range, level)
    if parts is None:
        return None

    def make(c: Compiler, range: SourceRange) -> Value:
        values = [part(c, range) for part in parts]
        return c.emit("prim::TupleConstruct", values, formal, range=range)

    return make


_FROM_TENSOR = {
    ty.INT: "aten::IntImplicit",
    ty.FLOAT: "aten::FloatImplicit",
    ty.COMPLEX: "aten::ComplexImplicit",
    ty.NUMBER: "aten::ScalarImplicit",
}


# flag or (x > 1): the one that decides, which is a bool where one is declared.
_DECIDING = ty.union_of([ty.BOOL, ty.TENSOR])
_FROM_NUMBER = {ty.INT: "aten::Int", ty.FLOAT: "aten::Float", ty.COMPLEX: "aten::Complex"}


def _convert_value(arg: Arg, actual: ty.Type, formal: ty.Type, level: int) -> Convert | None:
    kind: str | None = None
    if formal is ty.BOOL and actual == _DECIDING:
        return lambda c, range: c.truth(arg.value, range)
    if actual is ty.TENSOR and formal in _FROM_TENSOR:
        kind = _FROM_TENSOR[formal]
    elif actual is ty.NUMBER and formal in _FROM_NUMBER:
        kind = _FROM_NUMBER[formal]
    elif actual is ty.STR and formal is ty.DEVICE:
        kind = "aten::device"
    elif (
        (actual is ty.INT and formal in (ty.FLOAT, ty.COMPLEX))
        or (actual is ty.FLOAT and formal is ty.COMPLEX)
        or (actual is ty.BOOL and formal in (ty.INT, ty.FLOAT) and level >= WIDENED)
    ):
        kind = _FROM_NUMBER[formal]
    if kind is None:
        return None
    name = kind

    def make(c: Compiler, range: SourceRange) -> Value:
        known = arg.value.static(c)
        if known is not UNKNOWN and formal in (ty.INT, ty.FLOAT, ty.COMPLEX):
            python = {ty.INT: int, ty.FLOAT: float, ty.COMPLEX: complex}[formal]
            return c.constant(python(known))
        return c.call_operator(name, Call(range, [arg])).value(c, range)

    return make


def _settles(actual: ty.Type, wanted: ty.Type) -> bool:
    """Whether a value that is returned or assigned becomes one of the declared type. It stays what
    it is, but for an int where a float is declared, a number of any kind (x.item()), and a bool or
    tensor where a bool is declared."""
    target = ty.non_none(wanted)
    if isinstance(actual, ty.TupleType) and isinstance(target, ty.TupleType):
        pairs = list(zip(actual.elems, target.elems))
        return len(actual.elems) == len(target.elems) and all(
            ty.is_subtype(a, w) or _settles(a, w) for a, w in pairs
        )
    if actual is ty.NUMBER:
        return target in _FROM_NUMBER
    if actual == _DECIDING:
        return target is ty.BOOL
    return actual is ty.INT and target is ty.FLOAT


@verb("convert")
def convert(
    c: Compiler,
    value: Sugared,
    wanted: ty.Type,
    range: SourceRange,
    what: str,
    strict: bool = False,
) -> Value:
    """The value as one of the wanted type, with the conversions of a call unless `strict`."""
    arg = Arg(value, range)
    actual = c.type_of(value, range)
    for level in LEVELS[:1] if strict and not _settles(actual, wanted) else LEVELS:
        convert = converter(c, arg, Parameter(what, wanted), level, {})
        if convert is not None:
            return convert(c, range)
    hint = None
    if isinstance(actual, ty.OptionalType) and ty.is_subtype(actual.elem, wanted):
        hint = "assert x is not None before it, or a test of x is not None around it"
    fail(
        f"{what}: expected a value of type {wanted.annotation}, got {actual.annotation}",
        range,
        hint,
    )


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
    c: Compiler, default: Any, wanted: ty.Type, range: SourceRange, length: int | None = None
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
