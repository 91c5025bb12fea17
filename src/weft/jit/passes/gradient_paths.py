"""Which operators send gradients back to one tensor.

Gradients that meet at a tensor are added up in the order in which its consumers ran, last first. A
pass that lets a consumer run at another time, or puts another one in its place, changes the sum in
its last bits. Here is asked who the consumers are.

Values that may be the same tensor (not only share its memory) count as one: those that go through
branches, loops, casts and containers, and what operators in place give. Different parameters of the
graph count as different tensors: a caller who passes one tensor twice may see other last bits.
"""

from __future__ import annotations

from weft.jit.ir import TENSOR, Graph, Node, Type, Value
from weft.jit.ir.graph import Block
from weft.jit.passes.gradients import may_record
from weft.jit.passes.operators import CALLS, operator_of


class GradientPaths:
    """The consumers of every tensor of a graph as it is now; after changes, make another."""

    def __init__(self, graph: Graph) -> None:
        self._parents: dict[Value, Value] = {}
        self._consumers: dict[Value, list[Node]] = {}
        self._many: set[Value] = set()
        # What the whole graph gives, and what calls take, has consumers that are not seen here.
        unseen = list(graph.returns)
        for node in graph.walk():
            self._flow(node)
            if node.kind in CALLS or node.kind == "prim::SetAttr":
                unseen += [value for value in (*node.inputs, *node.outputs) if _holds(value.type)]
        for node in graph.walk():
            for value in dict.fromkeys(node.inputs):
                if _holds(value.type) and not _is_flow(node):
                    self._consume(node, value)
        self._many |= {self._root(value) for value in unseen if _holds(value.type)}
        self._many = {self._root(value) for value in self._many}

    def consumers(self, value: Value) -> list[Node]:
        """The nodes that may send a gradient back to the tensor, in program order."""
        return self._consumers.get(self._root(value), [])

    def has_one(self, value: Value) -> bool:
        """Whether at most one gradient ever arrives at the tensor from within the graph."""
        if self._root(value) in self._many:
            return False
        return sum(1 for node in self.consumers(value) if _is_alive(node)) <= 1

    def replace(self, node: Node, value: Value, made: list[Node]) -> None:
        """`value` is about to take the place of what a node gives; `made` are the new nodes behind
        it."""
        for new in made:
            for each in new.inputs:
                if _holds(each.type):
                    self._consume(new, each)
        old, root = self._root(node.output), self._root(value)
        if old is not root:
            self._consumers.setdefault(root, []).extend(self._consumers.get(old, ()))
            if old in self._many:
                self._many.add(root)

    def _root(self, value: Value) -> Value:
        root = value
        while (parent := self._parents.get(root)) is not None:
            root = parent
        if root is not value:
            self._parents[value] = root
        return root

    def _join(self, a: Value, b: Value) -> None:
        if _holds(a.type) and _holds(b.type):
            a, b = self._root(a), self._root(b)
            if a is not b:
                self._parents[b] = a

    def _flow(self, node: Node) -> None:
        """Joins what a node only hands on."""
        if node.kind in ("prim::If", "prim::Loop", "weft::Fused"):
            skip = 2 if node.kind == "prim::Loop" else 0
            for block in node.blocks:
                returns = block.returns[1:] if skip else block.returns
                for output, value in zip(node.outputs, returns):
                    self._join(output, value)
                params = block.params[1:] if skip else block.params
                for param, value in zip(params, node.inputs[skip:]):
                    self._join(param, value)
            if skip:
                for output, value in zip(node.outputs, node.inputs[2:]):
                    self._join(output, value)
                    self._many.add(output)
        elif _is_flow(node):
            held = [value for value in (*node.inputs, *node.outputs) if _holds(value.type)]
            for value in held[1:]:
                self._join(held[0], value)
        elif _may_give_its_input(node):
            for output in node.outputs:
                self._join(node.inputs[0], output)

    def _consume(self, node: Node, value: Value) -> None:
        if node.kind == "weft::Fused" or not any(map(may_record, node.outputs)):
            return
        root = self._root(value)
        known = self._consumers.setdefault(root, [])
        if not known or known[-1] is not node:
            known.append(node)
        if node.inputs.count(value) > 1 or _is_in_loop_since(node.owner, value):
            self._many.add(root)


def _is_alive(node: Node) -> bool:
    """Whether a consumer is still there, and something comes of it."""
    if not node.is_inserted:
        return False
    operator = operator_of(node)
    writes = operator is not None and operator.writes
    return writes or any(output.has_uses for output in node.outputs)


def _holds(type_: Type) -> bool:
    """Whether a value of the type is a tensor, or may hold some."""
    return type_ == TENSOR or any(map(_holds, type_.children))


def _is_flow(node: Node) -> bool:
    """Whether a node makes no tensor: control, containers, attributes, builtins on lists."""
    operator = operator_of(node)
    return operator is None or operator.is_builtin


def _may_give_its_input(node: Node) -> bool:
    """Whether the result may be the first argument itself: in place, or a cast to its own dtype."""
    operator = operator_of(node)
    if operator is None or operator.row is None:
        return False
    if operator.may_give_input:
        return True
    is_view = operator.row.kind == "view" and not operator.writes
    return any(result.alias for result in operator.returns) and not is_view


def _is_in_loop_since(block: Block, value: Value) -> bool:
    """Whether a loop stands around the block that does not stand around the value."""
    inner: Block | None = block
    while inner is not None and inner is not value.owner:
        node = inner.node
        if node is not None and node.kind == "prim::Loop":
            return True
        inner = node.owner if node is not None else None
    return False
