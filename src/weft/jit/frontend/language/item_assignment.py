"""What changes items: x[i] = value, x[i] += value, del x[i]."""

from __future__ import annotations

import ast
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.operators import augmented
from weft.jit.frontend.language.subscripts import (
    Indexed,
    by_dimensions,
    index_list,
    index_of,
    indexed,
)
from weft.jit.frontend.library import prelude
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import Call, Simple, Slice, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


@verb(("assign", ast.Subscript))
def assign_item(c: Compiler, target: ast.Subscript, held: Sugared, range: SourceRange) -> None:
    """target[index] = held."""
    owner, index = c.expr(target.value), index_of(c, target.slice)
    c.set_item(owner, index, held, c.range(target))


@verb("set_item")
def set_item(
    c: Compiler, owner: Sugared, index: Sugared, held: Sugared, range: SourceRange
) -> None:
    """owner[index] = held."""
    v = owner.value(c, range)
    if v.type is ty.TENSOR:
        _store_tensor(c, v, index, held, range)
    elif isinstance(v.type, ty.DictType):
        key, item = assigned_item(c, v, index, held, range)
        c.apply("aten::_set_item", range, Simple(v), key, item)
    elif isinstance(v.type, ty.ListType):
        if isinstance(index, Slice):
            _store_slice(c, v, index, held, range)
            return
        at = Simple(c.convert(index, ty.INT, range, "index"))
        _, item = assigned_item(c, v, index, held, range)
        c.apply("aten::_set_item", range, Simple(v), at, item)
    elif isinstance(v.type, ty.ClassType) and Simple(v).has_attr(c, "__setitem__"):
        Simple(v).attr(c, range, "__setitem__").call(c, Call.of(range, index, held))
    else:
        hint = "a new tuple: tuples do not change" if isinstance(v.type, ty.TupleType) else None
        fail(
            f"[]: expected a list, dict or tensor to assign to, got {v.type.annotation}",
            range,
            hint,
        )


def _bounds(c: Compiler, index: Slice) -> list[Sugared]:
    """Start, stop and step of a slice of a list."""
    lower, upper, step = index.parts
    one = Simple(c.constant(1))
    is_none = step is None or (isinstance(step, Simple) and step.v.type is ty.NONE)
    return [lower or c.none(), upper or c.none(), one if is_none or step is None else step]


def _store_slice(c: Compiler, v: Value, index: Slice, held: Sugared, range: SourceRange) -> None:
    """xs[a:b] = items and xs[a:b:c] = items."""
    items = c.as_list(held, range, v.type)
    made = items.value(c, range)
    if isinstance(v.type, ty.ListType) and made in c.untyped and not made.has_uses:
        made.type = v.type
    items = Simple(c.convert(items, v.type, range, "slice"))
    start, stop, step = _bounds(c, index)
    if step.static(c) == 1:
        c.call(prelude.replace_slice, range, Simple(v), start, stop, items)
    else:
        c.call(prelude.replace_steps, range, Simple(v), start, stop, step, items)


def _store_tensor(c: Compiler, v: Value, index: Sugared, held: Sugared, range: SourceRange) -> None:
    found = indexed(c, v, index, range)
    actual = c.type_of(held, range)
    if not found.is_view:
        tensor = held
        if actual is not ty.TENSOR:
            tensor = c.apply("prim::NumToTensor", range, held)
            tensor = c.apply("aten::type_as", range, tensor, Simple(found.view))
        _put(c, found, tensor, range)
    elif actual is ty.TENSOR:
        c.apply("aten::copy_", range, Simple(found.view), held)
    else:
        c.apply("aten::fill_", range, Simple(found.view), held)


def _put(c: Compiler, found: Indexed, tensor: Sugared, range: SourceRange) -> None:
    """found = tensor."""
    view, indices = Simple(found.view), index_list(c, found, range)

    by_dimensions(
        c,
        found,
        range,
        lambda: c.apply(
            "aten::index_put_", range, view, indices, tensor, Simple(c.constant(False))
        ),
        lambda selected: c.apply("aten::copy_", range, selected, tensor),
        lambda: c.call(prelude.scatter, range, view, indices, tensor),
    )


# What x[i] of a tensor comes from where it may be a copy.
_GATHERS = frozenset(("aten::index", "prim::If", "prim::CallFunction"))


@verb(("augment", ast.Subscript))
def augment_item(c: Compiler, node: ast.AugAssign, range: SourceRange) -> None:
    """target[index] <op>= value."""
    assert isinstance(node.target, ast.Subscript)
    owner, index = c.expr(node.target.value), index_of(c, node.target.slice)
    before = c.get_item(owner, index, range)
    made, in_place = augmented(c, type(node.op), before, c.expr(node.value), range)
    made_by = before.v.node if isinstance(before, Simple) else None
    is_gathered = made_by is not None and made_by.name in _GATHERS
    held_by = owner.v.type if isinstance(owner, Simple) else None
    is_copy = isinstance(held_by, ty.ListType) and isinstance(index, Slice)
    if not in_place or is_gathered or is_copy or isinstance(held_by, ty.ClassType):
        c.set_item(owner, index, made, range)


@verb(("delete", ast.Subscript))
def delete_item(c: Compiler, target: ast.Subscript) -> None:
    """del target[index]."""
    range = c.range(target)
    owner = c.expr(target.value).value(c, c.range(target.value))
    index = index_of(c, target.slice)
    held = Simple(owner)
    if isinstance(owner.type, ty.ClassType) and held.has_attr(c, "__delitem__"):
        held.attr(c, range, "__delitem__").call(c, Call.of(range, index))
        return
    if isinstance(index, Slice) and isinstance(owner.type, ty.ListType):
        c.call(prelude.delete_slice, range, held, *_bounds(c, index))
        return
    if isinstance(index, Slice) or not isinstance(owner.type, ty.ListType | ty.DictType):
        fail(f"del: expected items of a list or dict, got {owner.type.annotation}[...]", range)
    wanted = owner.type.key if isinstance(owner.type, ty.DictType) else ty.INT
    at = Simple(c.convert(index, wanted, range, "index"))
    c.apply("aten::Delete", range, held, at)


def adopt(c: Compiler, v: Value, item: Sugared, range: SourceRange) -> None:
    """Gives an empty list literal, unused so far, the type of the first item put into it."""
    node = v.node
    if node is None or node.kind != "prim::ListConstruct" or node.inputs or v.has_uses:
        return
    if v in c.untyped:
        v.type = ty.ListType(item.value(c, range).type)


def assigned_item(
    c: Compiler, v: Value, key: Sugared, held: Sugared, range: SourceRange
) -> tuple[Sugared, Any]:
    """Key and item of d[key] = item, converted to the types of the container."""
    if isinstance(v.type, ty.DictType):
        node = v.node
        is_fresh = node is not None and node.kind == "prim::DictConstruct" and not node.inputs
        if is_fresh and not v.has_uses and v in c.untyped:
            v.type = ty.DictType(key.value(c, range).type, held.value(c, range).type)
        assert isinstance(v.type, ty.DictType)
        made = c.convert(key, v.type.key, range, "key")
        return Simple(made), Simple(c.convert(held, v.type.value, range, "item"))
    assert isinstance(v.type, ty.ListType)
    return key, Simple(c.convert(held, v.type.elem, range, "item"))
