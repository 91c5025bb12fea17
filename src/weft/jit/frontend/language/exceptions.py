"""raise and assert."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.environment import FALLS, RAISES
from weft.jit.frontend.language.control_flow import branch, join, refine_all
from weft.jit.frontend.language.texts import shown, text_of
from weft.jit.frontend.registry import statement, verb
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.source.refused import refuse_form
from weft.jit.frontend.values import Arg, Call, Simple, Sugared
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


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
