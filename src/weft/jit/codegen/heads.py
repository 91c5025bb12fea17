"""Heads of fusion groups: products and convolutions, with what a group makes for them and of them.

The runtime knows them by the same names (csrc/runtime/fused_head.cpp). A group has one head at
most. The steps before it make its operand, those behind it start from its result.
"""

from __future__ import annotations

from functools import cache

from weft.jit.ir.graph import Node, Value
from weft.jit.ir.record import NamedTuple
from weft.jit.operator_facts import RowFacts, row


class HeadStep(NamedTuple):
    """A head in the place of a step's name. Its arguments are the step's numbers."""

    id: str


def is_head(node: Node) -> bool:
    """Whether a node is a product that may be a head."""
    return _row_of(node.kind) is not None


def is_convolution(head: Node) -> bool:
    """Whether a head is a convolution."""
    found = _row_of(head.kind)
    return found is not None and "convolution" in found.tags


def operands_of(head: Node) -> list[Value]:
    """The operands of a head of which the group may make one; the first is worth more."""
    found = _row_of(head.kind)
    assert found is not None
    return [head.inputs[at] for at in found.product]


@cache
def _row_of(kind: str) -> RowFacts | None:
    namespace, _, key = kind.partition("::")
    found = row(key) if namespace == "aten" else None
    return found if found is not None and found.product else None
