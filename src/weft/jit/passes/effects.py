"""What running a node does besides giving its outputs, and whether it can raise.

Passes ask here before they remove, repeat or reorder a node.
"""

from __future__ import annotations

from functools import cache

from weft.jit.ir.graph import Node
from weft.jit.ir.node_rules import CALLS, RULES
from weft.jit.passes.may_raise import node_may_raise, operator_may_raise
from weft.jit.passes.operators import operator_of, operator_of_kind, written

WHILE_TRIPS = 2**63 - 1

# Nodes of the IR that do something, whatever they give.
_EFFECTS = CALLS | {
    "prim::SetAttr",
    "prim::RaiseException",
    "prim::Print",
    "prim::EnterGradMode",
    "prim::ExitGradMode",
    "prim::EnterAutocast",
    "prim::ExitAutocast",
    "prim::EnterContext",
    "prim::ExitContext",
    "prim::SetGradMode",
}


def has_effects(node: Node) -> bool:
    """Whether running it changes or shows something besides its outputs: memory, the screen, the
    state of a generator or mode, an exception on purpose; or whether that is not known. Nested
    blocks count. That an operator may refuse its arguments does not: see `may_raise`."""
    if effects_of_kind(node.kind) or written(node):
        return True
    return any(has_effects(inner) for block in node.blocks for inner in block)


@cache
def effects_of_kind(kind: str) -> bool:
    """Whether every node of a kind has effects, whatever it is given."""
    if kind in _EFFECTS or kind in RULES:
        return kind in _EFFECTS
    operator = operator_of_kind(kind)
    return operator is None or not operator.pure


def may_raise(node: Node) -> bool:
    """Whether running it could raise or never end. False only where that is proven."""
    if node.kind == "prim::Loop" and may_run_forever(node):
        return True
    if node.kind in RULES:
        own = node_may_raise(node)
    else:
        operator = operator_of(node)
        own = operator is None or operator_may_raise(node, operator)
    return own or any(may_raise(inner) for block in node.blocks for inner in block)


def may_run_forever(node: Node) -> bool:
    """Whether a loop has no bound of its own: a while loop."""
    trips = node.inputs[0]
    return trips.is_constant and trips.constant == WHILE_TRIPS


def is_removable(node: Node) -> bool:
    """Whether a program without the node does the same, if nobody uses its outputs."""
    return not has_effects(node) and not may_raise(node)
