"""Conditions: truth, short circuits, and what a test tells about variables (refinement)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.environment import FALLS
from weft.jit.frontend.language.calls import candidates as operators_of
from weft.jit.frontend.language.calls import try_operator
from weft.jit.frontend.language.control_flow import (
    Condition,
    Facts,
    branch,
    choose,
    join,
    name_of,
    refine_all,
    where_known,
)
from weft.jit.frontend.language.isinstance_test import isinstance_call
from weft.jit.frontend.language.python_objects import PythonObject
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import UNKNOWN, Call, Path, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

_PLAIN = (ty.INT, ty.FLOAT, ty.COMPLEX)


@verb("condition")
def condition(c: Compiler, node: ast.expr) -> Condition:
    """Compiles a test."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = c.condition(node.operand)
        if inner.known is not None:
            return Condition(None, not inner.known, inner.no, inner.yes)
        assert inner.value is not None
        made = c.apply("aten::__not__", c.range(node), Simple(inner.value))
        return Condition(made.value(c, c.range(node)), None, inner.no, inner.yes)
    if isinstance(node, ast.BoolOp):
        return _short_circuit(c, node, node.values)
    if isinstance(node, ast.Compare) and is_identity(node):
        return _identity(c, node)
    if isinstance(node, ast.Call):
        found = isinstance_call(c, node)
        if found is not None:
            return found
    return _plain(c, node)


def _plain(c: Compiler, node: ast.expr) -> Condition:
    value = c.expr(node)
    known = static_truth(c, value)
    if known is not None:
        return Condition(None, known)
    facts: Facts = {}
    name = name_of(node)
    if name is not None and isinstance(value, Simple) and isinstance(value.v.type, ty.OptionalType):
        facts = {name: value.v.type.elem}
    return Condition(c.truth(value, c.range(node)), None, facts)


def static_truth(c: Compiler, value: Sugared) -> bool | None:
    """The truth of a value that is known while compiling."""
    if isinstance(value, TupleLiteral):
        return bool(value.items)
    if isinstance(value, Simple) and value.v.type is ty.NONE:
        return False
    if isinstance(value, PythonObject):
        return bool(value.obj) if isinstance(value.obj, list | tuple | dict) else None
    known = value.static(c)
    if known is UNKNOWN or not isinstance(known, bool | int | float | str | tuple | None.__class__):
        return None
    return bool(known)


def test_of(c: Compiler, value: Sugared, range: SourceRange) -> Condition:
    """Whether a value is true."""
    known = static_truth(c, value)
    return Condition(None if known is not None else c.truth(value, range), known)


@verb("truth")
def truth(c: Compiler, value: Sugared, range: SourceRange) -> Value:
    """bool(value)."""
    v = value.value(c, range)
    if v.type is ty.BOOL:
        return v
    if v.type is ty.NONE:
        return c.constant(False)
    if isinstance(v.type, ty.ListType | ty.DictType | ty.TupleType) or v.type is ty.STR:
        if isinstance(v.type, ty.TupleType):
            return c.constant(bool(v.type.elems))
        length = c.apply("aten::len", range, Simple(v))
        return c.apply("aten::ne", range, length, Simple(c.constant(0))).value(c, range)
    if isinstance(v.type, ty.ClassType):
        for name, wanted in (("__bool__", ty.BOOL), ("__len__", ty.INT)):
            if value.has_attr(c, name):
                made = value.attr(c, range, name).call(c, Call(range))
                return c.truth(made, range) if wanted is ty.INT else made.value(c, range)
    if isinstance(v.type, ty.OptionalType):
        return _truth_of_optional(c, v, range)
    if isinstance(v.type, ty.UnionType) and ty.BOOL in v.type.members:
        return by_member(
            c, v, v.type.members, lambda each: Simple(c.truth(each, range)), range
        ).value(c, range)
    if v.type is not ty.BOOL and ty.is_subtype(v.type, ty.NUMBER) and v.type not in _PLAIN:
        zero = Simple(c.constant(0))  # Bool would cut it to an int first
        return c.apply("aten::ne", range, Simple(v), zero).value(c, range)
    found = try_operator(c, operators_of("aten::Bool"), Call.of(range, Simple(v)))
    if isinstance(found, list):
        fail(
            f"condition: expected a bool, a number, a string, a list, a dict or a tensor of one "
            f"element, got {v.type.annotation}",
            range,
            "x is not None" if isinstance(v.type, ty.OptionalType) else None,
        )
    return found.value(c, range)


def _truth_of_optional(c: Compiler, v: Value, range: SourceRange) -> Value:
    """None is false; any other value as itself."""
    present = c.apply("aten::__isnot__", range, Simple(v), c.none()).value(c, range)
    inner = ty.non_none(v.type)
    made = choose(
        c,
        Condition(present),
        lambda: Simple(c.truth(Simple(c.cast(v, inner)), range)),
        lambda: Simple(c.constant(False)),
        range,
    )
    return made.value(c, range)


def by_member(
    c: Compiler,
    v: Value,
    members: Sequence[ty.Type],
    answer: Callable[[Simple], Sugared],
    range: SourceRange,
) -> Sugared:
    """What `answer` says of a value of a union, as one of the members it is."""
    first, rest = members[0], members[1:]

    def of_first() -> Sugared:
        return answer(Simple(c.cast(v, first)))

    if not rest:
        return of_first()
    test = c.emit("prim::isinstance", (v,), ty.BOOL, {"types": (first,)}, range)
    return choose(c, Condition(test), of_first, lambda: by_member(c, v, rest, answer, range), range)


