"""Which values may share memory, and which nodes write to it.

Every value that can be changed or can hold such values belongs to a cell; values that may alias
belong to one cell. The cell of a container has another cell, `contents`, to which all items belong.
Cells are joined as the graph is read once, whatever the order of its nodes (Steensgaard's points-to
analysis), so the answer holds for the whole graph: "may alias somewhere".

What comes from outside (parameters, attributes of objects, results of calls, constants) may alias
anything from outside of its type; what goes outside before the end joins it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from weft.jit.ir import types as ty
from weft.jit.ir.graph import Block, Graph, Node, Value
from weft.jit.ir.node_rules import CALLS
from weft.jit.passes.operators import (
    is_mutable,
    may_write,
    operator_of,
    operator_of_kind,
    written,
)

_CONTAINERS = (ty.ListType, ty.DictType, ty.TupleType, ty.FutureType)
_WORLD = (ty.UnionType, ty.InterfaceType)


class _Cell:
    """A set of values that may alias, as a tree of joined cells with the root in charge."""

    def __init__(self) -> None:
        self.parent: _Cell | None = None
        self.contents: _Cell | None = None
        self.external = False
        self.written = False

    def root(self) -> _Cell:
        cell = self
        while cell.parent is not None:
            cell = cell.parent
        if cell is not self:
            self.parent = cell
        return cell

    def inside(self) -> _Cell:
        """The cell of what it holds."""
        root = self.root()
        if root.contents is None:
            root.contents = _Cell()
            root.contents.external = root.external
        return root.contents.root()


def _join(a: _Cell, b: _Cell) -> None:
    pending = [(a, b)]
    while pending:
        left, right = (cell.root() for cell in pending.pop())
        if left is right:
            continue
        right.parent = left
        left.written |= right.written
        if left.external != right.external:
            left.external = True
            if left.contents is not None:
                _mark_external(left.contents)
            if right.contents is not None:
                _mark_external(right.contents)
        if left.contents is None:
            left.contents = right.contents
        elif right.contents is not None:
            pending.append((left.contents, right.contents))


def _mark_external(cell: _Cell) -> None:
    seen: set[_Cell] = set()
    current: _Cell | None = cell.root()
    while current is not None and current not in seen:
        seen.add(current)
        current.external = True
        current = current.contents.root() if current.contents is not None else None


class AliasAnalysis:
    """The analysis of one graph as it is now; after changes, make another.

    `known`: values read from outside of which it is known where they lie: they alias those with an
    equal key and nothing else from outside.
    """

    def __init__(self, graph: Graph, known: Mapping[Value, Any] | None = None) -> None:
        self._cells: dict[Value, _Cell] = {}
        self._known = known or {}
        self._attribute_cells: dict[Any, _Cell] = {}
        self._outside: dict[str, _Cell] = {}
        types = {id(value.type): value.type for value in graph.block.values()}
        self._one_world = any(
            isinstance(part, _WORLD) or part is ty.ANY
            for type_ in types.values()
            for part in _parts(type_)
        )
        self._writes: dict[Node, frozenset[_Cell]] = {}
        self._writers: list[Node] = []
        self._calls = False
        for param in graph.block.params:
            self._from_outside(param)
        self._block(graph.block)
        for value in graph.block.returns:  # it goes outside when nothing in here runs any more
            _mark_external(self._cell(value))
        for node in self._writers:
            for value in written(node):
                self._cell(value).written = True

    # What passes ask

    def may_alias(self, a: Value, b: Value) -> bool:
        """Whether a write to one may change the other."""
        if not (is_mutable(a.type) and is_mutable(b.type)):
            return False
        return bool(set(self._reach(a)) & set(self._reach(b)))

    def is_written(self, value: Value) -> bool:
        """Whether anything in the graph may write to the value or to what it holds."""
        if not is_mutable(value.type):
            return False
        return any(c.written or (c.external and self._calls) for c in self._reach(value))

    def is_external(self, value: Value) -> bool:
        """Whether others than this graph may hold the value, or what it holds, now or later."""
        return is_mutable(value.type) and any(cell.external for cell in self._reach(value))

    def writes(self, node: Node) -> frozenset[Any]:
        """The cells that a node or its blocks may write to (compare with `reads`)."""
        if node not in self._writes:
            cells = {self._cell(value).root() for value in written(node)}
            if node.kind in CALLS:
                cells |= {cell.root() for cell in self._outside.values()}
                cells |= {c for value in node.inputs for c in self._reach(value)}
            for block in node.blocks:
                for inner in block:
                    cells |= self.writes(inner)
            self._writes[node] = frozenset(cells)
        return self._writes[node]

    def reads(self, values: Iterable[Value]) -> frozenset[Any]:
        """The cells on which what the values hold depends."""
        return frozenset(c for v in values if is_mutable(v.type) for c in self._reach(v))

    def add_alias(self, new: Value, old: Value) -> None:
        """A value that has been added to the graph may alias an old one (and what that aliases)."""
        self._same(new, old)

    # Cells

    def _cell(self, value: Value) -> _Cell:
        cell = self._cells.get(value)
        if cell is None:
            cell = self._cells[value] = _Cell()
        return cell.root()

    def _reach(self, value: Value) -> Iterator[_Cell]:
        """The cell of a value, of what it holds, of what that holds..."""
        seen: set[_Cell] = set()
        cell: _Cell | None = self._cell(value)
        while cell is not None and cell not in seen:
            seen.add(cell)
            yield cell
            cell = cell.contents.root() if cell.contents is not None else None

    def _outer(self, type_: ty.Type) -> _Cell:
        """The cell of everything of a type that comes from outside."""
        if isinstance(type_, ty.OptionalType):
            return self._outer(type_.elem)
        key = "" if self._one_world else _key(type_)
        cell = self._outside.get(key)
        if cell is None:
            cell = self._outside[key] = _Cell()
            cell.external = True
            if self._one_world:
                cell.contents = cell
            elif isinstance(type_, _CONTAINERS):
                for child in type_.children:
                    if is_mutable(child):
                        _join(cell.inside(), self._outer(child))
        return cell.root()

    def _from_outside(self, value: Value) -> None:
        if is_mutable(value.type):
            _join(self._cell(value), self._outer(value.type))

    def _same(self, a: Value, b: Value) -> None:
        if is_mutable(a.type) and is_mutable(b.type):
            _join(self._cell(a), self._cell(b))

    # Reading the graph

    def _block(self, block: Block) -> None:
        for node in block.nodes:
            for inner in node.blocks:
                self._block(inner)
            joins = _joins_of(node.kind)
            if joins is None:
                self._node(node)
            else:
                for output, source in joins:
                    self._same(node.outputs[output], node.inputs[source])
            if may_write(node.kind):
                self._writers.append(node)

    def _node(self, node: Node) -> None:
        kind = node.kind
        if kind == "prim::If":
            for block in node.blocks:
                for output, value in zip(node.outputs, block.returns):
                    self._same(output, value)
        elif kind == "prim::Loop":
            body = node.blocks[0]
            groups = (node.inputs[2:], body.params[1:], body.returns[1:])
            for output, *others in zip(node.outputs, *groups):
                for other in others:
                    self._same(output, other)
        elif kind == "weft::Fused":
            for value, param in zip(node.inputs, node.blocks[0].params):
                self._same(value, param)
            for output, value in zip(node.outputs, node.blocks[0].returns):
                self._same(output, value)
        elif kind == "prim::unchecked_cast":
            self._same(node.output, node.inputs[0])
        elif kind in ("prim::TupleConstruct", "prim::ListConstruct", "prim::DictConstruct"):
            for value in node.inputs:
                self._put(node.output, value)
        elif kind in ("prim::TupleUnpack", "prim::TupleIndex", "prim::ListUnpack"):
            for output in node.outputs:
                self._put(node.inputs[0], output)
        elif kind in ("prim::CreateObject", "prim::Uninitialized", "prim::isinstance"):
            pass
        else:
            self._operator(node)

    def _put(self, container: Value, item: Value) -> None:
        """An item goes into a container or comes out of it."""
        if is_mutable(item.type):
            _join(self._cell(container).inside(), self._cell(item))

    def _operator(self, node: Node) -> None:
        operator = operator_of(node)
        if operator is None:  # attributes, calls, constants, what is not known
            self._calls |= node.kind in CALLS
            for value in (*node.inputs, *node.outputs):
                if value in self._known:
                    place = self._attribute_cells.setdefault(self._known[value], _Cell())
                    _join(self._cell(value), place)
                else:
                    self._from_outside(value)
            return
        args = list(zip(operator.schema.args, node.inputs))
        items = [v for a, v in args if is_mutable(v.type) and isinstance(a.type, ty.TypeVar)]
        containers = [v for _, v in args if isinstance(ty.non_none(v.type), _CONTAINERS)]
        if operator.schema.varargs:
            containers = [v for v in node.inputs if isinstance(v.type, _CONTAINERS)]
            items = [v for v in node.inputs if v not in containers]
        for output, result in zip(node.outputs, operator.schema.returns):
            if not is_mutable(output.type):
                continue
            if operator.may_give_input:
                self._same(output, node.inputs[0])
            marks = _marks(result)
            sources = [v for a, v in args if marks & _marks(a) - {"*"}]
            for source in sources:
                if isinstance(output.type, _CONTAINERS) and source.type == ty.TENSOR:
                    self._put(output, source)  # split gives a list of views
                elif isinstance(source.type, _CONTAINERS) and output.type == ty.TENSOR:
                    self._put(source, output)
                else:
                    self._same(output, source)
            if isinstance(output.type, _CONTAINERS):
                containers.append(output)
            elif isinstance(result.type, ty.TypeVar) or "*" in marks:
                items.append(output)
        holders = [v for v in containers if any(map(is_mutable, v.type.children))]
        for holder in holders:
            for other in holders:
                _join(self._cell(holder).inside(), self._cell(other).inside())
            for item in items:
                self._put(holder, item)


@functools.cache
def _joins_of(kind: str) -> tuple[tuple[int, int], ...] | None:
    """The outputs of an operator that are, or show, an input; None where its node has to be looked
    at: for containers, whose items alias, too."""
    operator = operator_of_kind(kind)
    if operator is None:
        return None
    if operator.is_separate:
        return ()
    args, returns = operator.schema.args, operator.schema.returns
    types = [part.type for part in (*args, *returns)]
    if operator.schema.varargs or any(
        isinstance(ty.non_none(type_), (*_CONTAINERS, ty.TypeVar)) or type_ is ty.ANY
        for type_ in types
    ):
        return None
    return tuple(
        (output, source)
        for output, result in enumerate(returns)
        for source, arg in enumerate(args)
        if _marks(result) & _marks(arg) - {"*"} or (operator.may_give_input and source == 0)
    )


def _marks(part: Any) -> set[str]:
    """The alias sets of an argument or result: {"a"} for "a!", {"c", "*"} for "c -> *"."""
    alias = part.alias or ""
    return {mark.strip() for mark in alias.replace("!", "").replace("->", "|").split("|")} - {""}


def _key(type_: ty.Type) -> str:
    if isinstance(type_, ty.ClassType):
        return "object"
    return str(type_)


def _parts(type_: ty.Type) -> Iterator[ty.Type]:
    yield type_
    for child in type_.children:
        yield from _parts(child)
