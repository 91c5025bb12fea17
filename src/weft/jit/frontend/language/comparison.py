"""Comparison and `in`: of values, tuples, and objects of classes."""

from __future__ import annotations

import ast
import operator

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import candidates, describe_arguments, try_operator
from weft.jit.frontend.language.conditions import is_identity, is_none, same_object, test_of
from weft.jit.frontend.language.control_flow import choose
from weft.jit.frontend.language.operators import NUMBERS, as_plain, is_tuple
from weft.jit.frontend.library import prelude
from weft.jit.frontend.registry import expression, verb
from weft.jit.frontend.source.errors import FrontendError, fail
from weft.jit.frontend.values import Arg, Call, Simple, Sugared, TupleLiteral
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
def _compare(c: Compiler, node: ast.Compare, hint: ty.Type | None) -> Sugared:
    if is_identity(node):
        return Simple(c.condition(node).materialize(c))
    left = c.expr(node.left)
    return _chain(c, node, left, 0)


def _chain(c: Compiler, node: ast.Compare, left: Sugared, index: int) -> Sugared:
    """a < b < c: b once, c only where a < b."""
    range = c.range(node)
    right = c.expr(node.comparators[index])
    first = c.compare(node.ops[index], left, right, range)
    if index + 1 == len(node.ops):
        return first
    test = test_of(c, first, range)
    return choose(c, test, lambda: _chain(c, node, right, index + 1), lambda: first, range)


@verb("compare")
def compare(
    c: Compiler, op: ast.cmpop, left: Sugared, right: Sugared, range: SourceRange
) -> Sugared:
    """left <op> right."""
    if isinstance(op, ast.In | ast.NotIn):
        return _contains(c, left, right, isinstance(op, ast.NotIn), range)
    if isinstance(op, ast.Is | ast.IsNot):
        return Simple(same_object(c, left, right, isinstance(op, ast.IsNot), range).materialize(c))
    symbol, name, mirrored = _COMPARE[type(op)]
    a, b = c.type_of(left, range), c.type_of(right, range)
    if ty.NONE in (a, b) and name in ("eq", "ne"):
        value = right if a is ty.NONE else left
        return Simple(is_none(c, value, name == "ne", range).materialize(c))
    enums = isinstance(a, ty.EnumType), isinstance(b, ty.EnumType)
    if any(enums) and ty.ANY not in (a, b) and not (all(enums) and name in ("eq", "ne")):
        left, right = as_plain(c, left, range), as_plain(c, right, range)
        a, b = c.type_of(left, range), c.type_of(right, range)
        if isinstance(a, ty.EnumType) != isinstance(b, ty.EnumType) and name in ("eq", "ne"):
            return Simple(c.constant(name == "ne"))  # a member is equal to members only
    if is_tuple(left) and is_tuple(right):
        return _compare_tuples(c, op, left, right, range)
    for owner, other, method in ((left, right, name), (right, left, mirrored)):
        if isinstance(owner, Simple) and isinstance(owner.v.type, ty.ClassType):
            found = _class_comparison(c, owner, other, method, range)
            if found is not None:
                return found
    if name in ("eq", "ne") and a == b and holds_comparable(c, left):
        same = c.call(prelude.same_items, range, left, right)
        return same if name == "eq" else _not(c, same, range)
    args = [Arg(left, range), Arg(right, range)]
    kind = f"aten::{name}"
    if name in ("eq", "ne") and _never_equal(a, b):
        return Simple(c.constant(name == "ne"))
    if a in NUMBERS and b is ty.TENSOR:
        kind, args = f"aten::{mirrored}", args[::-1]
    operators = [each for each in candidates(kind) if any(enums) or each.overload != "enum"]
    result = try_operator(c, operators, Call(range, args))
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
    c: Compiler, owner: Simple, other: Sugared, name: str, range: SourceRange
) -> Sugared | None:
    if owner.has_attr(c, f"__{name}__"):
        return owner.attr(c, range, f"__{name}__").call(c, Call.of(range, other))
    if name == "ne" and owner.has_attr(c, "__eq__"):
        equal = owner.attr(c, range, "__eq__").call(c, Call.of(range, other))
        return _not(c, equal, range)
    return None


def _not(c: Compiler, test: Sugared, range: SourceRange) -> Sugared:
    return c.apply("aten::__not__", range, test)


def _compare_tuples(
    c: Compiler, op: ast.cmpop, left: Sugared, right: Sugared, range: SourceRange
) -> Sugared:
    """The first items that are not equal decide; else the lengths."""
    a, b = left.unrolled(c, range) or [], right.unrolled(c, range) or []
    by_items = isinstance(op, ast.Eq | ast.NotEq)
    if by_items and len(a) != len(b):
        return Simple(c.constant(isinstance(op, ast.NotEq)))

    def from_item(index: int) -> Sugared:
        if index == min(len(a), len(b)):
            return Simple(c.constant(_ORDER[type(op)](len(a), len(b))))
        same = c.compare(ast.Eq(), a[index], b[index], range)
        test = test_of(c, same, range)

        def differs() -> Sugared:
            if by_items:
                return Simple(c.constant(isinstance(op, ast.NotEq)))
            return c.compare(op, a[index], b[index], range)

        return choose(c, test, lambda: from_item(index + 1), differs, range)

    return from_item(0)


def _contains(
    c: Compiler, item: Sugared, container: Sugared, negated: bool, range: SourceRange
) -> Sugared:
    if isinstance(container, Simple | TupleLiteral):
        found = contains_value(c, item, container, range)
    else:
        found = container.contains(c, range, item)
    if not negated:
        return found
    return (
        Simple(c.constant(not found.static(c)))
        if isinstance(found.static(c), bool)
        else _not(c, found, range)
    )


def contains_value(c: Compiler, item: Sugared, container: Sugared, range: SourceRange) -> Sugared:
    if not is_tuple(container):
        if isinstance(container, Simple) and isinstance(container.v.type, ty.ClassType):
            method = container.attr(c, range, "__contains__")
            return method.call(c, Call.of(range, item))
        if holds_comparable(c, container):
            return c.call(prelude.contains, range, container, item)
        tested = Call.of(range, container, item)
        found = try_operator(c, candidates("aten::__contains__"), tested)
        if isinstance(found, list):
            shown = describe_arguments(c, Call.of(range, item, container))
            fail(f"in: expected a list, dict, str or tensor and an item of it, got {shown}", range)
        return found
    items = container.unrolled(c, range) or []

    def from_item(index: int) -> Sugared:
        if index == len(items):
            return Simple(c.constant(False))
        try:
            same = c.compare(ast.Eq(), item, items[index], range)
        except FrontendError:
            return from_item(index + 1)  # values of different types are not equal
        test = test_of(c, same, range)
        return choose(
            c, test, lambda: Simple(c.constant(True)), lambda: from_item(index + 1), range
        )

    return from_item(0)


def holds_comparable(c: Compiler, xs: Sugared) -> bool:
    """Whether it is a list of objects whose class has an __eq__, or of lists of them."""
    type = xs.v.type if isinstance(xs, Simple) else None
    while isinstance(type, ty.ListType):
        type = type.elem
        if isinstance(type, ty.ClassType):
            return c.has_attr(type, "__eq__")
    return False
