"""The graph: values, nodes, blocks. Structured SSA: a value is made once, by a node or as a
parameter of a block, and may be used by everything after it in its block and in the blocks within.

Uses are kept exact: inputs of nodes and returns of blocks are tuples, changed only by the methods
here. Iterating over the nodes of a block is safe while nodes are destroyed, moved and inserted: it
visits those that were there when it began and still are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from weft.jit.ir.block import Block
from weft.jit.ir.clone import copy_graph
from weft.jit.ir.literals import type_of_constant
from weft.jit.ir.names import Names
from weft.jit.ir.node import Node
from weft.jit.ir.printer import print_graph
from weft.jit.ir.source import SourceRange
from weft.jit.ir.types import Type
from weft.jit.ir.value import Use, Value

__all__ = ["Block", "Graph", "Node", "Use", "Value"]


class _Set(AbstractContextManager[None]):
    """Within it an attribute of a graph has another value. (A generator would take thrice as long,
    and every expression of a program needs one.)"""

    __slots__ = ("_graph", "_name", "_saved", "_value")

    def __init__(self, graph: Graph, name: str, value: Any) -> None:
        self._graph, self._name, self._value = graph, name, value

    def __enter__(self) -> None:
        self._saved = getattr(self._graph, self._name)
        setattr(self._graph, self._name, self._value)

    def __exit__(self, *exception: object) -> None:
        setattr(self._graph, self._name, self._saved)


class Graph:
    """A block with a place where new nodes go: the end of the block, or inside `inserting`."""

    def __init__(self) -> None:
        self._names = Names()
        self._kinds: set[str] = set()  # of every node that was ever made
        self.block = Block(self, None)
        self._place: tuple[Block, Node | None] = (self.block, None)
        self.range: SourceRange | None = None  # of new nodes, see `at_range`

    @property
    def inputs(self) -> list[Value]:
        """Parameters of its block."""
        return self.block.params

    @property
    def returns(self) -> tuple[Value, ...]:
        """The values its block gives."""
        return self.block.returns

    def add_input(self, type: Type, name: str = "") -> Value:
        """One more parameter, the last."""
        return self.block.add_param(type, name)

    def walk(self) -> Iterator[Node]:
        """All nodes in order, those of nested blocks included."""
        return self.block.walk()

    def may_have(self, kinds: frozenset[str]) -> bool:
        """Whether there may be nodes of some kinds: False only if there are none for sure."""
        return not self._kinds.isdisjoint(kinds)

    def create(
        self,
        kind: str,
        inputs: Iterable[Value] = (),
        output_types: Iterable[Type] = (),
        attrs: dict[str, Any] | None = None,
        range: SourceRange | None = None,
    ) -> Node:
        """A node that is in no block yet. Its range is by default the one set by `at_range`."""
        self._kinds.add(kind)
        node = Node(self, kind, dict(attrs) if attrs else {}, range or self.range)
        if inputs:
            node.inputs = taken = tuple(inputs)
            for index, value in enumerate(taken):
                value._uses[node, index] = None
        fresh = self._names.fresh
        node.outputs = [Value(fresh(), type, node, None) for type in output_types]
        return node

    def insert(self, node: Node) -> Node:
        """Puts a node, which is in no block, at the insertion point."""
        block, before = self._place
        block._link(node, before)
        return node

    def emit(
        self,
        kind: str,
        inputs: Iterable[Value] = (),
        output_types: Iterable[Type] = (),
        attrs: dict[str, Any] | None = None,
        range: SourceRange | None = None,
    ) -> Node:
        """Creates a node and puts it at the insertion point."""
        node = self.create(kind, inputs, output_types, attrs, range)
        block, before = self._place
        block._link(node, before)
        return node

    def constant(self, value: Any, type: Type | None = None) -> Value:
        """A prim::Constant at the insertion point. The type follows from the value if not given."""
        type = type if type is not None else type_of_constant(value)
        return self.emit("prim::Constant", (), (type,), {"value": value}).output

    def inserting(
        self,
        before: Node | None = None,
        after: Node | None = None,
        at_end: Block | None = None,
        at_start: Block | None = None,
    ) -> AbstractContextManager[None]:
        """Within, new nodes go before or behind a node, or to the end or start of a block."""
        given = [place for place in (before, after, at_end, at_start) if place is not None]
        if len(given) != 1:
            raise ValueError(f"inserting: expected one place, got {len(given)}")
        if before is not None:
            place: tuple[Block, Node | None] = (before.owner, before)
        elif after is not None:
            place = (after.owner, after.next)
        elif at_end is not None:
            place = (at_end, None)
        else:
            assert at_start is not None
            place = (at_start, at_start.first)
        return _Set(self, "_place", place)

    def at_range(self, range: SourceRange | None) -> AbstractContextManager[None]:
        """Within, new nodes have this source range unless another is given."""
        return _Set(self, "range", range or self.range)

    def copy(self) -> Graph:
        """A graph with the same text; constants and attributes are shared, not copied."""
        return copy_graph(self)

    def __str__(self) -> str:
        return print_graph(self)

    def __repr__(self) -> str:
        return str(self)
