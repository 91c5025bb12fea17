"""Comparison and `in`: of values, tuples, and objects of classes."""

from __future__ import annotations

import ast
import operator

from weft.jit.frontend import written
from weft.jit.frontend.calls import apply_operator, candidates, describe_arguments, try_operator
from weft.jit.frontend.classes import as_plain
from weft.jit.frontend.conditions import choose, condition, is_identity, is_none
from weft.jit.frontend.conversions import type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import FrontendError, fail
from weft.jit.frontend.expressions import expr
from weft.jit.frontend.operators import NUMBERS, is_tuple
from weft.jit.frontend.scaffold import expression
from weft.jit.frontend.sugared import Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.frontend.written import call_written, holds_comparable
from weft.jit.ir import types as ty
from weft.jit.ir.source import SourceRange

# symbol, method of user classes, the same with the sides exchanged
_COMPARE: dict[type[ast.cmpop], tuple[str, str, str]] = {
    ast.Eq: ("==", "eq", "eq"),
    ast.NotEq: ("!=", "ne", "ne"),
    ast.Lt: ("<", "lt", "gt"),
    ast.LtE: ("<=", "le", "ge"),
    ast.Gt: (">", "gt", "lt"),
    ast.GtE: (">=", "ge", "le"),
}
_KINDS = (NUMBERS, (ty.STR,), (ty.DEVICE,), (ty.DTYPE,))
_ORDER = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@expression(ast.Compare)
def _compare(e: Emitter, node: ast.Compare, hint: ty.Type | None) -> Sugared:
    if is_identity(node):
        return Simple(condition(e, node).materialize(e))
    left = expr(e, node.left)
    return _chain(e, node, left, 0)


def _chain(e: Emitter, node: ast.Compare, left: Sugared, index: int) -> Sugared:
    """a < b < c: b once, c only where a < b."""
    from weft.jit.frontend.conditions import Condition, static_truth, truth

    range = e.range(node)
    right = expr(e, node.comparators[index])
    first = compare(e, node.ops[index], left, right, range)
    if index + 1 == len(node.ops):
        return first
    known = static_truth(e, first)
    test = Condition(None if known is not None else truth(e, first, range), known)
    return choose(e, test, lambda: _chain(e, node, right, index + 1), lambda: first, range)


def compare(
    e: Emitter, op: ast.cmpop, left: Sugared, right: Sugared, range: SourceRange
) -> Sugared:
    """left <op> right."""
    if isinstance(op, ast.In | ast.NotIn):
        return _contains(e, left, right, isinstance(op, ast.NotIn), range)
    if isinstance(op, ast.Is | ast.IsNot):
        from weft.jit.frontend.conditions import _same_object

        return Simple(_same_object(e, left, right, isinstance(op, ast.IsNot), range).materialize(e))
    symbol, name, mirrored = _COMPARE[type(op)]
    a, b = type_of(e, left, range), type_of(e, right, range)
    if ty.NONE in (a, b) and name in ("eq", "ne"):
        value = right if a is ty.NONE else left
        return Simple(is_none(e, value, name == "ne", range).materialize(e))
    enums = isinstance(a, ty.EnumType), isinstance(b, ty.EnumType)
    if any(enums) and ty.ANY not in (a, b) and not (all(enums) and name in ("eq", "ne")):
        left, right = as_plain(e, left, range), as_plain(e, right, range)
        a, b = type_of(e, left, range), type_of(e, right, range)
        if isinstance(a, ty.EnumType) != isinstance(b, ty.EnumType) and name in ("eq", "ne"):
            return Simple(e.constant(name == "ne"))  # a member is equal to members only
    if is_tuple(left) and is_tuple(right):
        return _compare_tuples(e, op, left, right, range)
    for owner, other, method in ((left, right, name), (right, left, mirrored)):
        if isinstance(owner, Simple) and isinstance(owner.v.type, ty.ClassType):
            found = _class_comparison(e, owner, other, method, range)
            if found is not None:
                return found
    if name in ("eq", "ne") and a == b and holds_comparable(left):
        same = call_written(e, written.same_items, range, left, right)
        return same if name == "eq" else _not(e, same, range)
    args = [Arg(left, range), Arg(right, range)]
    kind = f"aten::{name}"
    if name in ("eq", "ne") and _never_equal(a, b):
        return Simple(e.constant(name == "ne"))
    if a in NUMBERS and b is ty.TENSOR:
        kind, args = f"aten::{mirrored}", args[::-1]
    operators = [each for each in candidates(kind) if any(enums) or each.overload != "enum"]
    result = try_operator(e, operators, Call(range, args))
    if isinstance(result, list):
        fail(
            f"{symbol}: expected types it is defined for, got {a.annotation} and {b.annotation}",
            range,
            "a test of x is not None before" if isinstance(a, ty.OptionalType) else None,
        )
    return result


