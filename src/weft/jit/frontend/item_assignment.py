"""What changes items: x[i] = value, x[i] += value, del x[i]."""

from __future__ import annotations

import ast

from weft.jit.frontend import written
from weft.jit.frontend.calls import apply_operator
from weft.jit.frontend.conversions import coerce, type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.expressions import expr, value
from weft.jit.frontend.methods import assigned_item
from weft.jit.frontend.subscripts import (
    Indexed,
    Slice,
    by_dimensions,
    get_item,
    index_list,
    index_of,
    indexed,
)
from weft.jit.frontend.sugared import Call, Simple, Sugared
from weft.jit.frontend.written import call_written
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


def set_item(e: Emitter, target: ast.Subscript, held: Sugared, range: SourceRange) -> None:
    """target[index] = held."""
    owner, index = expr(e, target.value), index_of(e, target.slice)
    store(e, owner, index, held, e.range(target))


def store(e: Emitter, owner: Sugared, index: Sugared, held: Sugared, range: SourceRange) -> None:
    """owner[index] = held."""
    v = owner.value(e, range)
    if v.type is ty.TENSOR:
        _store_tensor(e, v, index, held, range)
    elif isinstance(v.type, ty.DictType):
        key, item = assigned_item(e, v, index, held, range)
        apply_operator(e, "aten::_set_item", range, Simple(v), key, item)
    elif isinstance(v.type, ty.ListType):
        if isinstance(index, Slice):
            _store_slice(e, v, index, held, range)
            return
        at = Simple(coerce(e, index, ty.INT, range, "index"))
        _, item = assigned_item(e, v, index, held, range)
        apply_operator(e, "aten::_set_item", range, Simple(v), at, item)
    elif isinstance(v.type, ty.ClassType) and Simple(v).has_attr(e, "__setitem__"):
        Simple(v).attr(e, range, "__setitem__").call(e, Call.of(range, index, held))
    else:
        hint = "a new tuple: tuples do not change" if isinstance(v.type, ty.TupleType) else None
        fail(
            f"[]: expected a list, dict or tensor to assign to, got {v.type.annotation}",
            range,
            hint,
        )


def store_keywords(e: Emitter, owner: Sugared, call: Call) -> None:
    """owner["a"] = x for every keyword a=x of a call."""
    for name, arg in call.kwargs.items():
        store(e, owner, Simple(e.constant(name)), arg.value, arg.range)


def _bounds(e: Emitter, index: Slice) -> list[Sugared]:
    """Start, stop and step of a slice of a list."""
    lower, upper, step = index.parts
    one = Simple(e.constant(1))
    is_none = step is None or (isinstance(step, Simple) and step.v.type is ty.NONE)
    return [lower or e.none(), upper or e.none(), one if is_none or step is None else step]


def _store_slice(e: Emitter, v: Value, index: Slice, held: Sugared, range: SourceRange) -> None:
    """xs[a:b] = items and xs[a:b:c] = items."""
    from weft.jit.frontend.builtins import as_list

    items = as_list(e, held, range, v.type)
    made = items.value(e, range)
    if isinstance(v.type, ty.ListType) and made in e.untyped and not made.has_uses:
        made.type = v.type
    items = Simple(coerce(e, items, v.type, range, "slice"))
    start, stop, step = _bounds(e, index)
    if step.static(e) == 1:
        call_written(e, written.replace_slice, range, Simple(v), start, stop, items)
    else:
        call_written(e, written.replace_steps, range, Simple(v), start, stop, step, items)


def _store_tensor(e: Emitter, v: Value, index: Sugared, held: Sugared, range: SourceRange) -> None:
    found = indexed(e, v, index, range)
    actual = type_of(e, held, range)
    if not found.is_view:
        tensor = held
        if actual is not ty.TENSOR:
            tensor = apply_operator(e, "prim::NumToTensor", range, held)
            tensor = apply_operator(e, "aten::type_as", range, tensor, Simple(found.view))
        _put(e, found, tensor, range)
    elif actual is ty.TENSOR:
        apply_operator(e, "aten::copy_", range, Simple(found.view), held)
    else:
        apply_operator(e, "aten::fill_", range, Simple(found.view), held)


def _put(e: Emitter, found: Indexed, tensor: Sugared, range: SourceRange) -> None:
    """found = tensor."""
    view, indices = Simple(found.view), index_list(e, found, range)

    by_dimensions(
        e,
        found,
        range,
        lambda: apply_operator(
            e, "aten::index_put_", range, view, indices, tensor, Simple(e.constant(False))
        ),
        lambda selected: apply_operator(e, "aten::copy_", range, selected, tensor),
        lambda: call_written(e, written.scatter, range, view, indices, tensor),
    )


# What x[i] of a tensor comes from where it may be a copy.
_GATHERS = frozenset(("aten::index", "prim::If", "prim::CallFunction"))


def augment_item(e: Emitter, node: ast.AugAssign, range: SourceRange) -> None:
    """target[index] <op>= value."""
    from weft.jit.frontend.operators import augmented

    assert isinstance(node.target, ast.Subscript)
    owner, index = expr(e, node.target.value), index_of(e, node.target.slice)
    before = get_item(e, owner, index, range)
    made, in_place = augmented(e, type(node.op), before, expr(e, node.value), range)
    made_by = before.v.node if isinstance(before, Simple) else None
    is_gathered = made_by is not None and made_by.name in _GATHERS
    held_by = owner.v.type if isinstance(owner, Simple) else None
    is_copy = isinstance(held_by, ty.ListType) and isinstance(index, Slice)
    if not in_place or is_gathered or is_copy or isinstance(held_by, ty.ClassType):
        store(e, owner, index, made, range)


def delete_item(e: Emitter, target: ast.Subscript) -> None:
    """del target[index]."""
    range = e.range(target)
    owner = value(e, target.value)
    index = index_of(e, target.slice)
    held = Simple(owner)
    if isinstance(owner.type, ty.ClassType) and held.has_attr(e, "__delitem__"):
        held.attr(e, range, "__delitem__").call(e, Call.of(range, index))
        return
    if isinstance(index, Slice) and isinstance(owner.type, ty.ListType):
        call_written(e, written.delete_slice, range, held, *_bounds(e, index))
        return
    if isinstance(index, Slice) or not isinstance(owner.type, ty.ListType | ty.DictType):
        fail(f"del: expected items of a list or dict, got {owner.type.annotation}[...]", range)
    wanted = owner.type.key if isinstance(owner.type, ty.DictType) else ty.INT
    at = Simple(coerce(e, index, wanted, range, "index"))
    apply_operator(e, "aten::Delete", range, held, at)
