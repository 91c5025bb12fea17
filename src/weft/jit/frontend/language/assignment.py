"""Assignment: to names, attributes, items, and tuples of them; in place, and declared; del."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.environment import FALLS, Undefined
from weft.jit.frontend.language.iteration import Iterable, rows_of, settled
from weft.jit.frontend.language.operators import augmented
from weft.jit.frontend.language.subscripts import (
    Indexed,
    by_dimensions,
    index_list,
    index_of,
    indexed,
)
from weft.jit.frontend.library import prelude
from weft.jit.frontend.registry import statement, verb
from weft.jit.frontend.source.errors import FrontendError, fail, refuse, refuse_form
from weft.jit.frontend.types.classes import is_property
from weft.jit.frontend.values import Call, Simple, Slice, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


@statement(ast.Assign)
def _assign(c: Compiler, node: ast.Assign) -> frozenset[str]:
    hint = None
    if node.type_comment is not None:
        hint = c.annotations._of_text(node.type_comment, node.value)
    elif len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        hint = c.scope.declared_type(node.targets[0].id)
    elif len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
        hint = _attribute_type(c, node.targets[0])
    takes_apart = all(isinstance(target, ast.Tuple | ast.List) for target in node.targets)
    if takes_apart and isinstance(node.value, ast.GeneratorExp):
        held = c.argument(node.value)
    else:
        held = c.expr(node.value, hint if isinstance(hint, ty.Type) else None)
    if node.type_comment is not None and isinstance(hint, ty.Type):
        return _assign_declared(c, node.targets[0], hint, held, c.range(node.value))
    for target in node.targets:
        c.assign(target, held, c.range(node.value))
    return FALLS


def _attribute_type(c: Compiler, target: ast.Attribute) -> ty.Type | None:
    """The declared type of self.x, so that self.x = [] becomes a list of it."""
    if not isinstance(target.value, ast.Name):
        return None
    owner = c.scope.find(target.value.id)
    type = getattr(owner, "class_type", None) or getattr(owner, "type", None)
    if isinstance(type, ty.ClassType) and target.attr in type.attributes:
        return type.attributes[target.attr].type
    return None


@statement(ast.AnnAssign)
def _declared(c: Compiler, node: ast.AnnAssign) -> frozenset[str]:
    wanted = c.annotations.read(node.annotation)
    if not isinstance(wanted, ty.Type):
        if node.value is not None:
            c.assign(node.target, c.expr(node.value), c.range(node.value))
        return FALLS
    if node.value is None:
        if isinstance(node.target, ast.Name):
            c.scope.declare(node.target.id, wanted)
        return FALLS
    held = c.expr(node.value, wanted)
    if wanted == ty.INT and isinstance(held, Simple) and held.v.type == ty.DTYPE:
        wanted = ty.DTYPE  # PyTorch's programs write int for it
    return _assign_declared(c, node.target, wanted, held, c.range(node.value))


@verb("assign")
def assign(c: Compiler, target: ast.expr, held: Sugared, range: SourceRange) -> None:
    """target = held."""
    if not isinstance(held, Simple):
        held = settled(held)
    if isinstance(target, ast.Name):
        _assign_name(c, target, held, range)
    elif isinstance(target, ast.Tuple | ast.List):
        _assign_tuple(c, target, held, range)
    elif isinstance(target, ast.Attribute):
        c.expr(target.value).set_attr(c, c.range(target), target.attr, held)
    elif isinstance(target, ast.Subscript):
        verb["assign", ast.Subscript](c, target, held, range)
    else:
        refuse(c.code, target)


def _assign_name(c: Compiler, target: ast.Name, held: Sugared, range: SourceRange) -> None:
    c.epoch += 1
    declared = c.scope.declared_type(target.id)
    if declared is not None:
        try:
            made = c.convert(held, declared, range, target.id, strict=True)
            if not isinstance(held, Simple) or made is not held.v:
                held = Simple(made)
        except FrontendError:  # a new value of the same block may have a type of its own
            if c.scope.declared.pop(target.id, None) is None:
                raise
    if isinstance(held, Simple) and not held.v.has_uses and not held.v.is_param:
        _name_value(held, target.id)
    c.scope.set(target.id, held)


def _name_value(held: Simple, name: str) -> None:
    """Values are called what the program calls them first."""
    if held.v.name.isdigit() and not held.v.is_constant:
        held.v.name = name


def _assign_tuple(
    c: Compiler, target: ast.Tuple | ast.List, held: Sugared, range: SourceRange
) -> None:
    targets = target.elts
    starred = [i for i, item in enumerate(targets) if isinstance(item, ast.Starred)]
    if len(starred) > 1:
        fail("assignment: expected one starred target, got several", c.range(target))
    known = held.unrolled(c, range)
    if known is None:
        star = starred[0] if starred else None
        items = take_apart(c, held, len(targets), range, "assignment", star)
    else:
        items = known
    if starred:
        at = starred[0]
        behind = len(targets) - at - 1
        if len(items) < len(targets) - 1:
            fail(
                f"assignment: expected at least {len(targets) - 1} values, got {len(items)}", range
            )
        middle = items[at : len(items) - behind]
        if items is not known:  # a list has been taken apart already
            middle_value: Sugared = items[at]
        else:
            middle_value = _list_of(c, middle, range)
        items = [*items[:at], middle_value, *items[len(items) - behind :]]
    if len(items) != len(targets):
        fail(f"assignment: expected {len(targets)} values, got {len(items)}", range)
    for each, item in zip(targets, items):
        inner = each.value if isinstance(each, ast.Starred) else each
        c.assign(inner, item, range)


def _list_of(c: Compiler, items: Sequence[Sugared], range: SourceRange) -> Sugared:
    try:
        return Simple(c.make_list(items, None, range))
    except FrontendError:
        return TupleLiteral(items)  # things that are no values, or of several types


def take_apart(
    c: Compiler, held: Sugared, count: int, range: SourceRange, what: str, star: int | None = None
) -> list[Sugared]:
    """The `count` items of what has as many when the program runs; `star` is the place of the one
    that takes all that the others leave."""
    if isinstance(held, Iterable):
        held = c.as_list(held, range)
    actual = c.type_of(held, range)
    if actual is ty.TENSOR:
        held = rows_of(c, held, range)
        actual = c.type_of(held, range)
    if not isinstance(actual, ty.ListType):
        fail(
            f"{what}: expected a tuple, list or tensor to take apart, got {actual.annotation}",
            range,
        )
    if star is not None:
        return _take_list_apart(c, held, count, star, range)
    node = c.node("prim::ListUnpack", (held.value(c, range),), [actual.elem] * count, range=range)
    return [Simple(v) for v in node.outputs]


def _take_list_apart(
    c: Compiler, held: Sugared, count: int, star: int, range: SourceRange
) -> list[Sugared]:
    """a, *b, c = xs for a list: items from both ends, and a slice between them."""

    def number(value: int) -> Sugared:
        return Simple(c.constant(value))

    behind = count - star - 1
    length = c.apply("aten::len", range, held)
    c.call(prelude.enough, range, length, number(count - 1))
    first = [c.get_item(held, number(i), range) for i in builtin_range(star)]
    last = [c.get_item(held, number(i - behind), range) for i in builtin_range(behind)]
    middle = c.get_item(
        held, Slice([number(star), number(-behind) if behind else None, None]), range
    )
    return [*first, middle, *last]


builtin_range = range


def _assign_declared(
    c: Compiler, target: ast.expr, wanted: ty.Type, held: Sugared, range: SourceRange
) -> frozenset[str]:
    """target: wanted = held."""
    if isinstance(target, ast.Name):
        c.scope.declare(target.id, wanted)
        made = c.convert(held, wanted, range, target.id, strict=True)
        if made.type != wanted and isinstance(wanted, ty.InterfaceType):
            made = c.emit("prim::unchecked_cast", (made,), wanted)
        simple = Simple(made)
        if not made.has_uses:
            _name_value(simple, target.id)
        c.scope.set(target.id, simple)
        return FALLS
    made = c.convert(held, wanted, range, "assignment", strict=True)
    if made.type != wanted:  # an attribute may get its type here
        made = c.emit("prim::unchecked_cast", (made,), wanted)
    c.assign(target, Simple(made), range)
    return FALLS


@statement(ast.AugAssign)
def _augmented(c: Compiler, node: ast.AugAssign) -> frozenset[str]:
    _augment(c, node)
    return FALLS


def _augment(c: Compiler, node: ast.AugAssign) -> None:
    """target <op>= value, in place for tensors and lists as in Python."""
    range = c.range(node)
    if isinstance(node.target, ast.Subscript):
        verb["augment", ast.Subscript](c, node, range)
        return

    load = _as_load(node.target)
    if isinstance(load, ast.Attribute):
        owner = c.expr(load.value)
        before = owner.attr(c, c.range(load), load.attr)
        made, in_place = augmented(c, type(node.op), before, c.expr(node.value), range)
        if not in_place or is_property(owner, load.attr):
            owner.set_attr(c, range, load.attr, before if in_place else made)
        return
    before = c.expr(load)
    hint = c.type_of(before, range) if not isinstance(before, TupleLiteral) else None
    right = c.expr(node.value, hint if isinstance(hint, ty.ListType) else None)
    made, in_place = augmented(c, type(node.op), before, right, range)
    c.assign(node.target, before if in_place else made, range)


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    if isinstance(target, ast.Attribute):
        return ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
    return target


@statement(ast.Delete)
def _delete(c: Compiler, node: ast.Delete) -> frozenset[str]:
    for target in node.targets:
        _delete_one(c, target)
    return FALLS


def _delete_one(c: Compiler, target: ast.expr) -> None:
    """del x, del xs[i]."""
    if isinstance(target, ast.Name):
        c.lookup(target.id, c.range(target))
        message = f"{target.id}: expected a value, got a name that was deleted"
        c.scope.set(target.id, Undefined(message))
        return
    if isinstance(target, ast.Subscript):
        verb["delete", ast.Subscript](c, target)
        return
    refuse_form(c.code, target, "delete")


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
    v = owner.changed(c, range)
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
    owner = c.expr(target.value).changed(c, c.range(target.value))
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
