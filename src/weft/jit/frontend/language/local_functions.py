"""Lambdas and functions defined inside a function: their body stands in place of each call."""

from __future__ import annotations

import ast
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.environment import FALLS, Scope
from weft.jit.frontend.language.functions import body_result
from weft.jit.frontend.language.generic import bind
from weft.jit.frontend.registry import expression, statement
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.types.signatures import signature_of
from weft.jit.frontend.values import Call, Sugared
from weft.jit.ir import types as ty

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
