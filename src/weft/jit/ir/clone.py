"""Copies nodes and blocks within a graph or into another one."""

from __future__ import annotations

from weft.jit.ir.graph import Block, Node, Value


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


def clone_block_into(block: Block, into: Block, mapping: dict[Value, Value]) -> None:
    """Copies the nodes of a block to the end of another, and its returns. Its parameters are
    not copied: `mapping` says what stands for them."""
    for node in block:
        clone_node(node, into, mapping)
    into.set_returns([mapping.get(value, value) for value in block.returns])
