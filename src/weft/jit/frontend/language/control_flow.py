"""Branches: two blocks, and what names mean behind them.

Early exits keep the graph structured. A statement that may return, break or continue tells so (its
exits, see environment.Flow). What follows an `if` of which one branch never reaches its end goes
into the other branch; where it cannot be told which exit was taken, a flag remembers it and what
follows stands in `if not flag`.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.environment import FALLS, FLAGS, RESULT, Flow, Scope, Undefined, sure
from weft.jit.frontend.source.errors import FrontendError
from weft.jit.frontend.types.classes import implement
from weft.jit.frontend.values import Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Block, Node, Value
from weft.jit.ir.record import NamedTuple
from weft.jit.ir.source import SourceRange

EXITS = frozenset((Flow.RETURN, Flow.BREAK, Flow.CONTINUE))
# On these exits the variables of a block are still needed.
_KEEP = frozenset((Flow.FALL, Flow.BREAK, Flow.CONTINUE))


Facts = dict[str, ty.Type]


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

    def materialize(self, c: Compiler) -> Value:
        """The bool in the graph."""
        if self.known is not None or self.value is None:
            return c.constant(bool(self.known))
        return self.value


class Side(NamedTuple):
    """One branch after it has been compiled."""

    block: Block
    scope: Scope
    exits: frozenset[str]


def branch(
    c: Compiler, condition: Value, sides: Sequence[Callable[[], frozenset[str]]], range: SourceRange
) -> tuple[Node, list[Side]]:
    """An If with both branches compiled; `join` must follow."""
    node = c.node("prim::If", (condition,), (), range=range)
    done = []
    for emit in sides:
        block, scope = node.add_block(), Scope(c.scope)
        with c.within(block, scope):
            exits = emit()
        done.append(Side(block, scope, exits))
    return node, done


def join(
    c: Compiler,
    node: Node,
    sides: Sequence[Side],
    range: SourceRange,
    results: Sequence[tuple[Sugared, Sugared]] = (),
    tests: bool = False,
) -> tuple[frozenset[str], list[Sugared]]:
    """Gives the branches their returned values and sets the names behind them.

    `results` are pairs of further values to merge, one of each branch. `tests`: a bool and
    another value may be merged, to be tested.
    """
    exits = sides[0].exits | sides[1].exits
    merged = [
        _merge(c, node, sides, pair, range, "this expression", tests=tests) for pair in results
    ]
    failed = next((each for each in merged if isinstance(each, Undefined)), None)
    if failed is not None:
        raise FrontendError(failed.message, range, failed.hint)
    names = [name for side in sides for name in side.scope.changed() if not name.startswith("$")]
    refined = _refinements(sides, set(names))
    for name in dict.fromkeys(names):
        pair = tuple(side.scope.find(name) for side in sides)
        c.scope.set(name, _merge_name(c, node, sides, pair, range, name))
    if Flow.RETURN in exits:
        _merge_result(c, node, sides, range)
    if len(sure(exits)) > 1:
        for kind in sorted(exits & EXITS):
            _merge_flag(c, node, sides, kind)
    for name, type in refined.items():
        c.refine(name, type)
    return exits, merged  # type: ignore[return-value]


def _merge_name(
    c: Compiler, node: Node, sides: Sequence[Side], pair: Any, range: SourceRange, name: str
) -> Sugared | Undefined:
    needed = [bool(side.exits & _KEEP) for side in sides]
    for value, side in zip(pair, sides):
        missing = value is None or isinstance(value, Undefined)
        # break and continue of an unrolled loop lead to code behind it that sees its variables.
        reaches = _KEEP if c.unrolling else FALLS
        if missing and side.exits & reaches:
            if isinstance(value, Undefined):
                return value
            which = "true" if side is sides[0] else "false"
            return Undefined(
                f"{name}: expected a value on every path, got none from the {which} branch",
                f"{name} = ... before the if",
            )
    known = [v for v, need in zip(pair, needed) if need and isinstance(v, Sugared)]
    if not known:
        return Undefined(f"{name}: expected a value, got none on the paths that lead here")
    if len(known) == 1:
        other = known[0]
        if not isinstance(other, Simple) and not any(needed):
            return other
        pair = tuple(v if n and isinstance(v, Sugared) else None for v, n in zip(pair, needed))
    return _merge(c, node, sides, pair, range, name)


def _merge(
    c: Compiler,
    node: Node,
    sides: Sequence[Side],
    pair: Any,
    range: SourceRange,
    name: str,
    declared: ty.Type | None = None,
    tests: bool = False,
) -> Sugared | Undefined:
    """One value of two; None stands for one that is never read. `declared`: the type of both, where
    they have no narrower one in common."""
    first, second = pair
    if first is not None and second is not None and first.key() == second.key():
        return first
    values: list[Value | None] = []
    for value, side in zip(pair, sides):
        if value is None:
            values.append(None)
            continue
        try:
            with c.within(side.block, side.scope):
                values.append(value.value(c, range))
        except FrontendError as error:
            if first is None or second is None:
                return value
            return Undefined(f"{name}: expected a value on both paths; {error.message}")
    _adopt_empty(c, values)
    _tuple_to_list(c, sides, values, range, name)
    types = [v.type for v in values if v is not None]
    for given, other in itertools.permutations(types, 2):
        if isinstance(other, ty.InterfaceType):
            implement(given, other)
    type = types[0] if len(types) == 1 else ty.unify(types[0], types[1])
    for side in sides:
        declared = declared or side.scope.declared_type(name)
    if type is None and declared is not None and all(ty.is_subtype(t, declared) for t in types):
        type = declared
    if type is None and tests and ty.BOOL in types:
        type = ty.union_of(types)
    if type is None:
        a, b = (t.annotation for t in types)
        return Undefined(
            f"{name}: expected one type on both paths, got {a} from the true branch and {b} from "
            "the false branch",
            _unify_hint(types),
        )
    return Simple(output(c, node, sides, values, type, name))


def _adopt_empty(c: Compiler, values: Sequence[Value | None]) -> None:
    """[] if x is None else x: what is empty and nowhere used has the type of the other."""
    for value, other in (values, values[::-1]):
        if value is None or other is None or value not in c.untyped or value.has_uses:
            continue
        wanted = ty.non_none(other.type)
        if isinstance(wanted, ty.ListType | ty.DictType) and type(value.type) is type(wanted):
            value.type = wanted


def _tuple_to_list(
    c: Compiler, sides: Sequence[Side], values: list[Value | None], range: SourceRange, name: str
) -> None:
    """A list of T on one path and a tuple of T on the other: lists, as in PyTorch."""
    for index, (value, other) in enumerate(list(zip(values, values[::-1]))):
        if value is None or other is None or not isinstance(other.type, ty.ListType):
            continue
        if isinstance(value.type, ty.TupleType) and set(value.type.elems) == {other.type.elem}:
            with c.within(sides[index].block, sides[index].scope):
                values[index] = c.convert(Simple(value), other.type, range, name)


def _unify_hint(types: Sequence[ty.Type]) -> str | None:
    if set(types) == {ty.INT, ty.FLOAT}:
        return "float(...) around the int"
    return f"a declaration before the if, as x: Union[{', '.join(t.annotation for t in types)}]"


def output(
    c: Compiler,
    node: Node,
    sides: Sequence[Side],
    values: Sequence[Value | None],
    type: ty.Type,
    name: str,
) -> Value:
    """One more output of an If; where a branch has no value it gives an uninitialised one."""
    for value, side in zip(values, sides):
        with c.within(side.block, side.scope):
            given = c.uninitialized(type) if value is None else value
        side.block.add_return(given)
    return node.add_output(type, name if name.isidentifier() else "")


def _refinements(sides: Sequence[Side], changed: set[str]) -> dict[str, ty.Type]:
    """What is known behind the If because only one branch gets there."""
    falling = [side for side in sides if Flow.FALL in side.exits]
    if len(falling) != 1:
        return {}
    scope = falling[0].scope
    known = {}
    for name in scope.refined:
        value = scope.names.get(name)
        if name not in changed and isinstance(value, Simple):
            known[name] = value.v.type
    return known


def _merge_result(c: Compiler, node: Node, sides: Sequence[Side], range: SourceRange) -> None:
    pair: list[Any] = [
        side.scope.find(RESULT) if Flow.RETURN in side.exits else None for side in sides
    ]
    if pair[0] is None and pair[1] is None:
        return
    if all(isinstance(v, Simple) for v in pair) and pair[0].v is pair[1].v:
        c.scope.set(RESULT, pair[0])
        return
    found = _merge(c, node, sides, tuple(pair), range, "return", c.declared)
    if isinstance(found, Undefined):
        raise FrontendError(found.message, range, found.hint)
    c.scope.set(RESULT, found)


def _merge_flag(c: Compiler, node: Node, sides: Sequence[Side], kind: str) -> None:
    flags = []
    for side in sides:
        with c.within(side.block, side.scope):
            flags.append(flag_value(c, side.scope, side.exits, kind))
    made = output(c, node, sides, flags, ty.BOOL, kind)
    c.scope.set(FLAGS[kind], Simple(made))


def flag_value(c: Compiler, scope: Scope, exits: frozenset[str], kind: str) -> Value:
    """Whether a block was left by an exit of this kind, at its end."""
    if kind not in exits:
        return c.constant(False)
    if sure(exits) == {kind}:
        return c.constant(True)
    found = scope.find(FLAGS[kind])
    return found.v if isinstance(found, Simple) else c.constant(True)


def exited(c: Compiler, exits: frozenset[str], among: frozenset[str] = EXITS) -> Value:
    """Whether any of these exits was taken."""
    taken = sorted(exits & among)
    if taken and sure(exits) <= among:
        return c.constant(True)
    value: Value | None = None
    for kind in taken:
        flag = flag_value(c, c.scope, exits, kind)
        value = flag if value is None else _or(c, value, flag)
    return c.constant(False) if value is None else value


def _or(c: Compiler, a: Value, b: Value) -> Value:
    return c.either(a, ty.BOOL, lambda: c.constant(True), lambda: b)


def then(
    c: Compiler, exits: frozenset[str], rest: Callable[[], frozenset[str]], range: SourceRange
) -> frozenset[str]:
    """What follows something with these exits: at once, never, or only if it did not exit."""
    if Flow.FALL not in exits:
        return exits
    leaving = exits & EXITS
    if not leaving:
        return rest() | (exits - FALLS)
    condition = exited(c, exits)
    node, sides = branch(c, condition, (lambda: leaving, rest), range)
    return join(c, node, sides, range)[0] | (exits - FALLS - EXITS)


# Conditional values ----------------------------------------------------------------------------


def refine_all(c: Compiler, facts: Facts) -> None:
    """Takes what a test told into the current scope."""
    for name, type in facts.items():
        c.refine(name, type)


def where_known(c: Compiler, facts: Facts, rest: Callable[[], Condition]) -> Condition:
    """`rest` where the facts hold, without keeping them."""
    if not facts:
        return rest()
    outer = c.scope
    inner = Scope(outer)
    with c.within(c.block, inner):
        refine_all(c, facts)
        found = rest()
    for name in inner.changed():
        outer.set(name, inner.names[name])
    return found


def choose(
    c: Compiler,
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

        where_known(c, facts, only)
        return box[0]
    results: list[Any] = []

    def side(emit: Callable[[], Sugared], facts: Facts) -> Callable[[], frozenset[str]]:
        def run() -> frozenset[str]:
            refine_all(c, facts)
            results.append(emit())
            return FALLS

        return run

    assert test.value is not None
    node, sides = branch(c, test.value, (side(yes, test.yes), side(no, test.no)), range)
    _, merged = join(c, node, sides, range, [(results[0], results[1])], tests)
    return merged[0]


def name_of(node: ast.expr) -> str | None:
    """The variable that an expression reads or (walrus) writes."""
    if isinstance(node, ast.NamedExpr):
        node = node.target
    return node.id if isinstance(node, ast.Name) else None


def set_result(c: Compiler, held: Sugared, range: SourceRange) -> None:
    """Makes `held` the result of the function."""
    declared = c.declared
    if declared is not None:
        held = Simple(c.convert(held, declared, range, "return", strict=True))
    c.scope.set(RESULT, held)
