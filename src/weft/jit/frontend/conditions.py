"""Conditions: truth, short circuits, and what a test tells about variables (refinement)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from weft.jit.frontend.calls import apply_operator, call_operator, try_operator
from weft.jit.frontend.calls import candidates as operators_of
from weft.jit.frontend.control_flow import branch, join
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.environment import FALLS
from weft.jit.frontend.errors import fail
from weft.jit.frontend.python_objects import PythonObject
from weft.jit.frontend.sugared import (
    UNKNOWN,
    Arg,
    Call,
    Path,
    Simple,
    Sugared,
    TupleLiteral,
)
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

Facts = dict[str, ty.Type]
_PLAIN = (ty.INT, ty.FLOAT, ty.COMPLEX)


class Condition:
    """A test: its value, its answer where that is known now, and what each answer tells."""

    def __init__(
        self,
        value: Value | None,
        known: bool | None = None,
        yes: Facts | None = None,
        no: Facts | None = None,
    ) -> None:
        self.value = value
        self.known = known
        self.yes = yes or {}
        self.no = no or {}

    def materialize(self, e: Emitter) -> Value:
        """The bool in the graph."""
        if self.known is not None or self.value is None:
            return e.constant(bool(self.known))
        return self.value


def condition(e: Emitter, node: ast.expr) -> Condition:
    """Compiles a test."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = condition(e, node.operand)
        if inner.known is not None:
            return Condition(None, not inner.known, inner.no, inner.yes)
        assert inner.value is not None
        arg = Arg(Simple(inner.value), e.range(node.operand))
        made = call_operator(e, "aten::__not__", Call(e.range(node), [arg]))
        return Condition(made.value(e, e.range(node)), None, inner.no, inner.yes)
    if isinstance(node, ast.BoolOp):
        return _short_circuit(e, node, node.values)
    if isinstance(node, ast.Compare) and is_identity(node):
        return _identity(e, node)
    if isinstance(node, ast.Call):
        from weft.jit.frontend.isinstance_test import isinstance_call

        found = isinstance_call(e, node)
        if found is not None:
            return found
    return _plain(e, node)


def _plain(e: Emitter, node: ast.expr) -> Condition:
    from weft.jit.frontend.expressions import expr

    value = expr(e, node)
    known = static_truth(e, value)
    if known is not None:
        return Condition(None, known)
    facts: Facts = {}
    name = name_of(node)
    if name is not None and isinstance(value, Simple) and isinstance(value.v.type, ty.OptionalType):
        facts = {name: value.v.type.elem}
    return Condition(truth(e, value, e.range(node)), None, facts)


def static_truth(e: Emitter, value: Sugared) -> bool | None:
    """The truth of a value that is known while compiling."""
    if isinstance(value, TupleLiteral):
        return bool(value.items)
    if isinstance(value, Simple) and value.v.type is ty.NONE:
        return False
    if isinstance(value, PythonObject):
        return bool(value.obj) if isinstance(value.obj, list | tuple | dict) else None
    known = value.static(e)
    if known is UNKNOWN or not isinstance(known, bool | int | float | str | tuple | None.__class__):
        return None
    return bool(known)


