"""Where values die: computed once for a graph, backwards, block by block.

Constants are no registers and are left out. A value that a loop uses from outside lives until the
loop ends. A value that only one branch of an `if` uses dies there, and at the start of the other.
"""

from __future__ import annotations

from weft.jit.ir import Block, Graph, Node, Value


class Liveness:
    """What dies, and where.

    - `last_uses[node]`: inputs nobody uses after it (of a loop: initial values, it may keep them)
    - `unused[node]`: outputs nobody uses
    - `dead_at[block]`: values from outside that are dead when a branch starts
    - `ends[block]`: returned values that die with the block
    - `after[node]`: values that die inside an `if`, or with the end of a loop
    - `idle[block]`: parameters nobody uses
    """

    def __init__(self, graph: Graph) -> None:
        self.last_uses: dict[Node, list[Value]] = {}
        self.unused: dict[Node, list[Value]] = {}
        self.after: dict[Node, list[Value]] = {}
        self.dead_at: dict[Block, list[Value]] = {}
        self.ends: dict[Block, set[Value]] = {}
        self.idle: dict[Block, list[Value]] = {}
        self._free: dict[Block, set[Value]] = {}
        self._block(graph.block, set())

    def _block(self, block: Block, live: set[Value]) -> set[Value]:
        """Goes through a block whose end `live` values survive; gives what is live at its start."""
        live = set(live)
        returned = {value for value in block.returns if not value.is_constant}
        self.ends[block] = returned - live
        live |= returned
        for node in reversed(block.nodes):
            if node.kind == "prim::Constant":
                continue
            outputs = node.outputs
            self.unused[node] = [value for value in outputs if value not in live]
            live.difference_update(outputs)
            if node.kind == "prim::Loop":
                self._loop(node, live)
            elif node.blocks:
                self._branches(node, live)
            inputs = dict.fromkeys([value for value in node.inputs if not value.is_constant])
            self.last_uses[node] = [value for value in inputs if value not in live]
            live.update(inputs)
        self.idle[block] = [value for value in block.params if value not in live]
        live.difference_update(block.params)
        return live

    def _branches(self, node: Node, live: set[Value]) -> None:
        starts = [self._block(block, live) for block in node.blocks]
        union = set().union(*starts)
        for block, start in zip(node.blocks, starts):
            self.dead_at[block] = _ordered(union - start)
        self.after[node] = _ordered(union - live)
        live |= union

    def _loop(self, node: Node, live: set[Value]) -> None:
        body = node.blocks[0]
        outside = self.free(body)
        self.after[node] = _ordered(outside - live)
        live |= outside
        self._block(body, live)

    def free(self, block: Block) -> set[Value]:
        """Values a block uses that are made outside of it."""
        if block in self._free:
            return self._free[block]
        made: set[Value] = set(block.params)
        used: set[Value] = set(block.returns)
        for node in block.nodes:
            used.update(node.inputs)
            made.update(node.outputs)
            for inner in node.blocks:
                used |= self.free(inner)
        self._free[block] = {value for value in used - made if not value.is_constant}
        return self._free[block]


def _ordered(values: set[Value]) -> list[Value]:
    """In an order that does not depend on addresses, so that equal graphs give equal programs."""
    return sorted(values, key=lambda value: value.name)
