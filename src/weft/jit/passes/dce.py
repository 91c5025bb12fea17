"""Dead code elimination: nodes go whose outputs nobody needs and whose running nobody notices.

A node stays if it may raise: a program that fails must fail after this pass too. Outputs of `If`
and carried values of loops go one by one: those too that a loop only makes of themselves.
"""

from __future__ import annotations

from weft.jit.ir.graph import Block, Node, Value
from weft.jit.passes.control_flow import remove_if_output
from weft.jit.passes.effects import (
    effects_of_kind,
    has_effects,
    is_removable,
    may_raise,
    may_run_forever,
)
from weft.jit.passes.rewriting import Rewriter, Rule, alone


def rule_of(kind: str) -> Rule | None:
    if effects_of_kind(kind):
        return None
    return {"prim::If": _if, "prim::Loop": _loop}.get(kind, _drop)


def _drop(node: Node, work: Rewriter) -> bool:
    if any(value.has_uses for value in node.outputs) or not is_removable(node):
        return False
    node.destroy()
    return True


def _if(node: Node, work: Rewriter) -> bool:
    if _drop(node, work):
        return True
    unused = [index for index, value in enumerate(node.outputs) if not value.has_uses]
    for index in reversed(unused):
        remove_if_output(node, index)
    return bool(unused)


def _loop(node: Node, work: Rewriter) -> bool:
    return _drop(node, work) or _sweep_node(node, _Marker(node))


class _Marker:
    """Finds the values and nodes of a loop that are needed, from the roots backwards."""

    def __init__(self, loop: Node) -> None:
        self.nodes: set[Node] = set()
        self.values: set[Value] = set()
        self.pending: list[Value | Node] = [loop, *(v for v in loop.outputs if v.has_uses)]
        self._inside = {loop, *loop.walk()}
        self._roots(loop.blocks[0])
        self._finish()

    def _roots(self, block: Block) -> None:
        """Nodes that are needed for what they do."""
        for node in block:
            for inner in node.blocks:
                self._roots(inner)
            if not node.blocks:
                needed = has_effects(node) or may_raise(node)
            else:
                needed = node.kind == "prim::Loop" and may_run_forever(node)
            if needed:
                self.pending.append(node)

    def _finish(self) -> None:
        """Marks everything that the roots need."""
        while self.pending:
            thing = self.pending.pop()
            if isinstance(thing, Node):
                self._mark_node(thing)
            elif thing not in self.values:
                self.values.add(thing)
                self._mark_sources(thing)

    def _mark_node(self, node: Node) -> None:
        """A node that runs needs its inputs, and those around it to come to it."""
        if node in self.nodes or node not in self._inside:
            return
        self.nodes.add(node)
        if node.kind == "prim::If":
            self.pending.append(node.inputs[0])
        elif node.kind == "prim::Loop":
            self.pending.extend((*node.inputs[:2], node.blocks[0].returns[0]))
        else:
            self.pending.extend(node.inputs)
            for block in node.blocks:  # a fused group or the like: all or nothing
                self.pending.extend((*block.returns, *block.nodes))
        around = node.owner.node
        if around is not None:
            self.pending.append(around)

    def _mark_sources(self, value: Value) -> None:
        """What a needed value is made of."""
        node, index = value.node, value.index
        if node is None:
            node = value.owner.node
            index -= 1  # the first parameter is the trip
            if node is None or node.kind != "prim::Loop" or index < 0:
                return
        if node not in self._inside:
            return
        self.pending.append(node)
        if node.kind == "prim::If":
            self.pending.extend(block.returns[index] for block in node.blocks)
        elif node.kind == "prim::Loop":
            body = node.blocks[0]
            around = (node.inputs[index + 2], body.params[index + 1], body.returns[index + 1])
            self.pending.extend((*around, node.outputs[index]))


def _sweep(block: Block, marker: _Marker) -> bool:
    """Destroys what is not marked, users before what they use."""
    changed = False
    for node in reversed(block):
        if node not in marker.nodes:
            node.destroy()
            changed = True
        else:
            changed |= _sweep_node(node, marker)
    return changed


def _sweep_node(node: Node, marker: _Marker) -> bool:
    """Destroys what is not marked of the blocks and outputs of a node."""
    dead, changed = _dead_outputs(node, marker), False
    for index in dead:
        for inner in node.blocks:
            inner.remove_return(index + (node.kind == "prim::Loop"))
    for inner in node.blocks:
        changed |= _sweep(inner, marker)
    for index in dead:
        if node.kind == "prim::Loop":
            node.blocks[0].remove_param(index + 1)
            node.remove_input(index + 2)
        node.remove_output(index)
    return changed or bool(dead)


def _dead_outputs(node: Node, marker: _Marker) -> list[int]:
    """The outputs of an If or a loop that nobody needs, last first."""
    if node.kind not in ("prim::If", "prim::Loop"):
        return []
    return [i for i in reversed(range(len(node.outputs))) if node.outputs[i] not in marker.values]


run = alone(rule_of)