def truth(e: Emitter, value: Sugared, range: SourceRange) -> Value:
    """bool(value)."""
    v = value.value(e, range)
    if v.type is ty.BOOL:
        return v
    if v.type is ty.NONE:
        return e.constant(False)
    arg = Arg(Simple(v), range)
    if isinstance(v.type, ty.ListType | ty.DictType | ty.TupleType) or v.type is ty.STR:
        if isinstance(v.type, ty.TupleType):
            return e.constant(bool(v.type.elems))
        length = call_operator(e, "aten::len", Call(range, [arg]))
        zero = Arg(Simple(e.constant(0)), range)
        return call_operator(e, "aten::ne", Call(range, [Arg(length, range), zero])).value(e, range)
    if isinstance(v.type, ty.ClassType):
        for name, wanted in (("__bool__", ty.BOOL), ("__len__", ty.INT)):
            if value.has_attr(e, name):
                made = value.attr(e, range, name).call(e, Call(range))
                return truth(e, made, range) if wanted is ty.INT else made.value(e, range)
    if isinstance(v.type, ty.OptionalType):
        return _truth_of_optional(e, v, range)
    if isinstance(v.type, ty.UnionType) and ty.BOOL in v.type.members:
        return _truth_of_union(e, v, list(v.type.members), range)
    if v.type is not ty.BOOL and ty.is_subtype(v.type, ty.NUMBER) and v.type not in _PLAIN:
        zero = Arg(Simple(e.constant(0)), range)  # Bool would cut it to an int first
        return call_operator(e, "aten::ne", Call(range, [arg, zero])).value(e, range)
    found = try_operator(e, operators_of("aten::Bool"), Call(range, [arg]))
    if isinstance(found, list):
        fail(
            f"condition: expected a bool, a number, a string, a list, a dict or a tensor of one "
            f"element, got {v.type.annotation}",
            range,
            "x is not None" if isinstance(v.type, ty.OptionalType) else None,
        )
    return found.value(e, range)


def _truth_of_optional(e: Emitter, v: Value, range: SourceRange) -> Value:
    """None is false; any other value as itself."""
    present = apply_operator(e, "aten::__isnot__", range, Simple(v), e.none()).value(e, range)
    inner = ty.non_none(v.type)
    made = choose(
        e,
        Condition(present),
        lambda: Simple(truth(e, Simple(e.cast(v, inner)), range)),
        lambda: Simple(e.constant(False)),
        range,
    )
    return made.value(e, range)


def _truth_of_union(e: Emitter, v: Value, members: list[ty.Type], range: SourceRange) -> Value:
    """What a member says of itself."""
    first, rest = members[0], members[1:]
    if not rest:
        return truth(e, Simple(e.cast(v, first)), range)
    test = e.emit("prim::isinstance", (v,), ty.BOOL, {"types": (first,)}, range)
    made = choose(
        e,
        Condition(test),
        lambda: Simple(truth(e, Simple(e.cast(v, first)), range)),
        lambda: Simple(_truth_of_union(e, v, rest, range)),
        range,
    )
    return made.value(e, range)


def refine_all(e: Emitter, facts: Facts) -> None:
    """Takes what a test told into the current scope."""
    for name, type in facts.items():
        e.refine(name, type)


def _short_circuit(e: Emitter, node: ast.BoolOp, values: Sequence[ast.expr]) -> Condition:
    """a and b, a or b: b is only computed where a does not decide."""
    is_and = isinstance(node.op, ast.And)
    first = condition(e, values[0])
    if len(values) == 1:
        return first
    if first.known is not None:
        if first.known is not is_and:
            return Condition(None, first.known, first.yes, first.no)
        refine_later = first.yes if is_and else first.no
        with_facts = _rest_refined(e, refine_later, lambda: _short_circuit(e, node, values[1:]))
        return _combined(is_and, first, with_facts)
    box: list[Condition] = []
    range = e.range(node)

    def decided() -> frozenset[str]:
        return FALLS

    def undecided() -> frozenset[str]:
        refine_all(e, first.yes if is_and else first.no)
        second = _short_circuit(e, node, values[1:])
        box.append(Condition(second.materialize(e), second.known, second.yes, second.no))
        return FALLS

    order = (undecided, decided) if is_and else (decided, undecided)
    assert first.value is not None
    if_node, sides = branch(e, first.value, order, range)
    second = box[0]
    with e.within(sides[1 if is_and else 0].block, sides[1 if is_and else 0].scope):
        short = e.constant(not is_and)
    assert second.value is not None
    pair = (
        (Simple(second.value), Simple(short)) if is_and else (Simple(short), Simple(second.value))
    )
    _, merged = join(e, if_node, sides, range, [pair])
    known = (not is_and) if second.known is (not is_and) else None
    whole = Condition(merged[0].value(e, range), known)
    both = _combined(is_and, first, second)
    whole.yes, whole.no = both.yes, both.no
    return whole


