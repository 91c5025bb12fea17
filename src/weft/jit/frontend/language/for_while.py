"""for and while."""

from __future__ import annotations

import ast

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.environment import FALLS
from weft.jit.frontend.language import loops
from weft.jit.frontend.language.control_flow import Condition, refine_all
from weft.jit.frontend.language.iteration import Counted
from weft.jit.frontend.registry import statement
from weft.jit.frontend.values import Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value


@statement(ast.While)
def _while(c: Compiler, node: ast.While) -> frozenset[str]:
    range = c.range(node)
    assigned = loops.assigned_names([*node.body, node.test])
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

    plan = loops.Plan(
        trips=c.constant(loops.FOREVER),
        first=first.materialize(c),
        start=lambda step: refine_all(c, first.yes),
        again=None if first.known else again,
        body=lambda: c.statements(node.body),
        assigned=assigned,
        forever=first.known is True,
        wants_broke=bool(node.orelse),
    )
    exits = loops.run(c, plan, range)
    orelse = (lambda: c.statements(node.orelse)) if node.orelse else None
    return loops.finish(c, exits, orelse, range)


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
        exits = loops.unroll(c, source, bind, lambda: c.statements(node.body), range)
        return loops.finish(c, exits, orelse, range)
    names = loops.assigned_names([node.target, *node.body])
    plan = loops.over(c, source, bind, lambda: c.statements(node.body), names, bool(node.orelse))
    return loops.finish(c, loops.run(c, plan, range), orelse, range)
