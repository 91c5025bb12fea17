"""Blocks: nodes in order, with parameters and returned values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weft.jit.ir.types import Type
from weft.jit.ir.value import User, Value

if TYPE_CHECKING:
    from weft.jit.ir.graph import Graph
    from weft.jit.ir.node import Node


class Block(User):
    """Nodes in order, with parameters and returned values. `node` is None for that of a graph."""

    __slots__ = ("_first", "_last", "_listed", "_numbered", "node", "params")

    def __init__(self, graph: Graph, node: Node | None) -> None:
        super().__init__(graph)
        self.node = node
        self.params: list[Value] = []
        self._first: Node | None = None
        self._last: Node | None = None
        self._listed: list[Node] | None = []  # its nodes, where nothing was put in between since
        self._numbered = True

    @property
    def owner(self) -> Node | Graph:
        """The node whose block it is, or the graph."""
        return self.node if self.node is not None else self.graph

    @property
    def parent_node(self) -> Node | None:
        """The node whose block it is; None for the block of the graph."""
        return self.node

    @property
    def nodes(self) -> list[Node]:
        """Its nodes, as a new list."""
        listed = self._listed
        if listed is None:
            listed, node = [], self._first
            while node is not None:
                listed.append(node)
                node = node._next
            self._listed = listed
        return listed[:]

    def __iter__(self) -> Iterator[Node]:
        """Its nodes, leaving out those that have been removed since the start."""
        for node in self.nodes:
            if node._owner is self:
                yield node

    def __reversed__(self) -> Iterator[Node]:
        """Its nodes from the last to the first, leaving out those removed since the start."""
        return (node for node in reversed(self.nodes) if node._owner is self)

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def first(self) -> Node | None:
        """The first node."""
        return self._first

    @property
    def last(self) -> Node | None:
        """The last node."""
        return self._last

    def walk(self) -> Iterator[Node]:
        """All nodes in order, each before those of its nested blocks."""
        # One loop: generators within generators would hand each node through every level.
        pending: list[tuple[Block, Iterator[Node] | None]] = [(self, None)]
        while pending:
            block, nodes = pending.pop()
            for node in nodes or (nodes := iter(block.nodes)):
                if node._owner is block:
                    yield node
                    if node.blocks:
                        pending.append((block, nodes))
                        pending += [(inner, None) for inner in reversed(node.blocks)]
                        break

    def values(self) -> Iterator[Value]:
        """Its parameters, and the values that are made in it and in nested blocks."""
        yield from self.params
        for node in self.walk():
            yield from node.outputs
            if node.blocks:
                for inner in node.blocks:
                    yield from inner.params

    def is_within(self, block: Block) -> bool:
        """Whether it is the block or nested in it."""
        inner: Block | None = self
        while inner is not None and inner is not block:
            inner = inner.node._owner if inner.node is not None else None
        return inner is block

    # Parameters and returns

    def add_param(self, type: Type, name: str = "") -> Value:
        """One more parameter, the last."""
        return self.insert_param(len(self.params), type, name)

    def insert_param(self, index: int, type: Type, name: str = "") -> Value:
        """One more parameter, before the one at index."""
        value = Value(self.graph._names.unique(name), type, None, self)
        self.params.insert(index, value)
        self.graph.touch(self)
        return value

    def remove_param(self, index: int) -> None:
        """One parameter less; ValueError if it is used."""
        value = self.params[index]
        if value.has_uses:
            raise ValueError(f"remove_param: expected a value without uses, got %{value.name}")
        self.graph._names.release(value.name)
        del self.params[index]
        self.graph.touch(self)

    returns = User.used  # type: ignore[misc]  # its descriptor
    set_returns, set_return = User.use, User.replace_use
    add_return, remove_return = User.add_use, User.remove_use

    # Nodes

    def append(self, node: Node) -> Node:
        """Puts a node, which is in no block, at the end."""
        self._link(node, None)
        return node

    def prepend(self, node: Node) -> Node:
        """Puts a node, which is in no block, at the start."""
        self._link(node, self._first)
        return node

    def clear(self) -> None:
        """Removes all nodes and returned values."""
        self.set_returns(())
        for node in reversed(self):
            node.destroy()

    def _link(self, node: Node, before: Node | None) -> None:
        if node._owner is not None:
            raise ValueError(f"insert: {node.kind} is in a block already; move it instead")
        if node.graph is not self.graph:
            raise ValueError(f"insert: {node.kind} belongs to another graph")
        node._owner = self
        self.graph.touch(node)
        if before is None:
            node._prev = after = self._last
            self._last = node
            if after is None:
                self._first = node
                node._order = 0
            else:
                after._next = node
                node._order = after._order + 1
            if self._listed is not None:
                self._listed.append(node)
            return
        after = before._prev
        node._prev, node._next = after, before
        before._prev = node
        if after is None:
            self._first = node
        else:
            after._next = node
        self._numbered = False
        self._listed = None

    def _unlink(self, node: Node) -> None:
        if node._prev is None:
            self._first = node._next
        else:
            node._prev._next = node._next
        if node._next is None:
            self._last = node._prev
        else:
            node._next._prev = node._prev
        node._owner = node._prev = node._next = None
        self._listed = None
        self.graph.touch(self)

    def position(self, node: Node) -> int:
        """A number that grows from node to node; renumbers after insertions in the middle."""
        if not self._numbered:
            for order, each in enumerate(self.nodes):
                each._order = order
            self._numbered = True
        return node._order
