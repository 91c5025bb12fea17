"""Assignment: to names, attributes, items, and tuples of them; in place, and declared."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from weft.jit.frontend.conversions import coerce, type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.environment import FALLS, Poison
from weft.jit.frontend.errors import FrontendError, fail
from weft.jit.frontend.expressions import expr
from weft.jit.frontend.scaffold import refuse, refuse_form
from weft.jit.frontend.sugared import Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.source import SourceRange


def assign(e: Emitter, target: ast.expr, held: Sugared, range: SourceRange) -> None:
    """target = held."""
    if not isinstance(held, Simple):
        from weft.jit.frontend.iteration import settled

        held = settled(held)
    if isinstance(target, ast.Name):
        _assign_name(e, target, held, range)
    elif isinstance(target, ast.Tuple | ast.List):
        _assign_tuple(e, target, held, range)
    elif isinstance(target, ast.Attribute):
        expr(e, target.value).set_attr(e, e.range(target), target.attr, held)
    elif isinstance(target, ast.Subscript):
        from weft.jit.frontend.item_assignment import set_item

        set_item(e, target, held, range)
    else:
        refuse(e.code, target)


def _assign_name(e: Emitter, target: ast.Name, held: Sugared, range: SourceRange) -> None:
    e.epoch += 1
    declared = e.scope.declared_type(target.id)
    if declared is not None:
        try:
            made = coerce(e, held, declared, range, target.id, strict=True)
            if not isinstance(held, Simple) or made is not held.v:
                held = Simple(made)
        except FrontendError:  # a new value of the same block may have a type of its own
            if e.scope.declared.pop(target.id, None) is None:
                raise
    if isinstance(held, Simple) and not held.v.has_uses and not held.v.is_param:
        _name_value(held, target.id)
    e.scope.set(target.id, held)


def _name_value(held: Simple, name: str) -> None:
    """Values are called what the program calls them first."""
    if held.v.name.isdigit() and not held.v.is_constant:
        held.v.name = name


def _assign_tuple(
    e: Emitter, target: ast.Tuple | ast.List, held: Sugared, range: SourceRange
) -> None:
    targets = target.elts
    starred = [i for i, item in enumerate(targets) if isinstance(item, ast.Starred)]
    if len(starred) > 1:
        fail("assignment: expected one starred target, got several", e.range(target))
    known = held.unrolled(e, range)
    if known is None:
        star = starred[0] if starred else None
        items = take_apart(e, held, len(targets), range, "assignment", star)
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
            middle_value = _list_of(e, middle, range)
        items = [*items[:at], middle_value, *items[len(items) - behind :]]
    if len(items) != len(targets):
        fail(f"assignment: expected {len(targets)} values, got {len(items)}", range)
    for each, item in zip(targets, items):
        inner = each.value if isinstance(each, ast.Starred) else each
        assign(e, inner, item, range)


def _list_of(e: Emitter, items: Sequence[Sugared], range: SourceRange) -> Sugared:
    from weft.jit.frontend.displays import make_list

    try:
        return Simple(make_list(e, items, None, range))
    except FrontendError:
        return TupleLiteral(items)  # things that are no values, or of several types


def take_apart(
    e: Emitter, held: Sugared, count: int, range: SourceRange, what: str, star: int | None = None
) -> list[Sugared]:
    """The `count` items of what has as many when the program runs; `star` is the place of the one
    that takes all that the others leave."""
    from weft.jit.frontend.iteration import Iterable, rows_of

    if isinstance(held, Iterable):
        from weft.jit.frontend.builtins import as_list

        held = as_list(e, held, range)
    actual = type_of(e, held, range)
    if actual is ty.TENSOR:
        held = rows_of(e, held, range)
        actual = type_of(e, held, range)
    if not isinstance(actual, ty.ListType):
        fail(
            f"{what}: expected a tuple, list or tensor to take apart, got {actual.annotation}",
            range,
        )
    if star is not None:
        return _take_list_apart(e, held, count, star, range)
    node = e.node("prim::ListUnpack", (held.value(e, range),), [actual.elem] * count, range=range)
    return [Simple(v) for v in node.outputs]


def _take_list_apart(
    e: Emitter, held: Sugared, count: int, star: int, range: SourceRange
) -> list[Sugared]:
    """a, *b, c = xs for a list: items from both ends, and a slice between them."""
    from weft.jit.frontend.subscripts import Slice, get_item

    def number(value: int) -> Sugared:
        return Simple(e.constant(value))

    behind = count - star - 1
    first = [get_item(e, held, number(i), range) for i in builtin_range(star)]
    last = [get_item(e, held, number(i - behind), range) for i in builtin_range(behind)]
    middle = get_item(
        e, held, Slice([number(star), number(-behind) if behind else None, None]), range
    )
    return [*first, middle, *last]


builtin_range = range


def assign_declared(
    e: Emitter, target: ast.expr, wanted: ty.Type, held: Sugared, range: SourceRange
) -> frozenset[str]:
    """target: wanted = held."""
    if isinstance(target, ast.Name):
        e.scope.declare(target.id, wanted)
        made = coerce(e, held, wanted, range, target.id, strict=True)
        keeps = isinstance(wanted, ty.OptionalType | ty.UnionType) or wanted in (ty.ANY, ty.NUMBER)
        if made.type != wanted and not keeps:
            made = e.emit("prim::unchecked_cast", (made,), wanted) if _named(wanted) else made
        simple = Simple(made)
        if not made.has_uses:
            _name_value(simple, target.id)
        e.scope.set(target.id, simple)
        return FALLS
    made = coerce(e, held, wanted, range, "assignment", strict=True)
    if made.type != wanted:  # an attribute may get its type here
        made = e.emit("prim::unchecked_cast", (made,), wanted)
    assign(e, target, Simple(made), range)
    return FALLS


def _named(type: ty.Type) -> bool:
    return isinstance(type, ty.InterfaceType)


def assign_augmented(e: Emitter, node: ast.AugAssign) -> None:
    """target <op>= value, in place for tensors and lists as in Python."""
    from weft.jit.frontend.item_assignment import augment_item
    from weft.jit.frontend.operators import augmented

    range = e.range(node)
    if isinstance(node.target, ast.Subscript):
        augment_item(e, node, range)
        return
    from weft.jit.frontend.class_attributes import is_property

    load = _as_load(node.target)
    if isinstance(load, ast.Attribute):
        owner = expr(e, load.value)
        before = owner.attr(e, e.range(load), load.attr)
        made, in_place = augmented(e, type(node.op), before, expr(e, node.value), range)
        if not in_place or is_property(owner, load.attr):
            owner.set_attr(e, range, load.attr, before if in_place else made)
        return
    before = expr(e, load)
    hint = type_of(e, before, range) if not isinstance(before, TupleLiteral) else None
    right = expr(e, node.value, hint if isinstance(hint, ty.ListType) else None)
    made, in_place = augmented(e, type(node.op), before, right, range)
    assign(e, node.target, before if in_place else made, range)


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    if isinstance(target, ast.Attribute):
        return ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
    return target


def delete(e: Emitter, target: ast.expr) -> None:
    """del x, del xs[i]."""
    if isinstance(target, ast.Name):
        e.lookup(target.id, e.range(target))
        message = f"{target.id}: expected a value, got a name that was deleted"
        e.scope.set(target.id, Poison(message))
        return
    if isinstance(target, ast.Subscript):
        from weft.jit.frontend.item_assignment import delete_item

        delete_item(e, target)
        return
    refuse_form(e.code, target, "delete")
