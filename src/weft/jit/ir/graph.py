"""The graph: values, nodes, blocks. Structured SSA: a value is made once, by a node or as a
parameter of a block, and may be used by everything after it in its block and in the blocks within.

Uses are kept exact: inputs of nodes and returns of blocks are tuples, changed only by the methods
here. Iterating over the nodes of a block is safe while nodes are destroyed, moved and inserted: it
visits those that were there when it began and still are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from weft.jit.ir.block import Block
from weft.jit.ir.clone import copy_graph
from weft.jit.ir.literals import type_of_constant
from weft.jit.ir.node import Node
from weft.jit.ir.printer import print_graph
from weft.jit.ir.record import field, record
from weft.jit.ir.source import SourceRange
from weft.jit.ir.types import NONE, Argument, FunctionSchema, TupleType, Type
from weft.jit.ir.value import Use, Value

__all__ = ["Block", "Graph", "Node", "Use", "Value"]
T = TypeVar("T")


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
        self.version = 0  # how often it was changed
        self.touched: dict[Node, None] | None = None  # see `touch`
        self._cached: dict[Any, tuple[int, Any]] = {}

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

    def touch(self, user: Node | Block) -> None:
        """Counts a change of a node, of a block, or of who uses what they give. Where somebody
        wants to know what changed, and has set `touched`, the node is noted there."""
        self.version += 1
        if self.touched is not None:
            node = user if isinstance(user, Node) else user.node
            if node is not None:
                self.touched[node] = None

    def cached(self, analysis: Callable[[Graph], T]) -> T:
        """What an analysis says of the graph as it is now, made once until the graph changes."""
        known = self._cached.get(analysis)
        if known is None or known[0] != self.version:
            known = self._cached[analysis] = self.version, analysis(self)
        return known[1]

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
            node.used = taken = tuple(inputs)
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
        return self.insert(self.create(kind, inputs, output_types, attrs, range))

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


class Names:
    """Names in use, and numbers for new ones."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.counters: dict[str, int] = {}
        self.numbered = 0

    def unique(self, wanted: str = "") -> str:
        """The name, or the first one like it that is free."""
        if not wanted:
            return self.fresh()
        if wanted.isdecimal() and wanted in self.taken:
            return self.fresh()
        plain = wanted.isdecimal() or wanted.isidentifier()
        base = wanted if plain else re.sub(r"[^\w.]", "_", wanted)
        if base not in self.taken:
            self.taken.add(base)
            return base
        before, dot, number = base.rpartition(".")
        if dot and number.isdecimal():
            base = before
        if not base or base.isdigit():
            return self.fresh()
        while True:
            count = self.counters[base] = self.counters.get(base, 0) + 1
            name = f"{base}.{count}"
            if name not in self.taken:
                self.taken.add(name)
                return name

    def fresh(self) -> str:
        """The next number that is free."""
        taken, number = self.taken, self.numbered + 1
        while (name := str(number)) in taken:
            number += 1
        self.numbered = number
        taken.add(name)
        return name

    def release(self, name: str) -> None:
        self.taken.discard(name)


@record(eq=False)
class Function:
    """`name` is qualified ("__torch__.net.f"). `arg_names` fits `graph.inputs`; `defaults` has the
    Python values of arguments that may be left out, `lengths` the lengths of lists for which Python
    may give one number. A method's first argument is `self`.

    The graph returns one value (NoneType for a function without result).
    """

    name: str
    graph: Graph
    arg_names: list[str]
    defaults: dict[str, Any] = field(default_factory=dict)
    doc: str = ""
    lengths: dict[str, int] = field(default_factory=dict)

    @property
    def schema(self) -> FunctionSchema:
        """Names, types and defaults of the arguments, and the type of the result."""
        pairs = zip(self.arg_names, self.graph.inputs)
        args = (
            Argument(name, value.type, self.defaults.get(name), name in self.defaults)
            for name, value in pairs
        )
        return FunctionSchema(self.name.rpartition(".")[2], tuple(args), self.return_type)

    def with_graph(self, graph: Graph) -> Function:
        """The same function with another graph."""
        return Function(self.name, graph, self.arg_names, self.defaults, self.doc, self.lengths)

    @property
    def return_type(self) -> Type:
        """The type of the result."""
        types = [value.type for value in self.graph.returns]
        if len(types) == 1:
            return types[0]
        return TupleType(tuple(types)) if types else NONE

    def __repr__(self) -> str:
        return f"Function({self.name}{str(self.schema)[len(self.schema.name) :]})"
