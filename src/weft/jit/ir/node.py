"""Nodes: operations with inputs, outputs and nested blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from weft.jit.ir.block import Block
from weft.jit.ir.printer import node_line
from weft.jit.ir.source import SourceRange
from weft.jit.ir.types import Type
from weft.jit.ir.value import User, Value

if TYPE_CHECKING:
    from weft.jit.ir.graph import Graph


class Node(User):
    """An operation: `outputs = kind[attrs](inputs)` with nested blocks. Made by `Graph.create`."""

    __slots__ = (
        "_next",
        "_order",
        "_owner",
        "_prev",
        "attrs",
        "blocks",
        "kind",
        "outputs",
        "range",
    )

    def __init__(
        self, graph: Graph, kind: str, attrs: dict[str, Any], range: SourceRange | None
    ) -> None:
        super().__init__(graph)
        self._owner: Block | None = None
        self._prev: Node | None = None
        self._next: Node | None = None
        self._order = 0
        self.kind = kind
        self.attrs = attrs
        self.range = range
        self.outputs: list[Value] = []
        self.blocks: list[Block] = []

    @property
    def owner(self) -> Block:
        """The block it stands in; ValueError before it is inserted."""
        if self._owner is None:
            raise ValueError(f"Node.owner: {self.kind} is in no block")
        return self._owner

    @property
    def is_inserted(self) -> bool:
        """Whether it stands in a block."""
        return self._owner is not None

    @property
    def next(self) -> Node | None:
        """The node behind it in its block."""
        return self._next

    @property
    def prev(self) -> Node | None:
        """The node before it in its block."""
        return self._prev

    @property
    def output(self) -> Value:
        """The only output; ValueError if there are none or several."""
        try:
            (value,) = self.outputs
        except ValueError:
            count = len(self.outputs)
            raise ValueError(f"Node.output: {self.kind} has {count} outputs") from None
        return value

    @property
    def name(self) -> str:
        """The kind without its overload: "aten::add" of "aten::add.Tensor"."""
        return self.kind.split(".", 1)[0]

    inputs = User.used  # type: ignore[misc]  # its descriptor
    set_inputs, set_input = User.use, User.replace_use
    add_input, remove_input = User.add_use, User.remove_use

    def replace_input(self, old: Value, new: Value) -> None:
        """Takes `new` wherever it took `old`."""
        self.set_inputs(new if value is old else value for value in self.inputs)

    # Outputs and blocks

    def add_output(self, type: Type, name: str = "") -> Value:
        """Gives one more value, the last."""
        value = Value(self.graph._names.unique(name), type, self, None)
        self.outputs.append(value)
        self.graph.touch(self)
        return value

    def remove_output(self, index: int) -> None:
        """Gives one value less; ValueError if it is used."""
        value = self.outputs[index]
        if value.has_uses:
            raise ValueError(f"remove_output: expected a value without uses, got %{value.name}")
        self.graph._names.release(value.name)
        del self.outputs[index]
        self.graph.touch(self)

    def replace_outputs_with(self, values: Sequence[Value]) -> None:
        """Every use of its outputs becomes one of these values."""
        if len(values) != len(self.outputs):
            raise ValueError(
                f"replace_outputs_with: expected {len(self.outputs)} values, got {len(values)}"
            )
        for old, new in zip(self.outputs, values):
            old.replace_all_uses_with(new)

    def add_block(self) -> Block:
        """One more nested block, empty."""
        block = Block(self.graph, self)
        self.blocks.append(block)
        return block

    # Place

    def insert_before(self, other: Node) -> Node:
        """Puts this node, which is in no block, before another."""
        other.owner._link(self, other)
        return self

    def insert_after(self, other: Node) -> Node:
        """Puts this node, which is in no block, behind another."""
        other.owner._link(self, other._next)
        return self

    def move_before(self, other: Node) -> Node:
        """Takes this node out of its place and puts it before another."""
        self.owner._unlink(self)
        return self.insert_before(other)

    def move_after(self, other: Node) -> Node:
        """Takes this node out of its place and puts it behind another."""
        self.owner._unlink(self)
        return self.insert_after(other)

    def move_to_start(self, block: Block) -> Node:
        """Takes this node out of its place and puts it at the start of a block of its graph."""
        self.owner._unlink(self)
        return block.prepend(self)

    def move_to_end(self, block: Block) -> Node:
        """Takes this node out of its place and puts it at the end of a block of its graph."""
        self.owner._unlink(self)
        block._link(self, None)
        return self

    def is_before(self, other: Node) -> bool:
        """Whether it runs before a node of the same block, or of one nested in it."""
        inner: Node | None = other
        while inner is not None and inner._owner is not self._owner:
            inner = inner.owner.parent_node
        if inner is None:
            raise ValueError(f"is_before: {other.kind} is not within the block of {self.kind}")
        return self.owner.position(self) < self.owner.position(inner)

    def is_within(self, block: Block) -> bool:
        """Whether it stands in the block or in one nested in it."""
        return self.owner.is_within(block)

    def walk(self) -> Iterator[Node]:
        """All nodes of the nested blocks, in order, those nested deeper included."""
        for block in self.blocks:
            yield from block.walk()

    def destroy(self) -> None:
        """Removes it with its blocks; ValueError if an output is still used."""
        for value in self.outputs:
            if value.has_uses:
                raise ValueError(
                    f"destroy: expected no uses of {self.kind}, got %{value.name} used"
                )
        for block in self.blocks:
            block.clear()
            for param in block.params:
                self.graph._names.release(param.name)
        self.set_inputs(())
        for value in self.outputs:
            self.graph._names.release(value.name)
        if self._owner is not None:
            self._owner._unlink(self)

    def __repr__(self) -> str:
        return node_line(self)
