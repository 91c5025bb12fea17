"""Statements, exceptions and functions within functions. Each rule gives the exits of its statement
(environment.Flow)."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.environment import FALLS, RAISES, Flow, Scope, sure
from weft.jit.frontend.language.control_flow import (
    EXITS,
    Condition,
    branch,
    join,
    refine_all,
    set_result,
    then,
)
from weft.jit.frontend.language.functions import body_result
from weft.jit.frontend.language.generic import bind
from weft.jit.frontend.language.strings import shown, text_of
from weft.jit.frontend.registry import expression, statement, verb
from weft.jit.frontend.source.errors import UnknownOperator, fail, refuse, refuse_form
from weft.jit.frontend.types.signatures import signature_of
from weft.jit.frontend.values import Arg, Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
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
    held = c.expr(node.value)
    if isinstance(held, Simple) and held.v.type is ty.TENSOR:
        made = held.v.node  # an ignored function without annotation may also return nothing
        if made is not None and made.kind == "prim::CallPython":
            held.v.type = ty.OptionalType(ty.TENSOR)
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


@verb("exception_class")
class ExceptionClass(Sugared):
    """A class of exceptions."""

    def __init__(self, cls: type[BaseException]) -> None:
        self.cls = cls

    def describe(self) -> str:
        return f"the exception class {self.cls.__name__}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        if call.kwargs:
            fail(f"{self.cls.__name__}: expected no keyword arguments, got one", call.range)
        return Exception_(self.cls, call.args)

    def key(self) -> Any:
        return ("exception", self.cls)


class Exception_(Sugared):
    """An exception that was made, and can only be raised."""

    def __init__(self, cls: type[BaseException], args: Sequence[Arg]) -> None:
        self.cls = cls
        self.args = args

    def describe(self) -> str:
        return f"an exception {self.cls.__name__}"

    def message(self, c: Compiler, range: SourceRange) -> Value:
        """Its text, as str() of the exception."""
        if not self.args:
            return c.constant("")
        if len(self.args) == 1:
            return text_of(c, self.args[0].value, range)
        pieces = ", ".join("{}" for _ in self.args)
        template = Arg(Simple(c.constant(f"({pieces})")), range)
        args = [Arg(shown(c, arg.value, range, "__repr__"), arg.range) for arg in self.args]
        return c.call_operator("aten::format", Call(range, [template, *args])).value(c, range)


@statement(ast.Raise)
def _raise(c: Compiler, node: ast.Raise) -> frozenset[str]:
    """raise E(...), raise E."""
    if node.cause is not None and not (
        isinstance(node.cause, ast.Constant) and node.cause.value is None
    ):
        refuse_form(c.code, node, "from")
    range = c.range(node)
    if node.exc is None:
        fail("raise: expected an exception, got none", range, "raise RuntimeError(message)")
    raised = c.expr(node.exc)
    if isinstance(raised, ExceptionClass):
        raised = Exception_(raised.cls, ())
    if not isinstance(raised, Exception_):
        fail(f"raise: expected an exception, got {raised.describe()}", range)
    c.raise_error(raised.cls, raised.message(c, range), range)
    return RAISES


@statement(ast.Assert)
def _assert(c: Compiler, node: ast.Assert) -> frozenset[str]:
    test = c.condition(node.test)
    range = c.range(node)
    if test.known is True:
        refine_all(c, test.yes)
        return FALLS
    if test.known is False:
        _raise_assertion(c, node.msg, range)
        return RAISES

    def holds() -> frozenset[str]:
        refine_all(c, test.yes)
        return FALLS

    def fails() -> frozenset[str]:
        refine_all(c, test.no)
        _raise_assertion(c, node.msg, range)
        return RAISES

    assert test.value is not None
    if_node, sides = branch(c, test.value, (holds, fails), range)
    join(c, if_node, sides, range)
    return FALLS


def _raise_assertion(c: Compiler, message: ast.expr | None, range: SourceRange) -> None:
    """What a failed assert does."""
    text = c.constant("") if message is None else text_of(c, c.expr(message), range)
    c.raise_error(AssertionError, text, range)


_MAX_DEPTH = 16


class LocalFunction(Sugared):
    """A function that sees the variables around it, as they are when it is called."""

    def __init__(self, c: Compiler, node: ast.FunctionDef | ast.Lambda) -> None:
        self.node = node
        self.code, self.resolver = c.code, c.resolver
        self.scope = c.scope
        self.active = 0
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            fail("local function: expected no decorators, got one", c.range(node))
        self.signature = signature_of(node, c.code, c.annotations, {})

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.node.name if isinstance(self.node, ast.FunctionDef) else "<lambda>"

    def describe(self) -> str:
        return f"the local function {self.name}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        if self.active >= _MAX_DEPTH:
            fail(
                f"{self.name}: expected no recursion in a local function",
                call.range,
                "a function of the module",
            )
        scope = Scope(self._visible_scope(c))
        for name, value in bind(c, self.name, self.signature, call).items():
            scope.set(name, value)
        self.active += 1
        try:
            with c.as_function(self.code, self.resolver, scope, self.signature.returns):
                return body_result(c, self.node)
        finally:
            self.active -= 1

    def _visible_scope(self, c: Compiler) -> Scope:
        """The scope of the definition as seen from the call: the innermost of both chains."""
        scope: Scope | None = c.scope
        while scope is not None and scope is not self.scope:
            scope = scope.parent
        return c.scope if scope is not None else self.scope

    def key(self) -> Any:
        return ("local function", id(self))


@expression(ast.Lambda)
def _lambda(c: Compiler, node: ast.Lambda, hint: ty.Type | None) -> Sugared:
    return LocalFunction(c, node)


@statement(ast.FunctionDef)
def _local_function(c: Compiler, node: ast.FunctionDef) -> frozenset[str]:
    c.scope.set(node.name, LocalFunction(c, node))
    return FALLS
