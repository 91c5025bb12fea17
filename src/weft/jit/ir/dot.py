"""A graph as text for Graphviz: nodes with their source, edges named by values, blocks as boxes."""

from __future__ import annotations

from collections.abc import Iterator

from weft.jit.ir.graph import Block, Graph, Node, Value
from weft.jit.ir.literals import quote, text_of
from weft.jit.ir.printer import declare


def to_dot(graph: Graph) -> str:
    """Text of a directed graph: `dot -Tsvg` draws it."""
    return "\n".join(_Drawing(graph).lines()) + "\n"


class _Drawing:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.numbers: dict[object, int] = {}

    def lines(self) -> Iterator[str]:
        yield "digraph graph_ {"
        yield "  node [shape=box, fontname=monospace]; edge [fontname=monospace];"
        yield from self._block(self.graph.block, "  ")
        yield "}"

    def _id(self, thing: object) -> str:
        return f"n{self.numbers.setdefault(thing, len(self.numbers))}"

    def _source(self, value: Value) -> str:
        return self._id(value.node if value.node is not None else value)

    def _block(self, block: Block, indent: str) -> Iterator[str]:
        for param in block.params:
            yield f"{indent}{self._id(param)} [shape=ellipse, label={quote(declare(param))}];"
        for node in block:
            yield from self._node(node, indent)
        if block.returns:
            label = "return" if block.node is None else "gives"
            yield f"{indent}{self._id(block)} [shape=ellipse, label={quote(label)}];"
            for value in block.returns:
                yield self._edge(value, block, indent)

    def _node(self, node: Node, indent: str) -> Iterator[str]:
        attrs = [f"{name}={text_of(value)}" for name, value in node.attrs.items()]
        place = [str(node.range)] if node.range is not None else []
        label = quote("\n".join([node.kind, *attrs, *place]))
        yield f"{indent}{self._id(node)} [label={label}];"
        for value in node.inputs:
            yield self._edge(value, node, indent)
        for index, block in enumerate(node.blocks):
            yield f"{indent}subgraph cluster_{self._id(block)}_{index} {{"
            yield f"{indent}  label={quote(f'{node.kind} block{index}')};"
            yield from self._block(block, indent + "  ")
            yield f"{indent}}}"

    def _edge(self, value: Value, user: object, indent: str) -> str:
        label = quote(declare(value))
        return f"{indent}{self._source(value)} -> {self._id(user)} [label={label}];"
