"""Values, the places where they are used, and what is known of their shapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from weft.jit.ir.record import NamedTuple, record
from weft.jit.ir.types import Type

if TYPE_CHECKING:
    from weft.jit.ir.block import Block
    from weft.jit.ir.graph import Graph
    from weft.jit.ir.node import Node


class Use(NamedTuple):
    """A place where a value is used: input `index` of a node, or return `index` of a block."""

    user: Node | Block
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here


class User:
    """What uses values: a node its inputs, a block its returns. `used` is changed by these methods
    alone. The graph is told of the users, and of who makes what is used no longer."""

    __slots__ = ("graph", "used")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.used: tuple[Value, ...] = ()

    def use(self: Any, values: Iterable[Value]) -> None:
        """Uses these values instead."""
        for index, value in enumerate(self.used):
            value._drop_use(self, index)
        self.used = tuple(values)
        for index, value in enumerate(self.used):
            value._uses[self, index] = None
        self.graph.touch(self)

    def replace_use(self: Any, index: int, value: Value) -> None:
        """Uses another value in one place."""
        index = range(len(self.used))[index]
        self.used[index]._drop_use(self, index)
        self.used = (*self.used[:index], value, *self.used[index + 1 :])
        value._uses[self, index] = None
        self.graph.touch(self)

    def add_use(self: Any, value: Value) -> None:
        """Uses one more value, the last."""
        self.used = (*self.used, value)
        value._uses[self, len(self.used) - 1] = None
        self.graph.touch(self)

    def remove_use(self, index: int) -> None:
        """Uses one value less."""
        index = range(len(self.used))[index]
        self.use(self.used[:index] + self.used[index + 1 :])


class Value:
    """A value: the output of `node`, or (node None) a parameter of `block`."""

    __slots__ = ("_name", "_uses", "block", "node", "shape", "type")

    def __init__(self, name: str, type: Type, node: Node | None, block: Block | None) -> None:
        self._name = name
        self.type = type
        self.node = node
        self.block = block  # of which it is a parameter
        self.shape: ShapeInfo | None = None
        # Keys are what Use names; plain tuples, for they are made and hashed all the time.
        self._uses: dict[tuple[Node | Block, int], None] = {}

    @property
    def is_param(self) -> bool:
        """Whether it is a parameter of a block."""
        return self.node is None

    @property
    def graph(self) -> Graph:
        """The graph it belongs to."""
        owner = self.node or self.block
        assert owner is not None
        return owner.graph

    @property
    def owner(self) -> Block:
        """The block in which it is made."""
        block = self.node.owner if self.node is not None else self.block
        assert block is not None
        return block

    @property
    def index(self) -> int:
        """Which output of its node, or parameter of its block, it is."""
        among = self.node.outputs if self.node is not None else self.owner.params
        return among.index(self)

    @property
    def name(self) -> str:
        """Unique in the graph. Setting it makes it so: letters that cannot stand in a name become
        `_`, and a taken name gets a number behind it ("x", "x.1", "x.2")."""
        return self._name

    @name.setter
    def name(self, wanted: str) -> None:
        names = self.graph._names
        names.release(self._name)
        self._name = names.unique(wanted)

    @property
    def uses(self) -> list[Use]:
        """All uses, in order of their making."""
        return [tuple.__new__(Use, use) for use in self._uses]

    @property
    def users(self) -> list[Node | Block]:
        """Who uses it, one entry for each use."""
        return [user for user, _ in self._uses]

    def is_used_outside(self, users: set[Node]) -> bool:
        """Whether others than these nodes use it."""
        return any(user not in users for user, _ in self._uses)

    @property
    def has_uses(self) -> bool:
        """Whether anything uses it."""
        return bool(self._uses)

    @property
    def constant(self) -> Any:
        """The value of the constant it is; raises ValueError if it is none (see `is_constant`)."""
        node = self.node
        if node is None or node.kind != "prim::Constant":
            raise ValueError(f"Value.constant: expected a constant, got %{self.name}")
        return node.attrs["value"]

    @property
    def is_constant(self) -> bool:
        """Whether a prim::Constant makes it."""
        return self.node is not None and self.node.kind == "prim::Constant"

    def replace_all_uses_with(self, other: Value) -> None:
        """Everything that used this value uses the other one instead."""
        for user, index in list(self._uses):
            user.replace_use(index, other)

    def _drop_use(self, user: Any, index: int) -> None:
        del self._uses[user, index]
        user.graph.touch(self.node or self.block)

    def __repr__(self) -> str:
        return f"%{self._name} : {self.type}"


# A size: a number, a symbol ("n": every dimension so named has the same size), or unknown.
Dim = int | str | None


@record(frozen=True)
class ShapeInfo:
    """`dtype` is a weft.dtype or None (unknown); `sizes` None where the rank is unknown.

    >>> str(ShapeInfo(None, (2, "n", None)))
    'Tensor(*, [2, n, *])'
    """

    dtype: Any = None
    sizes: tuple[Dim, ...] | None = None

    @property
    def rank(self) -> int | None:
        """Number of dimensions."""
        return None if self.sizes is None else len(self.sizes)

    @property
    def is_static(self) -> bool:
        """Whether every size is a number."""
        return self.sizes is not None and all(isinstance(size, int) for size in self.sizes)

    def __str__(self) -> str:
        dtype = "*" if self.dtype is None else str(self.dtype).rpartition(".")[2]
        if self.sizes is None:
            return f"Tensor({dtype})"
        sizes = ", ".join("*" if size is None else str(size) for size in self.sizes)
        return f"Tensor({dtype}, [{sizes}])"