def _short_circuit(c: Compiler, node: ast.BoolOp, values: Sequence[ast.expr]) -> Condition:
    """a and b, a or b: b is only computed where a does not decide."""
    is_and = isinstance(node.op, ast.And)
    first = c.condition(values[0])
    if len(values) == 1:
        return first
    if first.known is not None:
        if first.known is not is_and:
            return Condition(None, first.known, first.yes, first.no)
        refine_later = first.yes if is_and else first.no
        with_facts = where_known(c, refine_later, lambda: _short_circuit(c, node, values[1:]))
        return _combined(is_and, first, with_facts)
    box: list[Condition] = []
    range = c.range(node)

    def decided() -> frozenset[str]:
        return FALLS

    def undecided() -> frozenset[str]:
        refine_all(c, first.yes if is_and else first.no)
        second = _short_circuit(c, node, values[1:])
        box.append(Condition(second.materialize(c), second.known, second.yes, second.no))
        return FALLS

    order = (undecided, decided) if is_and else (decided, undecided)
    assert first.value is not None
    if_node, sides = branch(c, first.value, order, range)
    second = box[0]
    with c.within(sides[1 if is_and else 0].block, sides[1 if is_and else 0].scope):
        short = c.constant(not is_and)
    assert second.value is not None
    pair = (
        (Simple(second.value), Simple(short)) if is_and else (Simple(short), Simple(second.value))
    )
    _, merged = join(c, if_node, sides, range, [pair])
    known = (not is_and) if second.known is (not is_and) else None
    whole = Condition(merged[0].value(c, range), known)
    both = _combined(is_and, first, second)
    whole.yes, whole.no = both.yes, both.no
    return whole


def _combined(is_and: bool, first: Condition, second: Condition) -> Condition:
    if is_and:
        yes, no = {**first.yes, **second.yes}, {}
        if first.known is True:
            no = second.no
        elif second.known is True:
            no = first.no
    else:
        yes, no = {}, {**first.no, **second.no}
        if first.known is False:
            yes = second.yes
        elif second.known is False:
            yes = first.yes
    return Condition(second.value, second.known, yes, no)


def is_identity(node: ast.Compare) -> bool:
    """Whether it is x is y, or x == None, which asks the same."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        return False
    if isinstance(node.ops[0], ast.Is | ast.IsNot):
        return True
    sides = (node.left, node.comparators[0])
    return any(isinstance(side, ast.Constant) and side.value is None for side in sides)


def _identity(c: Compiler, node: ast.Compare) -> Condition:
    """x is y, x is not y."""
    negated = isinstance(node.ops[0], ast.IsNot | ast.NotEq)
    left_node, right_node = node.left, node.comparators[0]
    left, right = c.expr(left_node), c.expr(right_node)
    if _is_none(left) and not _is_none(right):
        left, right, left_node, right_node = right, left, right_node, left_node
    range = c.range(node)
    if not _is_none(right):
        return same_object(c, left, right, negated, range)
    test = is_none(c, left, negated, range)
    if test.known is not None:
        return test
    v, made = left.value(c, range), test.value
    name = name_of(left_node) or remember_path(c, left_node, v)
    if name is None or v.type is ty.ANY:
        return test
    present: Facts = {name: ty.non_none(v.type)}
    absent: Facts = {name: ty.NONE}
    return Condition(made, None, present if negated else absent, absent if negated else present)


def is_none(c: Compiler, value: Sugared, negated: bool, range: SourceRange) -> Condition:
    """value is None."""
    known = _never_or_always_none(value)
    if known is not None:
        return Condition(None, known is not negated)
    kind = "aten::__isnot__" if negated else "aten::__is__"
    held = Simple(value.value(c, range))
    return Condition(c.apply(kind, range, held, c.none()).value(c, range))


def _is_none(value: Sugared) -> bool:
    return isinstance(value, Simple) and value.v.type is ty.NONE


def _never_or_always_none(value: Sugared) -> bool | None:
    """Whether a value is None, where its type tells."""
    if not isinstance(value, Simple):
        return False
    type = value.v.type
    if type is ty.NONE:
        return True
    if type is ty.ANY or isinstance(type, ty.OptionalType):
        return None
    return None if isinstance(type, ty.UnionType) and ty.NONE in type.members else False


def same_object(
    c: Compiler, left: Sugared, right: Sugared, negated: bool, range: SourceRange
) -> Condition:
    if not isinstance(left, Simple) or not isinstance(right, Simple):
        return Condition(None, (left.key() == right.key()) is not negated)
    if left.v is right.v:
        return Condition(None, not negated)
    for a in (left, right):
        if a.v.type in (ty.INT, ty.FLOAT, ty.STR, ty.COMPLEX):
            fail(
                f"is: expected None, tensors, lists, dicts or objects, got {a.v.type.annotation}",
                range,
                "!=" if negated else "==",
            )
    a, b = left.static(c), right.static(c)
    if a is not UNKNOWN and b is not UNKNOWN:
        return Condition(None, (a is b or (isinstance(a, bool) and a == b)) is not negated)
    kind = "aten::__isnot__" if negated else "aten::__is__"
    made = c.apply(kind, range, left, right)
    return Condition(made.value(c, range))


def path_of(node: ast.expr) -> str | None:
    """ "self.a.b" for a chain of attributes of a variable; None for other expressions."""
    if not isinstance(node, ast.Attribute):
        return None
    if isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    inner = path_of(node.value)
    return None if inner is None else f"{inner}.{node.attr}"


def remember_path(c: Compiler, node: ast.expr, v: Value) -> str | None:
    """Makes self.x, which was just read as v, something that a test can tell about."""
    name = path_of(node)
    if name is not None:
        c.scope.refine(name, Path(v, c.epoch))
    return name
