"""Methods whose call is more than one operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import _C
from weft._functions.elements import nonzero
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.assignment import adopt
from weft.jit.frontend.language.comparison import holds_comparable
from weft.jit.frontend.language.strings import format_call
from weft.jit.frontend.library import prelude
from weft.jit.frontend.library.containers import sort_list, store_keywords
from weft.jit.frontend.registry import method
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import Arg, Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value

_BOOLS = ty.ListType(ty.BOOL)

# Tensors --------------------------------------------------------------------------------------


def _to_dtype(dtype: _C.dtype) -> Callable[..., Sugared | None]:
    """x.double() is x.to(float64)."""

    def rule(c: Compiler, v: Value, call: Call) -> Sugared | None:
        if call.args or call.kwargs:
            return None
        return c.apply("aten::to", call.range, Simple(v), Simple(c.constant(dtype)))

    return rule


for _name, _dtype in {
    "float": _C.float32,
    "double": _C.float64,
    "half": _C.float16,
    "bfloat16": _C.bfloat16,
    "int": _C.int32,
    "long": _C.int64,
    "short": _C.int16,
    "char": _C.int8,
    "byte": _C.uint8,
    "bool": _C.bool,
    "cfloat": _C.complex64,
    "cdouble": _C.complex128,
    "chalf": _C.complex32,
}.items():
    method((ty.TENSOR, _name))(_to_dtype(_dtype))


@method((ty.TENSOR, "to"))
def _to(c: Compiler, v: Value, call: Call) -> Sugared | None:
    """x.to(device), x.to(device, dtype): by the names of the arguments."""
    if not call.args or ty.non_none(c.type_of(call.args[0].value, call.args[0].range)) not in (
        ty.DEVICE,
        ty.STR,
    ):
        return None
    names = ("device", "dtype", "non_blocking", "copy")
    named = {**dict(zip(names, call.args)), **call.kwargs}
    device = named["device"]
    wanted = ty.optional_of(ty.DEVICE)
    made = Simple(c.convert(device.value, wanted, call.range, "device"))
    named["device"] = Arg(made, device.range)
    return c.call_operator("aten::to", Call.of(call.range, Simple(v))._replace(kwargs=named))


@method((ty.TENSOR, "type"))
def _type(c: Compiler, v: Value, call: Call) -> Sugared:
    """x.type(dtype); the names of types as text are Python's."""
    call.expect_no_keywords("type", "non_blocking")
    call.expect_count("type", 1, 1)
    dtype = c.convert(call.args[0].value, ty.DTYPE, call.range, "type")
    return c.apply("aten::to", call.range, Simple(v), Simple(dtype))


@method((ty.TENSOR, "norm"))
def _norm(c: Compiler, v: Value, call: Call) -> Sugared | None:
    """x.norm(dim=0), whose p is 2."""
    if "dim" not in call.kwargs or call.args:
        return None
    named = {"p": Arg(Simple(c.constant(2)), call.range), **call.kwargs}
    return c.call_operator("aten::norm", call._replace(kwargs=named).behind(Simple(v)))


@method((ty.TENSOR, "nonzero"))
def _nonzero(c: Compiler, v: Value, call: Call) -> Sugared | None:
    """x.nonzero(as_tuple=True) is the function's."""
    if not call.args and not call.kwargs:
        return None
    return c.sugar(nonzero, call.range, "nonzero").call(c, call.behind(Simple(v)))


@method((ty.TENSOR, "new_tensor"))
def _new_tensor(c: Compiler, v: Value, call: Call) -> Sugared:
    own = c.apply("prim::dtype", call.range, Simple(v))
    named = {"dtype": Arg(own, call.range), **call.kwargs}
    return c.call_operator("aten::tensor", call._replace(kwargs=named))


_DEPTHS = {ty.INT: 0, ty.FLOAT: 1, ty.COMPLEX: 2, ty.BOOL: 3}


