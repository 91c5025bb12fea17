"""The language of algebra rules: small expressions that match nodes.

    "t(t(x))"                                     aten::t of aten::t of anything
    "transpose.int(transpose.int(x, A, B), A, B)"  the same constants A and B in both
    "add.int(x, 0)"                               with the constant 0
    "prim.max.int(x, x)"                          another namespace; the same value twice

A lower-case name is any value, an upper-case one any constant; a name that comes twice is the same
value, or a constant equal in type and bits. `name._` is any overload. Arguments are those of the
schema, all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from typing import Any

from weft.jit import schemas
from weft.jit.ir import Graph, Node, Type, Value, bind, substitute
from weft.jit.ir.fresh_stack import parse
from weft.jit.ir.literals import text_of
from weft.jit.ir.record import record
from weft.jit.passes.constants import constant_of

_NAMESPACES = frozenset(("prim", "aten", "weft"))


@record(frozen=True)
class Variable:
    """Any value, or any constant."""

    name: str
    constant: bool


@record(frozen=True)
class Literal:
    """A constant of this type and these bits."""

    value: Any


@record(frozen=True)
class Call:
    """A node of the kind; of any overload where `kind` ends in "._"."""

    kind: str
    args: tuple[Variable | Literal | Call, ...]

    def accepts(self, kind: str) -> bool:
        """Whether a node of that kind may be meant."""
        if self.kind.endswith("._"):
            return kind.partition(".")[0] == self.kind[:-2]
        return kind == self.kind


Pattern = Variable | Literal | Call


@cache
def parse_pattern(text: str) -> Pattern:
    """The pattern of a text; ValueError where it is none."""
    try:
        return _pattern(parse(text, mode="eval").body)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"pattern: expected calls, names and numbers, got {text!r}") from error


def _pattern(tree: ast.expr) -> Pattern:
    if isinstance(tree, ast.Name):
        return Variable(tree.id, tree.id.isupper())
    if isinstance(tree, ast.Call):
        return Call(kind_of(".".join(_path(tree.func))), tuple(map(_pattern, tree.args)))
    return Literal(ast.literal_eval(tree))


def kind_of(name: str) -> str:
    """The kind that a pattern calls so: "add.int" is aten::add.int, "prim.device" prim::device."""
    first, _, rest = name.partition(".")
    return f"{first}::{rest}" if first in _NAMESPACES else f"aten::{name}"


def _path(tree: ast.expr) -> Iterator[str]:
    if isinstance(tree, ast.Attribute):
        yield from _path(tree.value)
        yield tree.attr
    elif isinstance(tree, ast.Name):
        yield tree.id
    else:
        raise ValueError("a name")


@record
class Match:
    """What a pattern found: the values of its variables."""

    root: Node
    values: dict[str, Value]

    @property
    def graph(self) -> Graph:
        """The graph it was found in."""
        return self.root.graph

    @property
    def output(self) -> Value:
        """What the rule replaces."""
        return self.root.output

    def const(self, name: str) -> Any:
        """The value of a constant; None too where the variable is a list made of constants."""
        return constant_of(self.values[name])


def match(pattern: Pattern, node: Node) -> Match | None:
    """The match of a pattern with a node as its root."""
    values: dict[str, Value] = {}
    fits = isinstance(pattern, Call) and _match_call(pattern, node, values)
    return Match(node, values) if fits else None


def _match_call(pattern: Call, node: Node, values: dict[str, Value]) -> bool:
    if not pattern.accepts(node.kind) or len(pattern.args) != len(node.inputs):
        return False
    return all(_match(part, value, values) for part, value in zip(pattern.args, node.inputs))


def _match(pattern: Pattern, value: Value, values: dict[str, Value]) -> bool:
    if isinstance(pattern, Literal):
        return value.is_constant and text_of(value.constant) == text_of(pattern.value)
    if isinstance(pattern, Variable):
        if pattern.constant and constant_of(value) is None:
            return False
        known = values.setdefault(pattern.name, value)
        return known is value or (
            pattern.constant and text_of(constant_of(known)) == text_of(constant_of(value))
        )
    if value.node is None or len(value.node.outputs) != 1:
        return False
    return _match_call(pattern, value.node, values)


def build(pattern: Pattern, found: Match) -> Value:
    """The value of a pattern, its nodes made at the insertion point of the graph."""
    if isinstance(pattern, Variable):
        return found.values[pattern.name]
    graph = found.graph
    if isinstance(pattern, Literal):
        return graph.constant(pattern.value)
    inputs = [build(part, found) for part in pattern.args]
    return graph.emit(pattern.kind, inputs, [_result_type(pattern.kind, inputs)]).output


def _result_type(kind: str, inputs: list[Value]) -> Type:
    schema = schemas.of(kind).schema
    bindings: dict[str, Type] = {}
    for arg, value in zip(schema.args, inputs):
        bind(arg.type, value.type, bindings)
    return substitute(schema.returns[0].type, bindings)
