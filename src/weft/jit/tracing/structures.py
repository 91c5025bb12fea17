"""Tuples, lists and dicts of tensors: their types, their values, and their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._C import Tensor
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.tracing.numbers import TracedFloat, TracedInt, plain

if TYPE_CHECKING:
    from weft.jit.tracing.recorder import Recorder


_KEYS = {str: ty.STR, int: ty.INT, float: ty.FLOAT}


def type_of_input(given: Any) -> ty.Type:
    """The type of an example input. RuntimeError for what is no tensor or container of tensors."""
    if isinstance(given, Tensor):
        return ty.TENSOR
    if isinstance(given, tuple):
        return ty.TupleType(tuple(map(type_of_input, given)))
    if isinstance(given, list) and given:
        return ty.ListType(_common([type_of_input(item) for item in given]))
    if isinstance(given, dict) and len(kinds := {type(key) for key in given}) == 1:
        key = _KEYS.get(kinds.pop())
        if key is not None:
            return ty.DictType(key, _common([type_of_input(item) for item in given.values()]))
    raise RuntimeError(
        "trace: expected inputs that are tensors, or lists, tuples and dicts (with names or "
        f"numbers as keys) of tensors, got {_describe(given)}"
    )


def _describe(given: Any) -> str:
    empty = isinstance(given, (list, dict)) and not given
    return f"an empty {type(given).__name__}" if empty else f"a {type(given).__name__}"


def _common(types: list[ty.Type]) -> ty.Type:
    if any(each != types[0] for each in types):
        raise RuntimeError(
            "trace: expected the items of a list or dict to be of one type, got "
            + " and ".join(dict.fromkeys(str(each) for each in types))
        )
    return types[0]


def bind(recorder: Recorder, value: Value, given: Any) -> Any:
    """Gives the tensors in an object their values; returns it with numbers that are traced."""
    wanted = value.type
    if given is None:
        return None
    if isinstance(given, Tensor):
        if isinstance(wanted, ty.OptionalType):
            value = recorder.quiet("prim::unchecked_cast", [value], [ty.TENSOR])
        recorder.bind(given, value)
        return given
    if isinstance(wanted, ty.OptionalType):
        value = recorder.quiet("prim::unchecked_cast", [value], [wanted.elem])
        return bind(recorder, value, given)
    if isinstance(given, (list, tuple)):
        return _bind_items(recorder, value, given)
    if isinstance(given, dict):
        return _bind_dict(recorder, value, given)
    return _bind_number(recorder, value, given)


def _bind_items(recorder: Recorder, value: Value, given: Any) -> Any:
    wanted = value.type
    if isinstance(wanted, ty.TupleType):
        kind, types = "prim::TupleUnpack", list(wanted.elems)
    else:
        assert isinstance(wanted, ty.ListType)
        kind, types = "prim::ListUnpack", [wanted.elem] * len(given)
    node = recorder.emit(kind, [value], types)
    parts = [bind(recorder, output, item) for output, item in zip(node.outputs, given)]
    if hasattr(given, "_fields"):
        return type(given)._make(parts)
    made = parts if isinstance(given, list) else tuple(parts)
    return given if all(a is b for a, b in zip(made, given)) else made


def _bind_dict(recorder: Recorder, value: Value, given: dict[Any, Any]) -> Any:
    assert isinstance(value.type, ty.DictType)
    elem = value.type.value
    made = {}
    for key, item in given.items():
        kind = f"aten::__getitem__.Dict_{value.type.key}"
        part = recorder.emit(kind, [value, recorder.constant(key)], [elem]).output
        made[key] = bind(recorder, part, item)
    return made


def _bind_number(recorder: Recorder, value: Value, given: Any) -> Any:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        if isinstance(given, (bool, complex)):
            recorder.leak("bool" if isinstance(given, bool) else "number")
        return given
    is_int = isinstance(given, int)
    if value.type is ty.NUMBER:
        kind, wanted = ("aten::Int.Scalar", ty.INT) if is_int else ("aten::Float.Scalar", ty.FLOAT)
        value = recorder.quiet(kind, [value], [wanted])
    return (TracedInt if is_int else TracedFloat)(recorder, given, value)


# Outputs --------------------------------------------------------------------------------------


def output(recorder: Recorder, given: Any, strict: bool) -> Value:
    """The value of what the traced function returned."""
    if isinstance(given, Tensor):
        return recorder.tensor(given)
    if isinstance(given, (TracedInt, TracedFloat)):
        return recorder.number(given)
    if isinstance(given, tuple):
        values = [output(recorder, item, strict) for item in given]
        made = ty.TupleType(tuple(value.type for value in values))
        return recorder.emit("prim::TupleConstruct", values, [made]).output
    if isinstance(given, list) and given:
        if strict:
            recorder.locations.warn(
                "A list as output has this many items in every call of the trace; return a tuple, "
                "or give strict=False"
            )
        return _output_list(recorder, given)
    if isinstance(given, dict) and given:
        if strict:
            raise RuntimeError(
                "trace: expected tensors and tuples as output, got a dict, which has these keys in "
                "every call of the trace; return a tuple, or give strict=False"
            )
        return _dict(recorder, given)
    raise RuntimeError(
        "trace: expected tensors, tuples, lists and dicts of tensors as output, got "
        f"{_describe(given)}"
    )


def _output_list(recorder: Recorder, given: list[Any]) -> Value:
    values = [output(recorder, item, False) for item in given]
    made = ty.ListType(_common([value.type for value in values]))
    return recorder.emit("prim::ListConstruct", values, [made]).output


def _dict(recorder: Recorder, given: dict[Any, Any]) -> Value:
    keys, values = [], []
    for key, item in given.items():
        if isinstance(key, Tensor):
            raise RuntimeError("trace: expected names or numbers as keys, got a Tensor")
        keys.append(recorder.number(key) if isinstance(key, int) else recorder.constant(key))
        values.append(output(recorder, item, False))
    key_type, elem = _common([k.type for k in keys]), _common([v.type for v in values])
    pairs = [each for pair in zip(keys, values) for each in pair]
    return recorder.emit("prim::DictConstruct", pairs, [ty.DictType(key_type, elem)]).output


def tensors(given: Any) -> list[Tensor]:
    """All tensors in an object, in order."""
    if isinstance(given, Tensor):
        return [given]
    if isinstance(given, dict):
        given = list(given.values())
    if isinstance(given, (list, tuple)):
        return [tensor for item in given for tensor in tensors(item)]
    return []


def plain_numbers(given: Any) -> Any:
    """The same structure, with numbers that do not know where they come from."""
    return map_tensors(given, lambda tensor: tensor)


def has_numbers(given: Any) -> bool:
    """Whether a number of the trace is in an object."""
    if isinstance(given, dict):
        given = list(given.values())
    if isinstance(given, (list, tuple)):
        return any(map(has_numbers, given))
    return isinstance(given, (TracedInt, TracedFloat))


def map_tensors(given: Any, function: Any) -> Any:
    """The same structure with the function's result for every tensor."""
    if isinstance(given, Tensor):
        return function(given)
    if isinstance(given, dict):
        return {key: map_tensors(item, function) for key, item in given.items()}
    if isinstance(given, (list, tuple)):
        parts = [map_tensors(item, function) for item in given]
        if hasattr(given, "_fields"):
            return type(given)._make(parts)  # type: ignore[union-attr]
        return parts if isinstance(given, list) else tuple(parts)
    return plain(given)
