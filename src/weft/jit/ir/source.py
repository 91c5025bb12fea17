"""Where a piece of the program came from: a source text and a range of characters in it."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from weft.jit.ir.record import field, record


@record(eq=False, repr=False)
class Source:
    """A text of Python, or a part of one cut out of a file.

    `first_line` is the number, in the file, of the text's first line (from 1), `indent` how many
    characters were cut from the start of every line: columns are those of the file. A text of None
    says that only the place is known (a graph read from its printed form).
    """

    text: str | None
    filename: str = "<string>"
    first_line: int = 1
    indent: int = 0
    _starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        lines = (self.text or "").split("\n")
        self._starts = list(accumulate((len(line) + 1 for line in lines[:-1]), initial=0))

    def line_of(self, offset: int) -> tuple[int, int]:
        """Index of the line that holds the offset (from 0), and the column in it."""
        line = bisect_right(self._starts, max(offset, 0)) - 1
        return line, offset - self._starts[line]

    def line(self, index: int) -> str:
        """The text of one line (index from 0), without its end."""
        assert self.text is not None
        end = self._starts[index + 1] - 1 if index + 1 < len(self._starts) else len(self.text)
        return self.text[self._starts[index] : end]

    @property
    def line_count(self) -> int:
        """How many lines the text has."""
        return len(self._starts)


class SourceRange:
    """Characters `start` to `end` of a source. `caller` is the place of the call, for code that has
    been inlined. Ranges never change; compiling a function makes more of them than of anything
    else, so they are no records."""

    __slots__ = ("caller", "end", "source", "start")

    def __init__(
        self, source: Source, start: int, end: int, caller: SourceRange | None = None
    ) -> None:
        self.source = source
        self.start = start
        self.end = end
        self.caller = caller

    @classmethod
    def at(cls, filename: str, line: int, column: int) -> SourceRange:
        """A place in a file whose text is not at hand.

        >>> str(SourceRange.at("net.py", 3, 8))
        'net.py:3:8'
        """
        return cls(Source(None, filename, line, column), 0, 0)

    def called_from(self, call: SourceRange, known: dict[SourceRange, SourceRange]) -> SourceRange:
        """The same range, reached through a call at another one. `known` has those that were asked
        for before: most nodes share their callers."""
        made = known.get(self)
        if made is None:
            caller = call if self.caller is None else self.caller.called_from(call, known)
            made = known[self] = SourceRange(self.source, self.start, self.end, caller)
        return made

    def chain(self) -> list[SourceRange]:
        """The range and those it was called from, innermost first."""
        return [self, *(self.caller.chain() if self.caller is not None else [])]

    def file_line_col(self) -> tuple[str, int, int]:
        """File name, line (from 1) and column (from 0) of the start."""
        line, column = self.source.line_of(self.start)
        return self.source.filename, self.source.first_line + line, column + self.source.indent

    def highlight(self, context: int = 3) -> str:
        """The lines before the range, the lines of the range, and carets below its first line.

        >>> text = "def f(x):\\n    return x + 1\\n"
        >>> print(SourceRange(Source(text, "f.py"), 21, 26).highlight())
          File "f.py", line 2
            def f(x):
                return x + 1
                       ~~~~~ <--- HERE
        """
        name, number, _ = self.file_line_col()
        head = f'  File "{name}", line {number}\n'
        if self.source.text is None:
            return head.rstrip("\n")
        first, column = self.source.line_of(self.start)
        last, last_column = self.source.line_of(max(self.end, self.start))
        shown = [self.source.line(i) for i in range(max(0, first - context), first + 1)]
        width = last_column - column if last == first else len(shown[-1]) - column
        marks = " " * column + "~" * max(width, 1) + " <--- HERE"
        rest = [self.source.line(i) for i in range(first + 1, min(last + 1, first + 1 + context))]
        return head + "\n".join(f"    {line}" for line in [*shown, marks, *rest]).rstrip()

    def __repr__(self) -> str:
        return f"SourceRange({self})"

    def __str__(self) -> str:
        return "{}:{}:{}".format(*self.file_line_col())
