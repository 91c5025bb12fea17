"""Methods whose call is more than one operator."""

from __future__ import annotations

from typing import Any

import weft
from weft.jit.frontend import written
from weft.jit.frontend.calls import apply_operator, call_operator
from weft.jit.frontend.conversions import coerce, type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.sugared import Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.frontend.written import call_written, holds_comparable
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

_BOOLS = ty.ListType(ty.BOOL)
_BY_ITEM = {"index": written.index, "count": written.count, "remove": written.remove}

# x.double() is x.to(float64).
CONVERSIONS = {
    "float": weft.float32,
    "double": weft.float64,
    "half": weft.float16,
    "bfloat16": weft.bfloat16,
    "int": weft.int32,
    "long": weft.int64,
    "short": weft.int16,
    "char": weft.int8,
    "byte": weft.uint8,
    "bool": weft.bool,
    "cfloat": weft.complex64,
    "cdouble": weft.complex128,
}


def special_method(e: Emitter, v: Value, name: str, call: Call) -> Sugared | None:
    """The call of a method that needs care; None for all others."""
    if isinstance(v.type, ty.ListType) and name in ("append", "insert", "extend"):
        return _grow(e, v, name, call)
    if v.type is ty.TENSOR and name in CONVERSIONS and not call.args and not call.kwargs:
        dtype = Simple(e.constant(CONVERSIONS[name]))
        return apply_operator(e, "aten::to", call.range, Simple(v), dtype)
    if v.type is ty.TENSOR and name == "to" and call.args:
        return _to(e, v, call)
    if v.type is ty.TENSOR and name == "norm" and "dim" in call.kwargs and not call.args:
        named = {"p": Arg(Simple(e.constant(2)), call.range), **call.kwargs}
        return call_operator(
            e, "aten::norm", Call(call.range, (Arg(Simple(v), call.range),), named)
        )
    if v.type is ty.TENSOR and name == "nonzero" and (call.args or call.kwargs):  # as_tuple
        from weft.jit.frontend.generic import GenericFunction

        return GenericFunction(weft.nonzero).call(e, call.behind(Simple(v)))
    if v.type is ty.TENSOR and name == "type":
        return _to_type(e, v, call)
    if v.type is ty.TENSOR and name == "new_tensor":
        own = apply_operator(e, "prim::dtype", call.range, Simple(v))
        named = {"dtype": Arg(own, call.range), **call.kwargs}
        return call_operator(e, "aten::tensor", call._replace(kwargs=named))
    if v.type is ty.TENSOR and name == "tolist":
        return _tolist(e, v, call.range, call.hint)
    if v.type is ty.STR and name == "join" and call.is_of_one:
        from weft.jit.frontend.builtins import as_list

        given_list = call.args[0].value
        if isinstance(given_list, Simple) and not given_list.v.has_uses:
            adopt(e, given_list.v, Simple(v), call.range)  # "".join([])
        items = as_list(e, given_list, call.range)
        joined = call._replace(args=[Arg(items, call.args[0].range)])
        return call_operator(e, "aten::join", joined.behind(Simple(v)))
    if v.type is ty.STR and name == "format":
        from weft.jit.frontend.strings import format_call

        return format_call(e, Simple(v), call)
    if v.type is ty.STR and name in ("startswith", "endswith") and call.is_of_one:
        return _any_affix(e, v, name, call.range, call.args[0])
    if isinstance(v.type, ty.DictType) and name == "update":
        return _update(e, v, call)
    by_item = _BY_ITEM.get(name) if isinstance(v.type, ty.ListType) else None
    if by_item is not None and call.is_of_one and holds_comparable(Simple(v)):
        return call_written(e, by_item, call.range, Simple(v), call.args[0].value)
    if isinstance(v.type, ty.ListType) and name == "sort":
        from weft.jit.frontend.sorting import sort_list

        sort_list(e, v, call)
        return e.none()
    return None


def _grow(e: Emitter, v: Value, name: str, call: Call) -> Sugared | None:
    """append, insert and extend, converting to the type of the items; a list that was written []
    and has not been used yet takes the type of its first item."""
    assert isinstance(v.type, ty.ListType)
    if not call.args or call.kwargs:
        return None
    last = call.args[-1]
    if name == "extend":
        from weft.jit.frontend.builtins import as_list

        items = as_list(e, last.value, call.range, v.type)
        given = call._replace(args=[Arg(items, last.range)])
        return call_operator(e, "aten::extend", given.behind(Simple(v)))
    adopt(e, v, last.value, call.range)
    item = coerce(e, last.value, v.type.elem, last.range, name)
    given = call._replace(args=[*call.args[:-1], Arg(Simple(item), last.range)])
    made = call_operator(e, f"aten::{name}", given.behind(Simple(v)))
    return e.none() if name == "append" else made


