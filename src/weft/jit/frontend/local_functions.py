"""Lambdas and functions defined inside a function: their body stands in place of each call."""

from __future__ import annotations

import ast
from typing import Any

from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.environment import Scope
from weft.jit.frontend.errors import fail
from weft.jit.frontend.functions import body_result
from weft.jit.frontend.generic import bind
from weft.jit.frontend.signatures import signature_of
from weft.jit.frontend.sugared import Call, Sugared

_MAX_DEPTH = 16


class LocalFunction(Sugared):
    """A function that sees the variables around it, as they are when it is called."""

    def __init__(self, e: Emitter, node: ast.FunctionDef | ast.Lambda) -> None:
        self.node = node
        self.code, self.resolver = e.code, e.resolver
        self.scope = e.scope
        self.active = 0
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            fail("local function: expected no decorators, got one", e.range(node))
        self.signature = signature_of(node, e.code, e.annotations, {})

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.node.name if isinstance(self.node, ast.FunctionDef) else "<lambda>"

    def describe(self) -> str:
        return f"the local function {self.name}"

    def call(self, e: Emitter, call: Call) -> Sugared:
        if self.active >= _MAX_DEPTH:
            fail(
                f"{self.name}: expected no recursion in a local function",
                call.range,
                "a function of the module",
            )
        scope = Scope(self._visible_scope(e))
        for name, value in bind(e, self.name, self.signature, call).items():
            scope.set(name, value)
        self.active += 1
        try:
            with e.as_function(self.code, self.resolver, scope, self.signature.returns):
                return body_result(e, self.node)
        finally:
            self.active -= 1

    def _visible_scope(self, e: Emitter) -> Scope:
        """The scope of the definition as seen from the call: the innermost of both chains."""
        scope: Scope | None = e.scope
        while scope is not None and scope is not self.scope:
            scope = scope.parent
        return e.scope if scope is not None else self.scope

    def key(self) -> Any:
        return ("local function", id(self))
