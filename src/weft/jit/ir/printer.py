"""The text of graphs. docs/jit_ir.md has the grammar; the parser reads it back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weft.jit.ir.literals import text_of

if TYPE_CHECKING:
    from weft.jit.ir.graph import Block, Graph, Node, Value
    from weft.jit.ir.source import SourceRange


def print_graph(graph: Graph, ranges: bool = True) -> str:
    """The text of a graph; `ranges` adds `# file:line:column` to the nodes that have one."""
    lines = [f"graph({_declare_all(graph.inputs)}):"]
    lines.extend(line for line, _ in _numbered(graph.block, "  ", ranges))
    lines.append(f"  return ({_names(graph.returns)})")
    return "\n".join(lines) + "\n"


def node_line(node: Node, ranges: bool = True) -> str:
    """The text of a node without its blocks."""
    attrs = ", ".join(f"{name}={text_of(value)}" for name, value in node.attrs.items())
    text = f"{node.kind}{f'[{attrs}]' if attrs else ''}({_names(node.inputs)})"
    if node.outputs:
        text = f"{_declare_all(node.outputs)} = {text}"
    place = f"  # {_place(node.range)}" if ranges and node.range is not None else ""
    return text + place


def declare(value: Value) -> str:
    """A value with its type, or its shape where known: `%x : Tensor(float32, [2, n])`."""
    return f"%{value.name} : {value.type if value.shape is None else value.shape}"


def lines_with_nodes(graph: Graph, ranges: bool = True) -> list[tuple[str, Node | None]]:
    """The lines of the text, each with the node it shows."""
    inner = list(_numbered(graph.block, "  ", ranges))
    first = f"graph({_declare_all(graph.inputs)}):"
    return [(first, None), *inner, (f"  return ({_names(graph.returns)})", None)]


def _numbered(block: Block, indent: str, ranges: bool) -> Iterator[tuple[str, Node | None]]:
    for node in block:
        yield indent + node_line(node, ranges), node
        for index, inner in enumerate(node.blocks):
            yield f"{indent}  block{index}({_declare_all(inner.params)}):", node
            yield from _numbered(inner, indent + "    ", ranges)
            yield f"{indent}    -> ({_names(inner.returns)})", node


def _declare_all(values: list[Value]) -> str:
    return ", ".join(map(declare, values))


def _names(values: tuple[Value, ...]) -> str:
    return ", ".join(f"%{value.name}" for value in values)


def _place(range: SourceRange) -> str:
    """The place as one line, whatever the file is called."""
    return str(range).replace("\n", " ").replace("\r", " ")
