"""Copies nodes and blocks within a graph or into another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.jit.ir.node import Node
from weft.jit.ir.value import Value

if TYPE_CHECKING:
    from weft.jit.ir.block import Block
    from weft.jit.ir.graph import Graph


def clone_node(
    node: Node, into: Block, mapping: dict[Value, Value], before: Node | None = None
) -> Node:
    """A copy of a node (with its blocks) in `into`, before a node or at the end.

    `mapping` tells which values stand for those the node uses; values it lacks stay the same (they
    must belong to the same graph). The outputs of the copy are added to it.
    """
    inputs = [mapping.get(value, value) for value in node.inputs]
    copy = into.graph.create(node.kind, inputs, (), node.attrs, node.range)
    into._link(copy, before)
    for value in node.outputs:
        mapping[value] = made = copy.add_output(value.type, value.name)
        made.shape = value.shape
    for block in node.blocks:
        inner = copy.add_block()
        for param in block.params:
            mapping[param] = inner.add_param(param.type, param.name)
            mapping[param].shape = param.shape
        clone_block_into(block, inner, mapping)
    return copy


def copy_graph(graph: Graph) -> Graph:
    """A graph with the same text. All names are new to it, so nothing has to be looked up."""
    result = graph.__class__()
    mapping: dict[Value, Value] = {}
    _copy_block(graph.block, result.block, mapping)
    result._names.taken.update([value._name for value in mapping.values()])
    result._kinds.update(graph._kinds)
    return result


def _copy_block(block: Block, into: Block, mapping: dict[Value, Value]) -> None:
    """Copies a block into an empty one of another graph, values with their names."""
    graph = into.graph
    for param in block.params:
        mapping[param] = made = Value(param._name, param.type, None, into)
        made.shape = param.shape
        into.params.append(made)
    for node in block.nodes:
        copy = Node(graph, node.kind, dict(node.attrs), node.range)
        copy.used = inputs = tuple([mapping[value] for value in node.inputs])
        for index, value in enumerate(inputs):
            value._uses[copy, index] = None
        for output in node.outputs:
            mapping[output] = made = Value(output._name, output.type, copy, None)
            made.shape = output.shape
            copy.outputs.append(made)
        into._link(copy, None)
        if node.blocks:
            for inner in node.blocks:
                _copy_block(inner, copy.add_block(), mapping)
    into.set_returns([mapping[value] for value in block.returns])


def clone_block_into(block: Block, into: Block, mapping: dict[Value, Value]) -> None:
    """Copies the nodes of a block to the end of another, and its returns. Its parameters are
    not copied: `mapping` says what stands for them."""
    for node in block:
        clone_node(node, into, mapping)
    into.set_returns([mapping.get(value, value) for value in block.returns])
