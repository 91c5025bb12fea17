"""Constant pooling: each constant is made once, at the start of the graph.

Two constants are one if they have the same type and the same text; numbers are told apart by their
bits (0.0 and -0.0). Tensors are one if they are the same object. Groups of fused operators keep
their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.jit.ir import Graph, Node, Value
from weft.jit.ir.literals import text_of
from weft.jit.passes.options import DEFAULT, Options

_TOLD_APART = frozenset((bool, int, str, type(None)))  # by value, if their types are the same


def run(graph: Graph, options: Options = DEFAULT) -> bool:
    """Pools the constants of the graph; True if one moved or went."""
    known: dict[Any, Value] = {}
    # Constants before the first node of another kind stay where they are, the rest comes there.
    rest = next((node for node in graph.block if node.kind != "prim::Constant"), None)
    changed, seen_rest = False, False
    for node in graph.block:
        seen_rest |= node is rest
        if node.kind != "prim::Constant" and not node.blocks:
            continue
        for constant in _constants(node):
            first = known.setdefault(_key(constant), constant.output)
            if first is not constant.output:
                constant.output.replace_all_uses_with(first)
                constant.destroy()
                changed = True
            elif seen_rest and rest is not None:
                constant.move_before(rest)
                changed = True
    return changed


def _constants(node: Node) -> Iterator[Node]:
    """The node if it is a constant, and those in its blocks."""
    if node.kind == "prim::Constant":
        yield node
    elif node.kind != "weft::Fused":
        for block in node.blocks:
            for inner in block:
                yield from _constants(inner)


def _key(node: Node) -> Any:
    value, type_ = node.attrs["value"], node.output.type
    if type(value) in _TOLD_APART:
        return (type_, type(value), value)
    if type(value) is float:
        return (type_, float, repr(value))
    text = text_of(value)
    return (type_, id(value)) if "<" in text and not isinstance(value, str) else (type_, text)