def _any_affix(e: Emitter, v: Value, name: str, range: SourceRange, arg: Arg) -> Sugared | None:
    """s.startswith(("a", "b"))."""
    if not isinstance(arg.value, TupleLiteral) and not isinstance(
        type_of(e, arg.value, range), ty.TupleType
    ):
        return None
    tests = [
        call_operator(
            e, f"aten::{name}", Call(range, [Arg(Simple(v), range), Arg(item, arg.range)])
        )
        for item in arg.value.unrolled(e, range) or []
    ]
    made = Simple(e.emit("prim::ListConstruct", [t.value(e, range) for t in tests], _BOOLS))
    return apply_operator(e, "aten::any", range, made)


def _update(e: Emitter, v: Value, call: Call) -> Sugared | None:
    """d.update(a=1): an assignment each."""
    if not call.kwargs:
        return None
    from weft.jit.frontend.item_assignment import store_keywords

    if call.args:
        call_operator(e, "aten::update", Call(call.range, call.args).behind(Simple(v)))
    store_keywords(e, Simple(v), call)
    return e.none()


def adopt(e: Emitter, v: Value, item: Sugared, range: SourceRange) -> None:
    """Gives an empty list literal, unused so far, the type of the first item put into it."""
    node = v.node
    if node is None or node.kind != "prim::ListConstruct" or node.inputs or v.has_uses:
        return
    if v in e.untyped:
        v.type = ty.ListType(item.value(e, range).type)


def _to(e: Emitter, v: Value, call: Call) -> Sugared | None:
    """x.to(device), x.to(device, dtype): by the names of the arguments."""
    first = type_of(e, call.args[0].value, call.args[0].range)
    if ty.non_none(first) not in (ty.DEVICE, ty.STR):
        return None
    names = ("device", "dtype", "non_blocking", "copy")
    named = {**dict(zip(names, call.args)), **call.kwargs}
    device = named["device"]
    wanted = ty.optional_of(ty.DEVICE)
    named["device"] = Arg(
        Simple(coerce(e, device.value, wanted, call.range, "device")), device.range
    )
    return call_operator(e, "aten::to", Call.of(call.range, Simple(v))._replace(kwargs=named))


_DEPTHS = {ty.INT: 0, ty.FLOAT: 1, ty.COMPLEX: 2, ty.BOOL: 3}


def _tolist(e: Emitter, v: Value, range: SourceRange, hint: ty.Type | None) -> Sugared:
    """x.tolist() of a declared type: the number of dimensions and the kind of number are in it."""
    depth, inner = 0, hint
    while isinstance(inner, ty.ListType):
        depth, inner = depth + 1, inner.elem
    if hint is None or inner not in _DEPTHS:
        fail(
            "tolist: expected a declared type, since it depends on the tensor, got none",
            range,
            "xs: List[float] = x.tolist()",
        )
    parts = [e.constant(depth), e.constant(_DEPTHS[inner])]
    made = apply_operator(e, "prim::tolist", range, *map(Simple, (v, *parts))).value(e, range)
    return Simple(e.cast(made, hint))


def assigned_item(
    e: Emitter, v: Value, key: Sugared, held: Sugared, range: SourceRange
) -> tuple[Sugared, Any]:
    """Key and item of d[key] = item, converted to the types of the container."""
    if isinstance(v.type, ty.DictType):
        node = v.node
        is_fresh = node is not None and node.kind == "prim::DictConstruct" and not node.inputs
        if is_fresh and not v.has_uses and v in e.untyped:
            v.type = ty.DictType(key.value(e, range).type, held.value(e, range).type)
        assert isinstance(v.type, ty.DictType)
        made = coerce(e, key, v.type.key, range, "key")
        return Simple(made), Simple(coerce(e, held, v.type.value, range, "item"))
    assert isinstance(v.type, ty.ListType)
    return key, Simple(coerce(e, held, v.type.elem, range, "item"))


def _to_type(e: Emitter, v: Value, call: Call) -> Sugared:
    """x.type(dtype); the names of types as text are Python's."""
    call.expect_no_keywords("type", "non_blocking")
    call.expect_count("type", 1, 1)
    dtype = coerce(e, call.args[0].value, ty.DTYPE, call.range, "type")
    return apply_operator(e, "aten::to", call.range, Simple(v), Simple(dtype))