def _rest_refined(e: Emitter, facts: Facts, rest: Callable[[], Condition]) -> Condition:
    """`rest` where the facts hold, without keeping them."""
    if not facts:
        return rest()
    from weft.jit.frontend.environment import Scope

    outer = e.scope
    inner = Scope(outer)
    with e.within(e.block, inner):
        refine_all(e, facts)
        found = rest()
    for name in inner.changed():
        outer.set(name, inner.names[name])
    return found


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


def _identity(e: Emitter, node: ast.Compare) -> Condition:
    """x is y, x is not y."""
    from weft.jit.frontend.expressions import expr

    negated = isinstance(node.ops[0], ast.IsNot | ast.NotEq)
    left_node, right_node = node.left, node.comparators[0]
    left, right = expr(e, left_node), expr(e, right_node)
    if _is_none(left) and not _is_none(right):
        left, right, left_node, right_node = right, left, right_node, left_node
    range = e.range(node)
    if not _is_none(right):
        return _same_object(e, left, right, negated, range)
    test = is_none(e, left, negated, range)
    if test.known is not None:
        return test
    v, made = left.value(e, range), test.value
    name = name_of(left_node) or remember_path(e, left_node, v)
    if name is None or v.type is ty.ANY:
        return test
    present: Facts = {name: ty.non_none(v.type)}
    absent: Facts = {name: ty.NONE}
    return Condition(made, None, present if negated else absent, absent if negated else present)


def is_none(e: Emitter, value: Sugared, negated: bool, range: SourceRange) -> Condition:
    """value is None."""
    known = _never_or_always_none(value)
    if known is not None:
        return Condition(None, known is not negated)
    kind = "aten::__isnot__" if negated else "aten::__is__"
    held = Simple(value.value(e, range))
    return Condition(apply_operator(e, kind, range, held, e.none()).value(e, range))


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


def _same_object(
    e: Emitter, left: Sugared, right: Sugared, negated: bool, range: SourceRange
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
    a, b = left.static(e), right.static(e)
    if a is not UNKNOWN and b is not UNKNOWN:
        return Condition(None, (a is b or (isinstance(a, bool) and a == b)) is not negated)
    kind = "aten::__isnot__" if negated else "aten::__is__"
    made = apply_operator(e, kind, range, left, right)
    return Condition(made.value(e, range))


def name_of(node: ast.expr) -> str | None:
    """The variable that an expression reads or (walrus) writes."""
    if isinstance(node, ast.NamedExpr):
        node = node.target
    return node.id if isinstance(node, ast.Name) else None


def remember_path(e: Emitter, node: ast.expr, v: Value) -> str | None:
    """Makes self.x, which was just read as v, something that a test can tell about."""
    from weft.jit.frontend.expressions import path_of

    name = path_of(node)
    if name is not None:
        e.scope.refine(name, Path(v, e.epoch))
    return name


def choose(
    e: Emitter,
    test: Condition,
    yes: Callable[[], Sugared],
    no: Callable[[], Sugared],
    range: SourceRange,
    tests: bool = False,
) -> Sugared:
    """yes() if test else no(): one branch where the answer is known. `tests`: see join."""
    if test.known is not None:
        facts = test.yes if test.known else test.no
        box: list[Sugared] = []

        def only() -> Condition:
            box.append((yes if test.known else no)())
            return Condition(None, True)

        _rest_refined(e, facts, only)
        return box[0]
    results: list[Any] = []

    def side(emit: Callable[[], Sugared], facts: Facts) -> Callable[[], frozenset[str]]:
        def run() -> frozenset[str]:
            refine_all(e, facts)
            results.append(emit())
            return FALLS

        return run

    assert test.value is not None
    node, sides = branch(e, test.value, (side(yes, test.yes), side(no, test.no)), range)
    _, merged = join(e, node, sides, range, [(results[0], results[1])], tests)
    return merged[0]