def _never_equal(a: ty.Type, b: ty.Type) -> bool:
    """Whether values of the types differ, whatever they are: a number and a text."""
    kinds = [next((i for i, kind in enumerate(_KINDS) if t in kind), None) for t in (a, b)]
    return None not in kinds and kinds[0] != kinds[1]


def _class_comparison(
    e: Emitter, owner: Simple, other: Sugared, name: str, range: SourceRange
) -> Sugared | None:
    if owner.has_attr(e, f"__{name}__"):
        return owner.attr(e, range, f"__{name}__").call(e, Call.of(range, other))
    if name == "ne" and owner.has_attr(e, "__eq__"):
        equal = owner.attr(e, range, "__eq__").call(e, Call.of(range, other))
        return _not(e, equal, range)
    return None


def _not(e: Emitter, test: Sugared, range: SourceRange) -> Sugared:
    return apply_operator(e, "aten::__not__", range, test)


def _compare_tuples(
    e: Emitter, op: ast.cmpop, left: Sugared, right: Sugared, range: SourceRange
) -> Sugared:
    """The first items that are not equal decide; else the lengths."""
    from weft.jit.frontend.conditions import Condition, static_truth, truth

    a, b = left.unrolled(e, range) or [], right.unrolled(e, range) or []
    by_items = isinstance(op, ast.Eq | ast.NotEq)
    if by_items and len(a) != len(b):
        return Simple(e.constant(isinstance(op, ast.NotEq)))

    def from_item(index: int) -> Sugared:
        if index == min(len(a), len(b)):
            return Simple(e.constant(_ORDER[type(op)](len(a), len(b))))
        same = compare(e, ast.Eq(), a[index], b[index], range)
        known = static_truth(e, same)
        test = Condition(None if known is not None else truth(e, same, range), known)

        def differs() -> Sugared:
            if by_items:
                return Simple(e.constant(isinstance(op, ast.NotEq)))
            return compare(e, op, a[index], b[index], range)

        return choose(e, test, lambda: from_item(index + 1), differs, range)

    return from_item(0)


def _contains(
    e: Emitter, item: Sugared, container: Sugared, negated: bool, range: SourceRange
) -> Sugared:
    if isinstance(container, Simple | TupleLiteral):
        found = contains_value(e, item, container, range)
    else:
        found = container.contains(e, range, item)
    if not negated:
        return found
    return (
        Simple(e.constant(not found.static(e)))
        if isinstance(found.static(e), bool)
        else _not(e, found, range)
    )


def contains_value(e: Emitter, item: Sugared, container: Sugared, range: SourceRange) -> Sugared:
    from weft.jit.frontend.conditions import Condition, static_truth, truth

    if not is_tuple(container):
        if isinstance(container, Simple) and isinstance(container.v.type, ty.ClassType):
            method = container.attr(e, range, "__contains__")
            return method.call(e, Call.of(range, item))
        if holds_comparable(container):
            return call_written(e, written.contains, range, container, item)
        tested = Call.of(range, container, item)
        found = try_operator(e, candidates("aten::__contains__"), tested)
        if isinstance(found, list):
            shown = describe_arguments(e, Call.of(range, item, container))
            fail(f"in: expected a list, dict, str or tensor and an item of it, got {shown}", range)
        return found
    items = container.unrolled(e, range) or []

    def from_item(index: int) -> Sugared:
        if index == len(items):
            return Simple(e.constant(False))
        try:
            same = compare(e, ast.Eq(), item, items[index], range)
        except FrontendError:
            return from_item(index + 1)  # values of different types are not equal
        known = static_truth(e, same)
        test = Condition(None if known is not None else truth(e, same, range), known)
        return choose(
            e, test, lambda: Simple(e.constant(True)), lambda: from_item(index + 1), range
        )

    return from_item(0)
