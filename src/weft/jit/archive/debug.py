"""Where the code of an archive came from: the `.debug_pkl` beside each of its files, which
`Origins` reads and `origins_of` writes.

It maps positions in the file to ranges in texts of the program that was saved. Whatever is damaged
or missing there leaves the places in the archive's own code.
"""

from __future__ import annotations

import ast
import copy
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn

from weft.jit.frontend.source.code import Code
from weft.jit.ir.source import Source, SourceRange
from weft.serialization.errors import LoadError
from weft.serialization.pickle_writer import PickleWriter
from weft.serialization.unpickle import Callee, Unpickler


class Line(NamedTuple):
    """A line of code, and the place in the source that it was compiled from."""

    text: str
    range: SourceRange | None = None


# Where it stands first, texts are lists of lines by their number; else they stand in full.
_TABLE = "FORMAT_WITH_STRING_TABLE"
_LIST = Callee("torch.jit._pickle.build_intlist", lambda values: values)


def _find(module: str, name: str) -> Any:
    if f"{module}.{name}" == _LIST.name:
        return _LIST
    raise LoadError("load: expected lists of numbers in .debug_pkl, got something else")


def _refuse(*args: Any) -> NoReturn:
    raise LoadError("load: expected tuples in .debug_pkl, got something else")


def origins_of(lines: Iterable[Line]) -> bytes | None:
    """The table of a file: where each of its lines begins, and the place in a source that it was
    compiled from. None without such places: PyTorch reads no empty table."""
    sources: dict[Source, tuple[str, str, int]] = {}
    entries, at = [], 0
    for text, range in lines:
        if range is not None and range.source.text and not range.source.filename.startswith(_OWN):
            source = range.source
            known = (source.text or "", source.filename, source.first_line)
            ends = (len(known[0][:end].encode()) for end in (range.start, range.end))
            indent = len(text) - len(text.lstrip(" "))
            entries.append((at + indent, (sources.setdefault(source, known), *ends)))
        at += len(text.encode()) + 1
    return PickleWriter().dump(tuple(entries)) if entries else None


_OWN = "code/"  # files of archives whose sources are not known


class Origins:
    """The table of one file of code. It is read when it is first asked for."""

    def __init__(self, pickle: bytes) -> None:
        self._pickle: bytes | None = pickle
        self._strings: tuple[Any, ...] | None = None
        self._offsets: list[int] = []
        self._entries: list[Any] = []
        # Each with the number of its bytes, and which of them are no characters of their own.
        self._sources: dict[Any, tuple[Source, int, list[int]]] = {}

    def find(self, offset: int, line: int) -> SourceRange | None:
        """The range that a position of the file came from, or one before it in the line that starts
        at `line`; both in bytes."""
        if self._pickle is not None:
            self._read(self._pickle)
            self._pickle = None
        index = bisect_right(self._offsets, offset) - 1
        while index >= 0 and self._offsets[index] >= line:
            try:
                found = self._range(*self._entries[index])
            except (TypeError, ValueError, IndexError, AttributeError):
                return None
            if found is not None:
                return found
            index -= 1
        return None

    def _read(self, pickle: bytes) -> None:
        try:
            made = Unpickler(pickle, _find, _refuse, _refuse).load()
            if made[0] == _TABLE:
                self._strings, made = made[1], made[2]
            for offset, where, *_ in made:
                self._offsets.append(int(offset))
                self._entries.append(where)
        except (LoadError, TypeError, ValueError, IndexError, KeyError):
            self._offsets = []
        if self._offsets != sorted(self._offsets):
            self._offsets = []

    def _range(self, source: Any, start: int, end: int) -> SourceRange | None:
        text, name, first = source
        found = self._sources.get((id(text), name))
        if found is None:
            made = Source(self._text(text), self._name(name), int(first))
            data = (made.text or "").encode()
            inner = [] if data.isascii() else [at for at, b in enumerate(data) if b & 0xC0 == 0x80]
            found = self._sources[id(text), name] = made, len(data), inner
        known, size, inner = found
        if type(start) is not int or type(end) is not int:
            return None
        if not known.filename or not 0 <= start <= end <= size:
            return None
        start, end = (at - bisect_left(inner, at) for at in (start, end))
        return SourceRange(known, start, max(end, start + 1))

    def _text(self, text: Any) -> str:
        if self._strings is None:
            return str(text)
        return "".join(str(self._strings[index]) for index in text)

    def _name(self, name: Any) -> str:
        if name is None or self._strings is None:
            return str(name or "")
        return str(self._strings[name])


class ArchivedCode(Code):
    """Code of an archive, whose nodes have the ranges that they came from. `starts` are the
    positions of the lines of its file, in bytes."""

    is_archived = True

    def __init__(
        self,
        text: str,
        filename: str,
        first_line: int,
        indent: int = 0,
        origins: Origins | None = None,
        starts: list[int] | None = None,
    ) -> None:
        self.origins = origins
        self.starts = starts or []
        super().__init__(text, filename, first_line, indent)

    def part(self, node: ast.stmt) -> ArchivedCode:
        """The code of one definition in this code."""
        made = copy.copy(self)
        made.tree = ast.Module([node], [])
        return made

    def own_text(self) -> str:
        """The lines of the definition that it is the code of."""
        (node,) = self.tree.body
        return "\n".join(self._lines[node.lineno - 1 : node.end_lineno])

    def without_origins(self) -> Code:
        """The same code, whose ranges are those of the archive's file."""
        made = Code(self.text, self.source.filename, self.source.first_line, tree=self.tree)
        made.is_archived = True
        return made

    def _range(self, node: ast.AST) -> SourceRange:
        found = None if self.origins is None else self._origin(self.origins, node)
        return super()._range(node) if found is None else found

    def _origin(self, origins: Origins, node: ast.AST) -> SourceRange | None:
        positions = [(getattr(node, "lineno", 0), getattr(node, "col_offset", 0))]
        if isinstance(node, ast.Call):  # of a function: the name has none, the arguments have one
            positions.append((node.func.end_lineno or 0, node.func.end_col_offset or 0))
        for line, column in positions:
            index = line + self.source.first_line - 2
            if not 0 <= index < len(self.starts):
                continue
            start = self.starts[index]
            found = origins.find(start + column + self.source.indent, start)
            if found is not None:
                return found
        return None
