"""Heads of fusion groups: products and convolutions, with what a group makes for them and of them.

The runtime knows them by the same names (csrc/runtime/fused_head.cpp). A group has one head at
most. The steps before it make its operand, those behind it start from its result.
"""

from __future__ import annotations

from functools import cache

from weft.jit.ir.graph import Node, Value
from weft.jit.ir.record import NamedTuple
from weft.jit.operator_facts import row

# By key: the arguments of which steps before the head may make one; the first is worth more.
_OPERANDS = {
    "linear": (0, 1),
    "mm": (0, 1),
    "addmm": (1, 2),
    "matmul": (0, 1),
    "bmm": (0, 1),
    "baddbmm": (1, 2),
    "conv2d": (0,),
}
KEYS = frozenset(_OPERANDS)


class HeadStep(NamedTuple):
    """A head in the place of a step's name. Its arguments are the step's numbers."""

    id: str


def key_of(node: Node) -> str | None:
    """The key of a node that may be a head; None for others."""
    return _key_of(node.kind)


def operands_of(node: Node) -> list[Value]:
    """The operands of a head of which the group may make one."""
    key = key_of(node)
    assert key is not None
    return [node.inputs[at] for at in _OPERANDS[key]]


@cache
def _key_of(kind: str) -> str | None:
    namespace, _, key = kind.partition("::")
    return key if namespace == "aten" and key in KEYS and row(key) is not None else None
