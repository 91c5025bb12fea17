"""Checks a graph: structure, dominance, uses, and the types of every node.

    verify(graph)                    structure and the nodes of the IR itself
    verify(graph, schemas.of)        operators too, against their schemas

A VerifyError names the node, its place in the source, and what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from weft.jit.ir import types as ty
from weft.jit.ir.graph import Block, Graph, Node, Use, Value
from weft.jit.ir.node_rules import RULES, Mismatch
from weft.jit.ir.printer import node_line
from weft.jit.ir.relations import bind, is_subtype, substitute

# Gives the operator of a kind, or raises KeyError.
Operators = Callable[[str], Any]


class VerifyError(ValueError):
    """A graph that breaks a rule of the IR."""

    def __init__(self, place: Node | Block | Value, problem: str) -> None:
        super().__init__(f"verify: {problem}\n  in {_show(place)}")


def _show(place: Node | Block | Value) -> str:
    if isinstance(place, Node):
        return node_line(place)
    if isinstance(place, Block):
        return f"a block of {_show(place.node)}" if place.node is not None else "the graph"
    return repr(place)


def verify(graph: Graph, operators: Operators | None = None) -> None:
    """Raises VerifyError for the first rule that the graph breaks."""
    checker = _Checker(graph, operators)
    checker.block(graph.block, set())
    checker.uses()


class _Checker:
    def __init__(self, graph: Graph, operators: Operators | None) -> None:
        self.graph = graph
        self.operators = operators
        self.names: dict[str, Value] = {}
        self.found_uses: dict[Value, set[Use]] = {}

    def block(self, block: Block, visible: set[Value]) -> None:
        """A block in which the values of the blocks around it are visible."""
        if block.graph is not self.graph:
            raise VerifyError(block, "expected a block of this graph, got one of another")
        inside = set(visible)
        for param in block.params:
            if param.node is not None or param.block is not block:
                raise VerifyError(param, "expected a parameter to know its block")
            self._defined(param, inside)
        previous, linked = None, block.first
        for node in block.nodes:
            linked_well = node is linked and node.prev is previous
            if not linked_well or not node.is_inserted or node.owner is not block:
                raise VerifyError(node, "the chain of nodes is broken")
            self.node(node, inside)
            previous, linked = node, node.next
        if block.last is not previous or linked is not None:
            raise VerifyError(block, "the chain of nodes is broken at its end")
        for index, value in enumerate(block.returns):
            self._used(value, Use(block, index), inside, block)

    def node(self, node: Node, visible: set[Value]) -> None:
        """A node, its nested blocks, and what it gives."""
        for index, value in enumerate(node.inputs):
            self._used(value, Use(node, index), visible, node)
        for block in node.blocks:
            if block.node is not node:
                raise VerifyError(node, "expected a block to know its node")
            self.block(block, visible)
        for value in node.outputs:
            if value.node is not node:
                raise VerifyError(node, f"expected %{value.name} to know its node")
            self._defined(value, visible)
        self._range(node)
        try:
            for problem in self._types(node):
                raise VerifyError(node, problem)
        except Mismatch as mismatch:
            raise VerifyError(node, str(mismatch)) from None

    def _defined(self, value: Value, visible: set[Value]) -> None:
        if value.name in self.names:
            raise VerifyError(value, f"the name %{value.name} is given twice")
        if ty.TypeVar in map(type, _parts(value.type)):
            raise VerifyError(value, f"expected a type without variables, got {value.type}")
        self.names[value.name] = value
        visible.add(value)

    def _used(self, value: Value, use: Use, visible: set[Value], place: Node | Block) -> None:
        if value not in visible:
            what = "made before its use" if value.name in self.names else "of this graph"
            raise VerifyError(place, f"expected %{value.name} to be {what}")
        self.found_uses.setdefault(value, set()).add(use)

    def uses(self) -> None:
        """Every value knows its uses and no others."""
        for value in self.names.values():
            if set(value.uses) != self.found_uses.get(value, set()):
                raise VerifyError(value, "its list of uses is not the uses in the graph")

    def _range(self, node: Node) -> None:
        place = node.range
        if place is None:
            return
        length = len(place.source.text or "")
        if not 0 <= place.start <= place.end <= length:
            what = f"{place.start} to {place.end} of {length} characters"
            raise VerifyError(node, f"expected a range within the source, got {what}")

    def _types(self, node: Node) -> Iterator[str]:
        rule = RULES.get(node.kind)
        if rule is not None:
            rule(node)
            return
        if self.operators is None:
            return
        try:
            operator = self.operators(node.kind)
        except KeyError:
            yield f"unknown operator {node.kind}"
            return
        yield from check_schema(node, operator)


def check_schema(node: Node, operator: Any) -> Iterator[str]:
    """What is wrong with the inputs and outputs of an operator's node."""
    args, returns = operator.schema.args, operator.schema.returns
    if getattr(operator.schema, "varargs", False):  # the last stands for any number of arguments
        args = (*args[:-1], *[args[-1]] * (len(node.inputs) - len(args) + 1))
    if len(node.inputs) != len(args):
        yield f"expected {len(args)} inputs, got {len(node.inputs)}"
        return
    bindings: dict[str, ty.Type] = {}
    for arg, value in zip(args, node.inputs):
        if not bind(arg.type, value.type, bindings):
            wanted = substitute(arg.type, bindings)
            yield f"expected {wanted} for argument {arg.name}, got {value!r}"
    if node.blocks:
        yield f"expected no blocks, got {len(node.blocks)}"
    if len(node.outputs) != len(returns):
        yield f"expected {len(returns)} outputs, got {len(node.outputs)}"
        return
    for result, value in zip(returns, node.outputs):
        given = substitute(result.type, bindings)
        if not is_subtype(given, value.type) and not bind(result.type, value.type, bindings):
            yield f"expected an output of type {given}, got {value!r}"


def _parts(t: ty.Type) -> Iterator[ty.Type]:
    yield t
    for child in t.children:
        yield from _parts(child)
