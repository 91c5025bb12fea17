"""Reads the text of a graph. Printing what was read gives the same text.

The grammar is in docs/jit_ir.md. Constants that have no text (tensors) are refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from weft.jit.ir import types as ty
from weft.jit.ir.graph import Block, Graph, Node, Value
from weft.jit.ir.literal_text import LiteralReader
from weft.jit.ir.literals import NAMED
from weft.jit.ir.reader import Cursor
from weft.jit.ir.source import SourceRange
from weft.jit.ir.type_text import Classes, read_type
from weft.jit.ir.value import Dim, ShapeInfo

if TYPE_CHECKING:
    from weft.jit.ir.graph import Function

_VALUE = re.compile(r"%[\w.]+")
_KIND = re.compile(r"\w+::\w+(?:\.\w+)?")
_WORD = re.compile(r"\w+")
_SIZE = re.compile(r"\*|\w+")
_PLACE = re.compile(r"# (.*):(\d+):(\d+)$")


def parse_ir(
    text: str, classes: Classes | None = None, functions: dict[str, Function] | None = None
) -> Graph:
    """The graph of a text. Names of classes and functions in it are looked up in what is given.

    IRSyntaxError, with the line, for what does not follow the grammar, for a value that is used
    before it is made or made twice, and for constants without text.
    """
    return _Parser(text, classes or {}, functions or {}).graph_text()


class _Parser:
    def __init__(self, text: str, classes: Classes, functions: dict[str, Function]) -> None:
        self.lines = [
            (number, line)
            for number, line in enumerate(text.split("\n"), 1)
            if line.strip() and not line.lstrip().startswith("#")
        ]
        self.next = 0
        self.classes = classes
        self.literals = LiteralReader(classes, functions)
        self.graph = Graph()
        self.values: dict[str, Value] = {}

    def graph_text(self) -> Graph:
        cursor = self._line("graph(...)")
        cursor.expect("graph")
        self._params(cursor, self.graph.block)
        self._block(self.graph.block, "return")
        if self.next < len(self.lines):
            raise self._line("").error("the end of the graph")
        return self.graph

    def _line(self, what: str) -> Cursor:
        """The next line, which must be there."""
        if self.next == len(self.lines):
            number = self.lines[-1][0] if self.lines else 1
            raise Cursor("", 0, number).error(what)
        number, text = self.lines[self.next]
        self.next += 1
        return Cursor(text, 0, number)

    def _block(self, block: Block, end: str) -> None:
        """Nodes up to the line that says what the block gives."""
        while True:
            cursor = self._line(f"a node or {end!r}")
            if cursor.accept(end):
                block.set_returns(self._uses(cursor))
                self._finish(cursor)
                return
            self._node(cursor, block)

    def _node(self, cursor: Cursor, block: Block) -> None:
        declared: list[tuple[str, ty.Type, ShapeInfo | None]] = []
        if cursor.text.startswith("%", cursor.position):
            declared = [self._declared(cursor)]
            while cursor.accept(","):
                declared.append(self._declared(cursor))
            cursor.expect("=")
        kind = cursor.need(_KIND, "the kind of a node, such as aten::add.Tensor")
        attrs = self._attrs(cursor) if cursor.accept("[") else {}
        inputs = self._uses(cursor)
        node = self.graph.create(kind, inputs, (), attrs, self._place(cursor))
        block.append(node)
        self._nested(node)
        # Declared last: the blocks of a node cannot use what it gives.
        for name, type_, shape in declared:
            self._define(cursor, name, node.add_output(type_, name), shape)

    def _nested(self, node: Node) -> None:
        while self.next < len(self.lines):
            number, text = self.lines[self.next]
            cursor = Cursor(text, 0, number)
            if not cursor.accept(f"block{len(node.blocks)}("):
                return
            self.next += 1
            cursor.position -= 1
            inner = node.add_block()
            self._params(cursor, inner)
            self._block(inner, "->")

    def _params(self, cursor: Cursor, block: Block) -> None:
        """`(%x : Tensor, %n : int):` at the end of a line."""
        cursor.expect("(")
        while not cursor.accept(")"):
            name, type_, shape = self._declared(cursor)
            self._define(cursor, name, block.add_param(type_, name), shape)
            if not cursor.accept(","):
                cursor.expect(")")
                break
        cursor.expect(":")
        self._finish(cursor)

    def _declared(self, cursor: Cursor) -> tuple[str, ty.Type, ShapeInfo | None]:
        name = cursor.need(_VALUE, "a value such as %x")[1:]
        cursor.expect(":")
        type_ = read_type(cursor, self.classes)
        shape = None
        if type_ == ty.TENSOR and cursor.accept("("):
            shape = self._shape(cursor)
        return name, type_, shape

    def _define(self, cursor: Cursor, name: str, value: Value, shape: ShapeInfo | None) -> None:
        if name in self.values:
            raise cursor.error(f"before this a value that is made once, not %{name} again,")
        if value.name != name:
            value.name = name
        value.shape = shape
        self.values[name] = value

    def _shape(self, cursor: Cursor) -> ShapeInfo:
        """`float32, [2, n, *])`, the opening bracket has been read."""
        dtype = cursor.need(_SIZE, "a dtype or *")
        sizes: tuple[Dim, ...] | None = None
        if cursor.accept(","):
            cursor.expect("[")
            found: list[Dim] = []
            while not cursor.accept("]"):
                size = cursor.need(_SIZE, "a size")
                found.append(None if size == "*" else int(size) if size.isdigit() else size)
                if not cursor.accept(","):
                    cursor.expect("]")
                    break
            sizes = tuple(found)
        cursor.expect(")")
        return ShapeInfo(None if dtype == "*" else NAMED["torch"](f"torch.{dtype}"), sizes)

    def _attrs(self, cursor: Cursor) -> dict[str, Any]:
        """`name=value, ...]`, the opening bracket has been read."""
        attrs: dict[str, Any] = {}
        while not cursor.accept("]"):
            name = cursor.need(_WORD, "the name of an attribute")
            cursor.expect("=")
            attrs[name] = self.literals.read(cursor)
            if not cursor.accept(","):
                cursor.expect("]")
                break
        return attrs

    def _uses(self, cursor: Cursor) -> list[Value]:
        """`(%x, %y)`"""
        cursor.expect("(")
        values: list[Value] = []
        while not cursor.accept(")"):
            cursor.blanks()
            start = cursor.position
            name = cursor.need(_VALUE, "a value such as %x")[1:]
            if name not in self.values:
                cursor.position = start
                raise cursor.error("a value that has been made")
            values.append(self.values[name])
            if not cursor.accept(","):
                cursor.expect(")")
                break
        return values

    def _place(self, cursor: Cursor) -> SourceRange | None:
        """`# file.py:3:8`, or nothing, up to the end of the line."""
        cursor.blanks()
        found = _PLACE.match(cursor.text, cursor.position)
        if found is None:
            self._finish(cursor)
            return None
        return SourceRange.at(found[1], int(found[2]), int(found[3]))

    def _finish(self, cursor: Cursor) -> None:
        if not cursor.at_end() and not cursor.accept("#"):
            raise cursor.error("the end of the line")
