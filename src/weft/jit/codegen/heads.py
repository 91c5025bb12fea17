"""Heads of fusion groups: products and convolutions, whose results a group goes on with.

The runtime knows them by the same names (csrc/runtime/fused_head.cpp). A head is the first step of
its group, and there is one at most. What stands behind it is arithmetic on elements.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from weft.jit.ir.graph import Node
from weft.jit.operator_facts import row

KEYS = frozenset(("linear", "mm", "addmm", "matmul", "bmm", "baddbmm", "conv2d"))


class HeadStep(NamedTuple):
    """A head in the place of a step's name. Its arguments are the step's numbers."""

    id: str


def key_of(node: Node) -> str | None:
    """The key of a node that may be a head; None for others."""
    return _key_of(node.kind)


@cache
def _key_of(kind: str) -> str | None:
    namespace, _, key = kind.partition("::")
    return key if namespace == "aten" and key in KEYS and row(key) is not None else None
