"""Loops: for, while, counted and unrolled. What a body assigns is carried from step to step."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.environment import FALLS, FLAGS, RESULT, Flow, Scope, Undefined, sure
from weft.jit.frontend.language.control_flow import (
    Condition,
    branch,
    exited,
    flag_value,
    join,
    refine_all,
    then,
)
from weft.jit.frontend.language.iteration import Counted
from weft.jit.frontend.registry import statement
from weft.jit.frontend.source.errors import FrontendError, fail
from weft.jit.frontend.values import Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Node, Value
from weft.jit.ir.record import NamedTuple
from weft.jit.ir.source import SourceRange

FOREVER = 9223372036854775807
_LEAVE = frozenset((Flow.BREAK, Flow.RETURN))
_ATTEMPTS = 6


class Plan(NamedTuple):
    """A loop to compile. `start` is run in the body with the number of the step; `again` gives the
    condition for another step (None: until the count is reached)."""

    trips: Value
    first: Value
    start: Callable[[Value], None]
    again: Callable[[], Value] | None
    body: Callable[[], frozenset[str]]
    assigned: Sequence[str]
    forever: bool = False
    wants_broke: bool = False


def over(
    c: Compiler,
    source: Counted,
    bind: Callable[[Sugared], None],
    body: Callable[[], frozenset[str]],
    assigned: Sequence[str],
    wants_broke: bool = False,
) -> Plan:
    """A loop over items whose number is known at run time."""
    return Plan(
        source.length, c.constant(True), lambda step: bind(source.item(step)), None, body,
        assigned, wants_broke=wants_broke,
    )  # fmt: skip


class _Carried(NamedTuple):
    name: str
    before: Value
    type: ty.Type


def assigned_names(nodes: Sequence[ast.AST]) -> list[str]:
    """Names that statements may assign, in order; those of nested functions are their own."""
    found: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            found[node.id] = None
        if isinstance(node, ast.FunctionDef):
            found[node.name] = None
            return
        if isinstance(node, ast.Lambda | ast.ListComp | ast.DictComp | ast.GeneratorExp):
            for inner in ast.walk(node):
                if isinstance(inner, ast.NamedExpr) and isinstance(inner.target, ast.Name):
                    found[inner.target.id] = None
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    for node in nodes:
        visit(node)
    return list(found)


@contextmanager
def repeated(c: Compiler) -> Iterator[None]:
    """Inside, what is compiled may run again and again."""
    c.repeating += 1
    try:
        yield
    finally:
        c.repeating -= 1


@contextmanager
def _inside_loop(c: Compiler, unrolling: bool) -> Iterator[None]:
    """The body of a loop, which break and continue may leave."""
    before, c.unrolling = c.unrolling, unrolling
    c.loops += 1
    try:
        yield
    finally:
        c.loops -= 1
        c.unrolling = before


def run(c: Compiler, plan: Plan, range: SourceRange) -> frozenset[str]:
    """Compiles the loop; gives its exits, BREAK among them only if `wants_broke`."""
    forced: dict[str, ty.Type | Undefined] = {}  # wider types; and names that only a step may use
    for _ in builtin_range(_ATTEMPTS):
        node, carried = _open(c, plan, forced, range)
        scope = Scope(c.scope)
        for name, each in forced.items():
            if isinstance(each, Undefined):
                scope.set(name, each)
        wider, exits = _body(c, plan, node, carried, scope, range)
        if not wider:
            return _close(c, plan, node, carried, scope, exits, forced, range)
        forced.update(wider)
        node.destroy()
    fail("loop: expected variables whose types do not change from step to step", range)


builtin_range = range


def _open(
    c: Compiler, plan: Plan, forced: dict[str, ty.Type | Undefined], range: SourceRange
) -> tuple[Node, list[_Carried]]:
    carried = []
    for name in plan.assigned:
        found, known = c.scope.find(name), forced.get(name)
        if not isinstance(found, Sugared) or isinstance(known, Undefined):
            continue
        try:
            before = found.value(c, range)
        except FrontendError:
            continue
        # What is known better than declared stays so, unless a step forgets it.
        carried.append(_Carried(name, before, known or before.type))
    inputs = [plan.trips, plan.first, *(each.before for each in carried)]
    node = c.node("prim::Loop", inputs, (), range=range)
    return node, carried


def _body(
    c: Compiler,
    plan: Plan,
    node: Node,
    carried: Sequence[_Carried],
    scope: Scope,
    range: SourceRange,
) -> tuple[dict[str, ty.Type | Undefined], frozenset[str]]:
    """Compiles the body. Gives the names whose types must be wider, or that cannot be carried, and
    its exits."""
    block = node.add_block()
    step = block.add_param(ty.INT, "i")
    for each in carried:
        scope.set(each.name, Simple(block.add_param(each.type, each.name)))
    with c.within(block, scope), repeated(c):
        c.epoch += 1
        plan.start(step)
        with _inside_loop(c, unrolling=False):
            exits = plan.body()
        wider: dict[str, ty.Type | Undefined] = {}
        finals = []
        for index, each in enumerate(carried):
            final = _final(c, each, scope, block.params[index + 1], exits, range)
            if isinstance(final, Undefined):
                wider[each.name] = final
                continue
            finals.append(final)
            if not ty.is_subtype(final.type, each.type):
                wider[each.name] = _wider(each, final, c.scope.declared_type(each.name))
        if wider:
            return wider, exits
        condition = _condition(c, plan, exits)
    block.set_returns([condition, *finals])
    return {}, exits


def _final(
    c: Compiler,
    each: _Carried,
    scope: Scope,
    param: Value,
    exits: frozenset[str],
    range: SourceRange,
) -> Value | Undefined:
    if not sure(exits) - {Flow.RETURN}:
        return param
    found = scope.find(each.name)
    assert found is not None, each.name
    return found if isinstance(found, Undefined) else found.value(c, range)


def _wider(each: _Carried, final: Value, declared: ty.Type | None) -> ty.Type | Undefined:
    type = ty.unify(each.type, final.type)
    if declared is not None and all(ty.is_subtype(t, declared) for t in (each.type, final.type)):
        type = declared
    if type is None or type == each.type:
        before, after = each.type.annotation, final.type.annotation
        hint = f"{each.name}: Union[{before}, {after}] = ... before the loop"
        if {each.type, final.type} == {ty.INT, ty.FLOAT}:
            hint = f"a float before the loop, as {each.name} = 0.0"
        return Undefined(
            f"{each.name}: expected the same type at each step of the loop, got {before} before it "
            f"and {after} behind a step",
            hint,
        )
    return type


def _condition(c: Compiler, plan: Plan, exits: frozenset[str]) -> Value:
    """Whether another step follows, at the end of the body."""
    leaves = exits & _LEAVE
    if sure(exits) <= _LEAVE and leaves:
        return c.constant(False)
    if not leaves:
        return plan.again() if plan.again is not None else c.constant(True)
    left = exited(c, exits, _LEAVE)
    again = plan.again or (lambda: c.constant(True))
    return c.either(left, ty.BOOL, lambda: c.constant(False), again)


def _close(
    c: Compiler,
    plan: Plan,
    node: Node,
    carried: Sequence[_Carried],
    scope: Scope,
    exits: frozenset[str],
    forced: dict[str, ty.Type | Undefined],
    range: SourceRange,
) -> frozenset[str]:
    """Gives the loop its outputs and sets the names behind it."""
    block = node.blocks[0]
    known = {each.name for each in carried}
    for name in scope.changed():
        if not name.startswith("$") and name not in known:
            message = (
                f"{name}: expected a value on every path, got none where the loop makes no step"
            )
            why = forced.get(name)
            if not isinstance(why, Undefined):
                why = Undefined(message, f"{name} = ... before the loop")
            c.scope.set(name, why)
    for each in carried:
        c.scope.set(each.name, Simple(node.add_output(each.type, each.name)))
    wanted = [Flow.RETURN] if Flow.RETURN in exits else []
    if plan.wants_broke and Flow.BREAK in exits:
        wanted.append(Flow.BREAK)
    for kind in wanted:
        with c.within(block, scope):
            flag = flag_value(c, scope, exits, kind)
        _carry(c, node, flag, ty.BOOL, FLAGS[kind], False)
    if Flow.RETURN in exits:
        result = scope.find(RESULT)
        if isinstance(result, Sugared):
            with c.within(block, scope):
                value = result.value(c, range)
            _carry(c, node, value, value.type, RESULT, None)
    falls = not plan.forever or Flow.BREAK in exits
    out = set(wanted)
    if falls:
        out.add(Flow.FALL)
    return frozenset(out) or frozenset((Flow.RAISE,))


def _carry(c: Compiler, node: Node, value: Value, type: ty.Type, name: str, start: Any) -> None:
    """One more carried value, of which the body never reads the one before."""
    with c.graph.inserting(before=node):
        first = c.uninitialized(type) if start is None else c.constant(start)
    node.add_input(first)
    block = node.blocks[0]
    block.add_param(type, name.strip("$"))
    block.add_return(value)
    c.scope.set(name, Simple(node.add_output(type, name.strip("$"))))


def unroll(
    c: Compiler,
    items: Sequence[Sugared],
    bind: Callable[[Sugared], None],
    body: Callable[[], frozenset[str]],
    range: SourceRange,
) -> frozenset[str]:
    """The body once for every item; gives its exits without CONTINUE."""
    if not items:
        return FALLS

    def step() -> frozenset[str]:
        bind(items[0])
        with _inside_loop(c, unrolling=True), repeated(c):
            exits = body()
        return (exits - {Flow.CONTINUE}) | FALLS if Flow.CONTINUE in exits else exits

    return then(c, step(), lambda: unroll(c, items[1:], bind, body, range), range)


def finish(
    c: Compiler,
    exits: frozenset[str],
    orelse: Callable[[], frozenset[str]] | None,
    range: SourceRange,
) -> frozenset[str]:
    """The exits of the whole statement: `else` runs unless the loop was left by break."""
    if orelse is not None and Flow.BREAK not in exits:
        return then(c, exits, orelse, range)
    if Flow.BREAK not in exits:
        return exits
    left = (exits - {Flow.BREAK}) | FALLS
    if orelse is None or Flow.FALL not in exits:
        return left
    otherwise = orelse

    def unless_broke() -> frozenset[str]:
        broke = flag_value(c, c.scope, exits, Flow.BREAK)
        node, sides = branch(c, broke, (lambda: FALLS, otherwise), range)
        return join(c, node, sides, range)[0]

    return then(c, left, unless_broke, range)


@statement(ast.While)
def _while(c: Compiler, node: ast.While) -> frozenset[str]:
    range = c.range(node)
    assigned = assigned_names([*node.body, node.test])
    used = {each.id for each in ast.walk(node.test) if isinstance(each, ast.Name)}
    changes = not used.isdisjoint(assigned)
    if changes and _tells_something(c, node.test):
        return _while_inside(c, node)
    first = c.condition(node.test)
    if first.known is not None and changes:  # known of the first step only
        first = Condition(c.constant(first.known))
    if first.known is False:
        return c.statements(node.orelse) if node.orelse else FALLS

    def again() -> Value:
        return c.condition(node.test).materialize(c)

    plan = Plan(
        trips=c.constant(FOREVER),
        first=first.materialize(c),
        start=lambda step: refine_all(c, first.yes),
        again=None if first.known else again,
        body=lambda: c.statements(node.body),
        assigned=assigned,
        forever=first.known is True,
        wants_broke=bool(node.orelse),
    )
    exits = run(c, plan, range)
    orelse = (lambda: c.statements(node.orelse)) if node.orelse else None
    return finish(c, exits, orelse, range)


def _tells_something(c: Compiler, test: ast.expr) -> bool:
    """Whether a test may tell about the types of variables, or sets some (`:=`)."""
    if isinstance(test, ast.Name):
        known = c.scope.find(test.id)
        return not isinstance(known, Simple) or known.v.type is not ty.BOOL
    return any(
        isinstance(each, ast.Is | ast.IsNot | ast.NamedExpr)
        or (isinstance(each, ast.Call) and ast.unparse(each.func).endswith("isinstance"))
        for each in ast.walk(test)
    )


def _while_inside(c: Compiler, node: ast.While) -> frozenset[str]:
    """while x is not None: the test stands inside the loop, where x has all its types:
    while True: if test: ... else: break."""
    leave = ast.copy_location(ast.Break(), node)
    inner = ast.copy_location(ast.If(node.test, node.body, [*node.orelse, leave]), node)
    always = ast.copy_location(ast.Constant(True), node.test)
    return _while(c, ast.copy_location(ast.While(always, [inner], []), node))


@statement(ast.For)
def _for(c: Compiler, node: ast.For) -> frozenset[str]:
    range = c.range(node)
    source = c.iterate(c.expr(node.iter), c.range(node.iter))
    orelse = (lambda: c.statements(node.orelse)) if node.orelse else None

    def bind(item: Sugared) -> None:
        c.assign(node.target, item, c.range(node.target))

    if not isinstance(source, Counted):
        exits = unroll(c, source, bind, lambda: c.statements(node.body), range)
        return finish(c, exits, orelse, range)
    names = assigned_names([node.target, *node.body])
    plan = over(c, source, bind, lambda: c.statements(node.body), names, bool(node.orelse))
    return finish(c, run(c, plan, range), orelse, range)
