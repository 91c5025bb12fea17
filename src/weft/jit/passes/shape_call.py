"""What rules of shapes see: the arguments of one node by name, with what is known of them."""

from __future__ import annotations

import re
from typing import Any

from weft.jit.ir import INT, TENSOR, ListType, Node, ShapeInfo, Value
from weft.jit.ir.shape import Dim
from weft.jit.passes.constants import constant_of
from weft.jit.passes.identity import is_only_read
from weft.jit.passes.operators import has_tag

_INTS = ListType(INT)


class Sizes:
    """Ints and lists of ints that are sizes: numbers, symbols, unknown."""

    def __init__(self) -> None:
        self.symbols: dict[Value, str] = {}
        self.own: dict[Value, str] = {}  # symbols made for a value that has no other
        self.taken: set[str] = set()

    def reserve(self, shape: ShapeInfo | None) -> None:
        """The symbols of a shape are not used for anything else."""
        if shape is not None and shape.sizes is not None:
            self.taken |= {size for size in shape.sizes if isinstance(size, str)}

    def of(self, value: Value) -> Dim:
        """An int that is known, or known to be a size."""
        if value.is_constant:
            return value.constant if isinstance(value.constant, int) else None
        return self.symbols.get(value)

    def items(self, value: Value) -> list[Dim] | None:
        """The items of a list of ints, if their number is known."""
        if value.is_constant and isinstance(value.constant, (list, tuple)):
            return list(value.constant)
        node = value.node
        if node is not None and node.kind == "prim::ListConstruct" and is_only_read(value):
            return [self.of(item) for item in node.inputs]
        if node is not None and value.type == _INTS and has_tag(node, "metadata"):
            shape = node.inputs[0].shape
            return None if shape is None or shape.sizes is None else list(shape.sizes)
        return None

    def learn(self, node: Node) -> None:
        """`aten::size.int` gives a size: the symbol it has, or a new one of its own."""
        if node.kind != "aten::size.int":
            return
        shape, dim = node.inputs[0].shape, node.inputs[1]
        sizes = shape.sizes if shape is not None else None
        known: Dim = None
        if sizes is not None and dim.is_constant and -len(sizes) <= dim.constant < len(sizes):
            known = sizes[dim.constant]
        value = node.output
        self.symbols.pop(value, None)  # of an earlier round of a loop
        if isinstance(known, str):
            self.symbols[value] = known
        elif known is None:
            if value not in self.own:
                self.own[value] = self._new(value.name)
            self.symbols[value] = self.own[value]

    def _new(self, name: str) -> str:
        base = re.sub(r"\W", "_", name)
        base = f"s{base}" if base[0].isdigit() else base
        symbol, count = base, 0
        while symbol in self.taken:
            count += 1
            symbol = f"{base}_{count}"
        self.taken.add(symbol)
        return symbol


class ShapeCall:
    """One node, its arguments by name."""

    def __init__(self, node: Node, operator: Any, sizes: Sizes) -> None:
        self.node = node
        self.operator = operator
        self.sizes = sizes
        self.values = {arg.name: value for arg, value in zip(operator.args, node.inputs)}

    @property
    def first(self) -> ShapeInfo:
        """What is known of the first tensor."""
        return next((v.shape or ShapeInfo() for v in self.tensors), ShapeInfo())

    @property
    def tensors(self) -> list[Value]:
        """Its tensor arguments, those in lists not among them."""
        return [value for value in self.node.inputs if value.type == TENSOR]

    def has(self, name: str) -> bool:
        """Whether the schema has an argument of that name."""
        return name in self.values

    def shape(self, name: str) -> ShapeInfo:
        """What is known of a tensor."""
        return self.values[name].shape or ShapeInfo()

    def const(self, name: str) -> Any:
        """A constant, or a list made of constants; None if it is neither."""
        return constant_of(self.values[name])

    def is_none(self, name: str) -> bool:
        """Whether an argument is the constant None."""
        value = self.values[name]
        return value.is_constant and value.constant is None

    def dim(self, name: str, rank: int) -> int | None:
        """A dimension, counted from 0; None if it is not known or not in range."""
        dim = self.const(name)
        if not isinstance(dim, int) or not -rank <= dim < max(rank, 1):
            return None
        return dim % max(rank, 1)

    def dims(self, name: str, rank: int) -> set[int] | None:
        """The dimensions of a list (all of them for None), or of one int; None if not known, or if
        the list is empty: operators differ about that."""
        if self.is_none(name):
            return set(range(rank))
        given = self.const(name)
        given = [given] if isinstance(given, int) else given
        if not given or not all(-rank <= dim < max(rank, 1) for dim in given):
            return None
        return {dim % max(rank, 1) for dim in given}

    def ints(self, name: str) -> list[Dim] | None:
        """Items of a list of ints, as far as they are known; None if their number is not."""
        return self.sizes.items(self.values[name])
