"""Shape formulas: the sizes of the results of one node, from what is known of its arguments."""

from __future__ import annotations

import functools
import re
from types import CodeType
from typing import Any

from weft.jit.ir import INT, TENSOR, ListType, Node, ShapeInfo, Value
from weft.jit.ir.value import Dim
from weft.jit.passes.constants import constant_of
from weft.jit.passes.identity import is_only_read
from weft.jit.passes.operators import has_tag
from weft.jit.passes.shape_words import ABSENT, UNRANKED, WORDS, Untold

_INTS, _TENSORS = ListType(INT), ListType(TENSOR)


class Sizes:
    """Ints and lists of ints that are sizes: numbers, symbols, unknown."""

    def __init__(self) -> None:
        self.symbols: dict[Value, str] = {}
        self.own: dict[Value, str] = {}  # symbols made for a value that has no other
        self.taken: set[str] = set()
        self.read_only: dict[Value, bool] = {}

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
        if node is not None and node.kind == "prim::ListConstruct" and self.is_only_read(value):
            return [self.of(item) for item in node.inputs]
        if node is not None and value.type == _INTS and has_tag(node, "metadata"):
            shape = node.inputs[0].shape
            return None if shape is None or shape.sizes is None else list(shape.sizes)
        return None

    def is_only_read(self, value: Value) -> bool:
        """Asked once: a list that all layers share has many users."""
        known = self.read_only.get(value)
        if known is None:
            known = self.read_only[value] = is_only_read(value)
        return known

    def learn(self, node: Node) -> None:
        """`aten::size.int` gives a size: the symbol it has, or a new one of its own."""
        if not has_tag(node, "size"):
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


class ShapeCall(dict[str, Any]):
    """One node; by the names of its arguments what shape formulas see of them (`shape_words`)."""

    def __init__(self, node: Node, operator: Any, sizes: Sizes) -> None:
        self.node = node
        self.operator = operator
        self.sizes = sizes
        self.given = {arg.name: value for arg, value in zip(operator.args, node.inputs)}

    def __missing__(self, name: str) -> Any:
        if name not in self.given:
            raise KeyError(name)
        self[name] = seen = self._seen(self.given[name])
        return seen

    def _seen(self, value: Value) -> Any:
        """Sizes of a tensor, a list of those, numbers; UNRANKED for a list that is not known."""
        if value.type == TENSOR:
            return _sizes(value)
        if value.is_constant and not isinstance(value.constant, (list, tuple)):
            return ABSENT if value.constant is None else value.constant
        if value.type == _TENSORS:
            made = value.node
            if made is None or made.kind != "prim::ListConstruct":
                return UNRANKED
            if not self.sizes.is_only_read(value):
                return UNRANKED
            return tuple(map(_sizes, made.inputs)) or UNRANKED
        if value.type.children:
            items = self.sizes.items(value)
            return UNRANKED if items is None else tuple(items)
        return self.sizes.of(value)

    @property
    def tensors(self) -> list[Value]:
        """Its tensor arguments, those in lists not among them."""
        return [value for value in self.node.inputs if value.type == TENSOR]

    def const(self, name: str) -> Any:
        """A constant, or a list made of constants; None if it is neither."""
        return constant_of(self.given[name])

    def is_none(self, name: str) -> bool:
        """Whether an argument is the constant None."""
        value = self.given[name]
        return value.is_constant and value.constant is None


def sizes_of(call: ShapeCall) -> tuple[Dim, ...] | None:
    """The sizes of the results, by the formula of the operator's row; None: of unknown rank."""
    row = call.operator.row
    formula = row.shape if row is not None else ""
    if call.operator.writes_self:
        formula = call.operator.args[0].name
    if not formula:
        return None
    try:
        return tuple(eval(compiled(formula), {"__builtins__": {}, **WORDS}, call))
    except (Untold, IndexError, ZeroDivisionError):  # or what the operator refuses, if it ever runs
        return None


@functools.cache
def compiled(formula: str) -> CodeType:
    return compile(formula, "<shape>", "eval")


def _sizes(value: Value) -> Any:
    known = value.shape.sizes if value.shape is not None else None
    return UNRANKED if known is None else known
