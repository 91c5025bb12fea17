"""Lambdas and functions defined inside a function: their body stands in place of each call."""

from __future__ import annotations

import ast
from typing import Any

from weft.jit.frontend.conversions import coerce
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.environment import Scope
from weft.jit.frontend.errors import fail
from weft.jit.frontend.functions import body_result
from weft.jit.frontend.objects import sugar
from weft.jit.frontend.signatures import signature_of
from weft.jit.frontend.sugared import Arg, Call, Simple, Sugared
from weft.jit.ir import types as ty

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
        for name, value in self._bind(e, call).items():
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

    def _bind(self, e: Emitter, call: Call) -> dict[str, Sugared]:
        given, rest = list(call.args), dict(call.kwargs)
        bound: dict[str, Sugared] = {}
        for parameter in self.signature.parameters:
            if given and not parameter.kwarg_only:
                arg = given.pop(0)
            elif parameter.name in rest:
                arg = rest.pop(parameter.name)
            elif parameter.has_default:
                arg = Arg(sugar(e, parameter.default, call.range, parameter.name), call.range)
            else:
                fail(f"{self.name}: expected an argument '{parameter.name}', got none", call.range)
            value = arg.value
            if isinstance(parameter.type, ty.Type):
                value = Simple(coerce(e, value, parameter.type, arg.range, parameter.name))
            bound[parameter.name] = value
        if given or rest:
            count = len(self.signature.parameters)
            fail(
                f"{self.name}: expected {count} arguments, got {len(call.args) + len(call.kwargs)}",
                call.range,
            )
        return bound

    def key(self) -> Any:
        return ("local function", id(self))
