"""Constant pooling: each constant is made once, at the start of the graph.

Two constants are one if they have the same type and the same text; numbers are told apart by their
bits (0.0 and -0.0). Tensors are one if they are the same object. Groups of fused operators keep
their own.
"""

from __future__ import annotations

from typing import Any

from weft.jit.ir import Block, Node
from weft.jit.ir.literals import text_of
from weft.jit.passes.rewriting import Rewriter, Rule, alone

_TOLD_APART = frozenset((bool, int, str, type(None)))  # by value, if their types are the same


def rule_of(kind: str) -> Rule | None:
    return _pool if kind == "prim::Constant" else None


def _pool(node: Node, work: Rewriter) -> bool:
    if _is_in_group(node.owner):
        return False
    first = work.constants.get(key := _key(node))
    if first is node:
        return False
    if first is not None and first.is_inserted:
        node.output.replace_all_uses_with(first.output)
        node.destroy()
        return True
    work.constants[key] = node
    return _to_start(node, work)


def _is_in_group(block: Block) -> bool:
    while block.node is not None:
        if block.node.kind == "weft::Fused":
            return True
        block = block.node.owner
    return False


def _to_start(node: Node, work: Rewriter) -> bool:
    """Puts a constant behind the others at the start of the graph; False if it stands there."""
    before, block = work.last_constant, work.graph.block
    if before is None or not before.is_inserted:
        before = _last_at_start(block, node)
    work.last_constant = node
    if node.owner is block and node.prev is before:
        return False
    if before is None:
        node.move_to_start(block)
    else:
        node.move_after(before)
    return True


def _last_at_start(block: Block, node: Node) -> Node | None:
    """The last constant before the first node of another kind, and before a node."""
    last = None
    for each in block:
        if each is node or each.kind != "prim::Constant":
            break
        last = each
    return last


def _key(node: Node) -> Any:
    value, type_ = node.attrs["value"], node.output.type
    if type(value) in _TOLD_APART:
        return (type_, type(value), value)
    if type(value) is float:
        return (type_, float, repr(value))
    text = text_of(value)
    return (type_, id(value)) if "<" in text and not isinstance(value, str) else (type_, text)


run = alone(rule_of)