@method((ty.TENSOR, "tolist"))
def _tolist(c: Compiler, v: Value, call: Call) -> Sugared:
    """x.tolist() of a declared type: the number of dimensions and the kind of number are in it."""
    range, hint = call.range, call.hint
    depth, inner = 0, hint
    while isinstance(inner, ty.ListType):
        depth, inner = depth + 1, inner.elem
    if hint is None or inner not in _DEPTHS:
        fail(
            "tolist: expected a declared type, since it depends on the tensor, got none",
            range,
            "xs: List[float] = x.tolist()",
        )
    parts = [c.constant(depth), c.constant(_DEPTHS[inner])]
    made = c.apply("prim::tolist", range, *map(Simple, (v, *parts))).value(c, range)
    return Simple(c.cast(made, hint))


# Texts ----------------------------------------------------------------------------------------


@method((ty.STR, "join"))
def _join(c: Compiler, v: Value, call: Call) -> Sugared | None:
    if not call.is_of_one:
        return None
    given = call.args[0].value
    if isinstance(given, Simple) and not given.v.has_uses:
        adopt(c, given.v, Simple(v), call.range)  # "".join([])
    items = c.as_list(given, call.range)
    joined = call._replace(args=[Arg(items, call.args[0].range)])
    return c.call_operator("aten::join", joined.behind(Simple(v)))


@method((ty.STR, "format"))
def _format(c: Compiler, v: Value, call: Call) -> Sugared:
    return format_call(c, Simple(v), call)


def _any_affix(name: str) -> Callable[..., Sugared | None]:
    """s.startswith(("a", "b"))."""

    def rule(c: Compiler, v: Value, call: Call) -> Sugared | None:
        range = call.range
        if not call.is_of_one or not isinstance(c.type_of(call.args[0].value, range), ty.TupleType):
            return None
        tests = [
            c.apply(f"aten::{name}", range, Simple(v), item).value(c, range)
            for item in call.args[0].value.unrolled(c, range) or []
        ]
        return c.apply("aten::any", range, Simple(c.emit("prim::ListConstruct", tests, _BOOLS)))

    return rule


for _name in ("startswith", "endswith"):
    method((ty.STR, _name))(_any_affix(_name))


# Lists and dicts ------------------------------------------------------------------------------


def _grow(name: str) -> Callable[..., Sugared | None]:
    """append and insert, converting to the type of the items; a list that was written [] and has
    not been used yet takes the type of its first item."""

    def rule(c: Compiler, v: Value, call: Call) -> Sugared | None:
        if not call.args or call.kwargs:
            return None
        last = call.args[-1]
        adopt(c, v, last.value, call.range)
        assert isinstance(v.type, ty.ListType)
        item = c.convert(last.value, v.type.elem, last.range, name)
        given = call._replace(args=[*call.args[:-1], Arg(Simple(item), last.range)])
        made = c.call_operator(f"aten::{name}", given.behind(Simple(v)))
        return c.none() if name == "append" else made

    return rule


for _name in ("append", "insert"):
    method((ty.ListType, _name))(_grow(_name))


@method((ty.ListType, "extend"))
def _extend(c: Compiler, v: Value, call: Call) -> Sugared | None:
    if not call.args or call.kwargs:
        return None
    last = call.args[-1]
    items = c.as_list(last.value, call.range, v.type)
    given = call._replace(args=[Arg(items, last.range)])
    return c.call_operator("aten::extend", given.behind(Simple(v)))


def _by_item(function: Callable[..., Any]) -> Callable[..., Sugared | None]:
    """index, count and remove of objects whose class says what is equal."""

    def rule(c: Compiler, v: Value, call: Call) -> Sugared | None:
        if not call.is_of_one or not holds_comparable(c, Simple(v)):
            return None
        return c.call(function, call.range, Simple(v), call.args[0].value)

    return rule


for _function in (prelude.index, prelude.count, prelude.remove):
    method((ty.ListType, _function.__name__))(_by_item(_function))


@method((ty.ListType, "sort"))
def _sort(c: Compiler, v: Value, call: Call) -> Sugared:
    sort_list(c, v, call)
    return c.none()


@method((ty.DictType, "update"))
def _update(c: Compiler, v: Value, call: Call) -> Sugared | None:
    """d.update(a=1): an assignment each."""
    if not call.kwargs:
        return None
    if call.args:
        c.call_operator("aten::update", Call(call.range, call.args).behind(Simple(v)))
    store_keywords(c, Simple(v), call)
    return c.none()
