"""The compiler of one function.

Everything that calls itself back while a program is compiled is a method here: the rest of the
frontend are rules of these methods (registry.py), functions that take a compiler first.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from weft.jit.frontend.builder import GraphBuilder
from weft.jit.frontend.environment import Scope, Undefined
from weft.jit.frontend.registry import expression, verb
from weft.jit.frontend.source.code import Code
from weft.jit.frontend.source.errors import fail, refuse
from weft.jit.frontend.source.resolver import MISSING, Resolver
from weft.jit.frontend.types.annotations import Annotations
from weft.jit.frontend.values import Call, Path, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Graph, Value
from weft.jit.ir.source import SourceRange

if TYPE_CHECKING:
    from weft.jit.frontend.language.control_flow import Condition
    from weft.jit.frontend.language.iteration import Source

_MAX_DEPTH = 4_000


class Compiler(GraphBuilder):
    """Compiles into one graph."""

    def __init__(
        self,
        graph: Graph,
        code: Code,
        resolver: Resolver,
        name: str,
        generic: bool = False,
        declared: ty.Type | None = None,
    ) -> None:
        super().__init__(graph)
        self.code = code
        self.range = code.range  # where a node of the syntax tree stands
        self.resolver = resolver
        self.name = name
        self.annotations = Annotations(code, resolver, generic)
        self.declared = declared  # the type of the result, where it is declared
        self.loops = 0
        self.repeating = 0  # loops around this place, those around an inlined function included
        self.depth = 0
        self.inlined = 0  # bodies around this place that stand in place of their calls
        self.unrolling = False  # in the body of a loop that is unrolled
        self.owner: Any = None  # the Python class whose method this is, for super()

    # Syntax ---------------------------------------------------------------------------------------

    def expr(self, node: ast.expr, hint: ty.Type | None = None) -> Sugared:
        """Compiles an expression. `hint` is the type wanted of it: what [] and {} become."""
        if type(node) is ast.Name:  # a variable: nothing is made
            known = self.scope.find(node.id)
            if isinstance(known, Simple):
                return known
        rule = expression.get(type(node)) or refuse(self.code, node)
        graph, range = self.graph, self.code.range(node)
        before, graph.range = graph.range, range  # as at_range does
        self.depth += 1
        try:
            if self.depth > _MAX_DEPTH:
                fail("expected a less deeply nested expression", range)
            return rule(self, node, hint)
        finally:
            self.depth -= 1
            graph.range = before

    def argument(self, node: ast.expr) -> Sugared:
        """Compiles an argument of a call; a generator is a list there."""
        if isinstance(node, ast.GeneratorExp):
            return expression[ast.ListComp](self, node, None)
        return self.expr(node)

    def statements(self, nodes: Sequence[ast.stmt]) -> frozenset[str]:
        """Compiles statements; gives the kinds of their exits. What cannot be reached is left
        out."""
        return verb["statements"](self, nodes)

    def condition(self, node: ast.expr) -> Condition:
        """Compiles a test."""
        return verb["condition"](self, node)

    def assign(self, target: ast.expr, held: Sugared, range: SourceRange) -> None:
        """target = held."""
        verb["assign"](self, target, held, range)

    # Values ---------------------------------------------------------------------------------------

    def sugar(self, obj: Any, range: SourceRange, what: str) -> Sugared:
        """What a Python object means where it is read; messages call it `what`."""
        return verb["sugar"](self, obj, range, what)

    def type_of(self, value: Sugared, range: SourceRange) -> ty.Type:
        """The type of a value; tuples are not made for it."""
        if isinstance(value, Simple):
            return value.v.type
        if isinstance(value, TupleLiteral):
            if value.type is not None:
                return value.type
            return ty.TupleType(tuple(self.type_of(item, range) for item in value.items))
        return value.value(self, range).type

    def convert(
        self, value: Sugared, wanted: ty.Type, range: SourceRange, what: str, strict: bool = False
    ) -> Value:
        """The value as one of the wanted type, with the conversions of a call unless `strict`."""
        return verb["convert"](self, value, wanted, range, what, strict)

    def truth(self, value: Sugared, range: SourceRange) -> Value:
        """bool(value)."""
        return verb["truth"](self, value, range)

    def get_attr(self, v: Value, name: str, range: SourceRange) -> Sugared:
        """v.name."""
        rule = verb.get(("get_attr", type(v.type))) or verb["get_attr"]
        return rule(self, v, name, range)

    def has_attr(self, type_: ty.Type, name: str) -> bool:
        """Whether values of the type have the attribute."""
        rule = verb.get(("has_attr", type(type_))) or verb["has_attr"]
        return rule(type_, name)

    def set_attr(self, v: Value, name: str, held: Sugared, range: SourceRange) -> None:
        """v.name = held."""
        rule = verb.get(("set_attr", type(v.type))) or verb["set_attr"]
        rule(self, v, name, held, range)

    def get_item(
        self, owner: Sugared, index: Sugared, range: SourceRange, hint: ty.Type | None = None
    ) -> Sugared:
        """owner[index], where a value of type `hint` is wanted."""
        return verb["get_item"](self, owner, index, range, hint)

    def set_item(self, owner: Sugared, index: Sugared, held: Sugared, range: SourceRange) -> None:
        """owner[index] = held."""
        verb["set_item"](self, owner, index, held, range)

    def items(self, v: Value, range: SourceRange) -> list[Sugared] | None:
        """The items of a value, where their number is known now; None otherwise."""
        if isinstance(v.type, ty.TupleType):
            return self.unpack_tuple(v, range)
        rule = verb.get(("items", type(v.type)))
        return None if rule is None else rule(self, v, range)

    def iterate(self, value: Sugared, range: SourceRange) -> Source:
        """The items of anything that can be looped over; FrontendError for what cannot."""
        return verb["iterate"](self, value, range)

    def as_list(self, value: Sugared, range: SourceRange, hint: ty.Type | None = None) -> Sugared:
        """A new list of the items of anything that can be looped over."""
        return verb["as_list"](self, value, range, hint)

    def make_list(
        self, items: Sequence[Sugared], wanted: ty.Type | None, range: SourceRange
    ) -> Value:
        """A list of items, of the wanted type where they fit it; an empty one holds tensors unless
        something else is wanted."""
        return verb["make_list"](self, items, wanted, range)

    # Calls ----------------------------------------------------------------------------------------

    def apply(self, name: str, range: SourceRange, *values: Sugared) -> Sugared:
        """A call of the operator `name` with values, whose place is the call's."""
        return verb["call_operator"](self, name, Call.of(range, *values))

    def call_operator(
        self, name: str, call: Call, overloads: Sequence[Any] | None = None
    ) -> Sugared:
        """A call of the operator `name` (aten::add); FrontendError lists the overloads if none
        fits."""
        return verb["call_operator"](self, name, call, overloads)

    def call(
        self, function: Callable[..., Any], range: SourceRange, *args: Sugared, **kwargs: Any
    ) -> Sugared:
        """A call of a Python function of weft's own, as those of prelude.py."""
        return verb["call"](self, function, range, *args, **kwargs)

    def binary(
        self, op: type[ast.operator], left: Sugared, right: Sugared, range: SourceRange
    ) -> Sugared:
        """left <op> right."""
        return verb["binary"](self, op, left, right, range)

    def compare(self, op: ast.cmpop, left: Sugared, right: Sugared, range: SourceRange) -> Sugared:
        """left <op> right for a comparison, `in` and `is`."""
        return verb["compare"](self, op, left, right, range)

    # Names ------------------------------------------------------------------------------------

    def lookup(self, name: str, range: SourceRange) -> Sugared:
        """What a name means here; FrontendError when it means nothing."""
        found = self.scope.find(name)
        if isinstance(found, Undefined):
            fail(found.message, range, found.hint)
        if found is not None:
            return found
        obj = self.resolver.find(name)
        if obj is MISSING:
            fail(f"expected a name that is defined, got {name!r}", range)
        return self.sugar(obj, range, name)

    def refine(self, name: str, type: ty.Type) -> None:
        """From here on the variable is known to be of a narrower type."""
        found = self.scope.find(name)
        if not isinstance(found, Simple) or found.v.type == type:
            return
        v = self.cast(found.v, type)
        known = Path(v, found.epoch, True) if isinstance(found, Path) else Simple(v)
        self.scope.refine(name, known)

    @contextmanager
    def as_function(
        self, code: Code, resolver: Resolver, scope: Scope, declared: ty.Type | None
    ) -> Iterator[None]:
        """Inside, the source of another function is compiled into the current block."""
        saved = self.code, self.resolver, self.annotations, self.scope, self.declared, self.loops
        self.annotations = Annotations(code, resolver, self.annotations.generic)
        self.code, self.resolver, self.scope = code, resolver, scope
        self.range = code.range
        self.declared, self.loops = declared, 0
        try:
            yield
        finally:
            self.code, self.resolver, self.annotations, self.scope, self.declared, self.loops = (
                saved
            )
            self.range = self.code.range
