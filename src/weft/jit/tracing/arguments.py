"""Python objects as values of a graph, by the type that an operator wants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Tensor
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.schema_parts import Arg
from weft.jit.tracing.numbers import TracedFloat, TracedInt, plain

if TYPE_CHECKING:
    from weft.jit.tracing.recorder import Recorder

_DIRECT = (ty.STR, ty.LAYOUT, ty.MEMORY_FORMAT, ty.GENERATOR)
_IMPLICIT: dict[ty.Type, str] = {ty.INT: "aten::IntImplicit", ty.FLOAT: "aten::FloatImplicit",
             ty.NUMBER: "aten::ScalarImplicit"}  # fmt: skip


def argument(recorder: Recorder, arg: Arg, given: Any) -> Value:
    """The value of one argument of an operator; Ellipsis stands for the default."""
    if given is Ellipsis:
        given = arg.default
    return convert(recorder, arg.type, given, arg.length)


def convert(recorder: Recorder, type: ty.Type, given: Any, length: int | None = None) -> Value:
    """The value of an object that the type accepts. `length` is the 2 of `int[2]`."""
    if given is None:
        return recorder.constant(None)
    if isinstance(type, ty.OptionalType):
        type = type.elem
    if type is ty.TENSOR:
        return recorder.tensor(given)
    if type in (ty.INT, ty.FLOAT, ty.NUMBER):
        return _number(recorder, type, given)
    if type is ty.BOOL:
        return recorder.constant(bool(given))
    if isinstance(type, ty.ListType):
        return _list(recorder, type, given, length)
    if isinstance(type, ty.TupleType):
        items = [convert(recorder, t, item) for t, item in zip(type.elems, given)]
        return recorder.emit("prim::TupleConstruct", items, [type]).output
    if isinstance(type, ty.DictType):
        return _dict(recorder, type, given)
    if type is ty.DTYPE:
        return recorder.constant(_dtype(recorder, given))
    if type is ty.DEVICE:
        return recorder.device(given)
    if type is ty.MEMORY_FORMAT and isinstance(given, int):
        return recorder.constant(_C._memory_formats[given])
    if type in _DIRECT:
        return recorder.constant(given)
    if isinstance(type, ty.ClassType):
        return recorder.object(given)
    raise RuntimeError(
        f"trace: expected arguments of types that can be recorded, got {type.annotation}"
    )


def _number(recorder: Recorder, type: ty.Type, given: Any) -> Value:
    if isinstance(given, Tensor):
        value = recorder.tensor(given)
        return recorder.emit(_IMPLICIT[type], [value], [type]).output
    if not isinstance(given, (bool, int, float, complex)):
        given = given.item() if hasattr(given, "item") else given.__index__()
    value = recorder.number(given)
    if type is ty.FLOAT and value.type is not ty.FLOAT:
        if isinstance(given, (TracedInt, TracedFloat)):
            return recorder.emit("aten::Float.int", [value], [ty.FLOAT]).output
        return recorder.constant(float(given))
    if type is ty.INT and not isinstance(given, (TracedInt, TracedFloat)):
        return recorder.constant(int(given))
    return value


def _list(recorder: Recorder, type: ty.ListType, given: Any, length: int | None) -> Value:
    items = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(items) == 1 and length is not None:
        items *= length
    values = [convert(recorder, type.elem, item) for item in items]
    return recorder.emit("prim::ListConstruct", values, [type]).output


def _dict(recorder: Recorder, type: ty.DictType, given: Any) -> Value:
    values = []
    for key, item in given.items():
        values += [convert(recorder, type.key, key), convert(recorder, type.value, item)]
    return recorder.emit("prim::DictConstruct", values, [type]).output


def _dtype(recorder: Recorder, given: Any) -> Any:
    """Python's bool, int, float and complex are dtypes, too."""
    if isinstance(given, _C.dtype):
        return given
    with recorder.paused():
        return _C.empty(0, dtype=given).dtype


__all__ = ["argument", "convert", "plain"]
