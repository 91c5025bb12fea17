"""Scheduling: a tensor is made where it is first needed, so that fewer lie beside each other.

    %a : Tensor = aten::mm(%x, %v)                %a : Tensor = aten::mm(%x, %v)
    %b : Tensor = aten::mm(%x, %w)         =>     %c : Tensor = aten::sum(%a)
    %c : Tensor = aten::sum(%a)                   %b : Tensor = aten::mm(%x, %w)
    %d : Tensor = aten::sum(%b)                   %d : Tensor = aten::sum(%b)

A node moves down to the first that uses a result of it, if nothing lives longer for it: what it
reads is needed there, or later, in any case. So at no moment there are more results than before. It
does not move over effects, nor into loops and branches.

Only for programs without gradients: where they are recorded, the order of operators is the order in
which gradients are added.
"""

from __future__ import annotations

from weft.jit.ir import TENSOR, Graph, Node, Type, Value
from weft.jit.ir.graph import Block
from weft.jit.passes.effects import has_effects, is_deterministic
from weft.jit.passes.operators import is_mutable, operator_of
from weft.jit.passes.options import DEFAULT, Options

# Nodes of a block, beyond which looking for places would take too long.
_LONGEST = 2000


def run(graph: Graph, options: Options = DEFAULT) -> bool:
    """Moves nodes within every block; True if one was."""
    return not options.gradients and _block(graph.block)


def _block(block: Block) -> bool:
    changed = False
    for node in block:
        if node.kind != "weft::Fused":
            for inner in node.blocks:
                changed |= _block(inner)
    return _Order(block).settle() or changed


class _Order:
    """The order of a block's nodes, as they move."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.nodes = [node for node in block if node.kind != "prim::Constant"]
        self.positions = {node: place for place, node in enumerate(self.nodes)}
        self.seen_with: dict[Value, list[Value]] = {}  # by a tensor: its views, itself among them
        for node in self.nodes:
            for value in (*node.inputs, *node.outputs):
                if value.type == TENSOR:
                    views = self.seen_with.setdefault(_root(value), [])
                    if value not in views:
                        views.append(value)

    def settle(self) -> bool:
        """Moves what can move, last nodes first; True if one did."""
        if len(self.nodes) > _LONGEST:
            return False
        moved = [node for node in reversed(self.nodes[:]) if self._sink(node)]
        return bool(moved)

    def _sink(self, node: Node) -> bool:
        place = self.positions[node]
        target = first_use = self._first_use(node)
        if target <= place + 1 or not _may_move(node):
            return False
        # Those that are made for the same node keep their order, if nothing is let go in between.
        while target > place + 1:
            before = self.nodes[target - 1]
            if self._first_use(before) != first_use or self._frees(before):
                break
            target -= 1
        crossed = self.nodes[place + 1 : target]
        if not any(map(_takes_memory, crossed)) or any(map(has_effects, crossed)):
            return False
        if not all(self._is_kept(value, node, target) for value in node.inputs):
            return False
        last = crossed[-1]
        node.move_after(last)
        for index, each in enumerate(crossed):
            self.nodes[place + index] = each
            self.positions[each] = place + index
        self.nodes[target - 1] = node
        self.positions[node] = target - 1
        return True

    def _first_use(self, node: Node) -> int:
        """The place of the first node that uses a result; the end of the block for its returns."""
        uses = [use.user for value in node.outputs for use in value.uses]
        return min(map(self._place, uses), default=self.positions[node])

    def _place(self, user: Node | Block) -> int:
        """Of a user, or of what it is nested in; -1: it is somewhere else."""
        if user is self.block:
            return len(self.nodes)
        node = user if isinstance(user, Node) else user.node
        while node is not None and node.owner is not self.block:
            node = node.owner.node
        return -1 if node is None else self.positions[node]

    def _frees(self, node: Node) -> bool:
        """Whether some tensor is read last by a node."""
        behind = self.positions[node] + 1
        return not all(self._is_kept(value, node, behind) for value in node.inputs)

    def _is_kept(self, value: Value, node: Node, target: int) -> bool:
        """Whether what a node reads lives at `target` and behind it without the node, or takes no
        memory."""
        if value.type != TENSOR:
            return not _holds_tensors(value.type)
        root = _root(value)
        if self._is_held(root):
            return True
        others = self.seen_with.get(root, [value])
        return any(
            self._place(use.user) >= target
            for other in others
            for use in other.uses
            if use.user is not node
        )

    def _is_held(self, value: Value) -> bool:
        """Whether a tensor lives as long as the block whoever uses it: somebody outside of the
        program has it, or a loop that will read it again."""
        if value.node is None and value in value.graph.inputs:
            return True
        if value.node is not None and value.node.kind in ("prim::Constant", "prim::GetAttr"):
            return True
        parent = self.block.node
        in_loop = parent is not None and parent.kind == "prim::Loop"
        return in_loop and value.owner is not self.block


def _holds_tensors(type_: Type) -> bool:
    if type_.children:
        return any(map(_holds_tensors, type_.children))
    return is_mutable(type_)


def _may_move(node: Node) -> bool:
    if node.blocks and node.kind != "weft::Fused":
        return False
    if not any(value.type == TENSOR for value in node.outputs):
        return False
    return not has_effects(node) and is_deterministic(node)


def _takes_memory(node: Node) -> bool:
    """Whether moving over a node may save something: it makes tensors, not only views of some."""
    operator = operator_of(node)
    if operator is not None and operator.row is not None and operator.row.kind == "view":
        return False
    return any(_holds_tensors(value.type) for value in node.outputs)


def _root(value: Value) -> Value:
    """The tensor whose memory a view shows."""
    while value.node is not None:
        operator = operator_of(value.node)
        if operator is None or operator.row is None or operator.row.kind != "view":
            break
        value = value.node.inputs[0]
    return value
