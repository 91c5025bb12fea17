"""Statements. Each rule gives the exits of its statement (environment.Flow)."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.environment import FALLS, RAISES, Flow, sure
from weft.jit.frontend.language.control_flow import (
    EXITS,
    Condition,
    branch,
    join,
    refine_all,
    set_result,
    then,
)
from weft.jit.frontend.registry import statement, verb
from weft.jit.frontend.source.errors import UnknownOperator, fail
from weft.jit.frontend.source.refused import refuse
from weft.jit.frontend.values import Sugared
from weft.jit.ir.source import SourceRange


@verb("statements")
def statements(c: Compiler, nodes: Sequence[ast.stmt]) -> frozenset[str]:
    """Compiles statements; what cannot be reached is left out."""
    if not nodes:
        return FALLS
    first, rest = nodes[0], nodes[1:]
    if isinstance(first, ast.If):
        return _if(c, first, rest)
    exits = _one(c, first)
    index = 1
    while exits == FALLS and index < len(nodes):  # the common case, without recursion
        node = nodes[index]
        index += 1
        if isinstance(node, ast.If):
            return _if(c, node, nodes[index:])
        exits = _one(c, node)
    rest = nodes[index:]
    range = c.range(first)
    return then(c, exits, lambda: c.statements(rest), range) if rest else exits


def _one(c: Compiler, node: ast.stmt) -> frozenset[str]:
    rule = statement.get(type(node)) or refuse(c.code, node)
    c.depth += 1
    try:
        if c.depth > 200:
            fail("expected less deeply nested statements", c.range(node))
        with c.graph.at_range(c.range(node)):
            return rule(c, node)
    except UnknownOperator as error:
        return _raise_unknown(c, error)
    finally:
        c.depth -= 1


def _raise_unknown(c: Compiler, error: UnknownOperator) -> frozenset[str]:
    c.raise_error(NotImplementedError, c.constant(error.message), error.range)
    return RAISES


@statement(ast.Expr)
def _expression(c: Compiler, node: ast.Expr) -> frozenset[str]:
    if isinstance(node.value, ast.Constant):  # a docstring, or ...
        return FALLS
    c.expr(node.value)
    return FALLS


@statement(ast.Pass)
def _pass(c: Compiler, node: ast.Pass) -> frozenset[str]:
    return FALLS


# Exits ----------------------------------------------------------------------------------------


@statement(ast.Return)
def _return(c: Compiler, node: ast.Return) -> frozenset[str]:
    declared = c.declared
    held: Sugared = c.none() if node.value is None else c.expr(node.value, declared)
    set_result(c, held, c.range(node))
    return frozenset((Flow.RETURN,))


@statement(ast.Break)
def _break(c: Compiler, node: ast.Break) -> frozenset[str]:
    if not c.loops:
        fail("break: expected it inside a loop", c.range(node))
    return frozenset((Flow.BREAK,))


@statement(ast.Continue)
def _continue(c: Compiler, node: ast.Continue) -> frozenset[str]:
    if not c.loops:
        fail("continue: expected it inside a loop", c.range(node))
    return frozenset((Flow.CONTINUE,))


# Branches -------------------------------------------------------------------------------------


def _if(c: Compiler, node: ast.If, rest: Sequence[ast.stmt]) -> frozenset[str]:
    """An if together with what follows it in its block."""
    range = c.range(node)
    try:
        with c.graph.at_range(range):
            test = c.condition(node.test)
    except UnknownOperator as error:
        return _raise_unknown(c, error)
    if test.known is not None:
        refine_all(c, test.yes if test.known else test.no)
        exits = c.statements(node.body if test.known else node.orelse)
        return then(c, exits, lambda: c.statements(rest), range) if rest else exits
    return _dynamic_if(c, node, test, rest, range)


def _dynamic_if(
    c: Compiler, node: ast.If, test: Condition, rest: Sequence[ast.stmt], range: SourceRange
) -> frozenset[str]:
    def yes() -> frozenset[str]:
        refine_all(c, test.yes)
        return c.statements(node.body)

    def no() -> frozenset[str]:
        refine_all(c, test.no)
        return c.statements(node.orelse)

    assert test.value is not None
    if_node, sides = branch(c, test.value, (yes, no), range)
    falling = [Flow.FALL in side.exits for side in sides]
    if rest and sum(falling) == 1:
        other, through = sides[falling.index(False)], sides[falling.index(True)]
        if other.exits & EXITS:  # what follows belongs to the branch that gets there
            with c.within(through.block, through.scope):
                exits = then(c, through.exits, lambda: c.statements(rest), range)
            index = falling.index(True)
            sides[index] = through._replace(exits=exits)
            return join(c, if_node, sides, range)[0]
    exits = join(c, if_node, sides, range)[0]
    if not rest:
        return exits
    if sure(exits) == FALLS:
        exits = FALLS
    return then(c, exits, lambda: c.statements(rest), range)
