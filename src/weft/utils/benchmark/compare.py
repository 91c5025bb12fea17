"""Tables of measurements beside each other."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from weft.utils.benchmark.measurement import Measurement, select_unit

_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
_END = "\x1b[0m\x1b[0m"
_SHADES = (  # how many times the best, and the colour up to there
    (1.05, "\x1b[92m\x1b[1m"),
    (1.5, "\x1b[34m\x1b[1m"),
    (2.0, ""),
    (5.0, "\x1b[2m\x1b[91m"),
    (math.inf, "\x1b[31m\x1b[1m"),
)


class Compare:
    """A table for each label: a row for each sub-label and count of threads, a column for each
    description, the medians as cells.

    >>> bench = weft.utils.benchmark
    >>> spec = bench.TaskSpec("x", "pass", label="add", sub_label="row", description="now")
    >>> print(bench.Compare([bench.Measurement(1, [2e-6], spec)]))
    [----- add -----]
               |  now
    1 threads: ------
          row  |  2.0
    <BLANKLINE>
    Times are in microseconds (us).
    <BLANKLINE>
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = self._colors = self._by_rows = self._warnings = False

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements. ValueError for what is none."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Compare: expected measurements, got {type(result).__name__}")
            self._results.append(result)

    def trim_significant_figures(self) -> None:
        """Shows no digits that the times do not support."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colours times by how far from the best of their column (or row) they are."""
        self._colors, self._by_rows = True, rowwise

    def highlight_warnings(self) -> None:
        """Marks times that vary much with their interquartile range."""
        self._warnings = True

    def print(self) -> None:
        """Prints the tables."""
        print(str(self))

    def __str__(self) -> str:
        labels = dict.fromkeys(result.label for result in self._results)
        merged = Measurement.merge(self._results)
        return "\n".join(self._table([m for m in merged if m.label == label]) for label in labels)

    def _table(self, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(result.median for result in results))
        names = list(dict.fromkeys(result.description or "" for result in results))
        rows = list(dict.fromkeys((r.num_threads, r.env, r.as_row_name) for r in results))
        rows.sort(key=lambda row: row[0])
        cells = {((r.num_threads, r.env, r.as_row_name), r.description or ""): r for r in results}
        columns = [[cells.get((row, name)) for row in rows] for name in names]
        texts = [self._column(column, scale) for column in columns]
        widths = [max(len(name), *map(len, text)) for name, text in zip(names, texts)]
        first = max(len(row[2]) for row in rows) + 6
        head = _line(" " * first, [name.center(w) for name, w in zip(names, widths)])
        lines = [
            f"[{f' {results[0].label or results[0].title} '.center(len(head) - 2, '-')}]",
            head,
        ]
        for index, (row, shown) in enumerate(zip(rows, zip(*texts))):
            if index == 0 or row[0] != rows[index - 1][0]:
                lines.append(f"{row[0]} threads: ".ljust(len(head), "-"))
            padded = [text.center(width) for text, width in zip(shown, widths)]
            if self._colors:
                padded = self._colored(padded, columns, index)
            lines.append(_line(" " * 6 + row[2].ljust(first - 6), padded))
        note = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
        warned = self._warnings and any(result.has_warnings for result in results)
        end = note if warned else ""
        return "\n".join(lines) + f"\n\nTimes are in {_ENGLISH[unit]}s ({unit}).\n{end}"

    def _column(self, column: list[Any], scale: float) -> list[str]:
        """The times of a column, with as many decimals each."""
        known = [m for m in column if m is not None]
        leading = [math.ceil(math.log10(m.median / scale)) for m in known]
        decimals = 1
        if self._trim:
            spare = [m.significant_figures - digits for m, digits in zip(known, leading)]
            decimals = max(0, *spare)
        width = max(leading) + (decimals + 1 if decimals else 0)
        return ["" if m is None else self._cell(m, scale, decimals, width) for m in column]

    def _cell(self, result: Measurement, scale: float, decimals: int, width: int) -> str:
        text = f"{result.median / scale:{width}.{decimals}f}"
        if self._warnings and result.has_warnings:
            return f"(! {result.iqr / result.median:.0%}) {text}"
        return text

    def _colored(self, texts: list[str], columns: list[list[Any]], index: int) -> list[str]:
        found = []
        for text, column in zip(texts, columns):
            if column[index] is None:
                found.append(text)
                continue
            among = [other[index] for other in columns] if self._by_rows else column
            best = min(m.median for m in among if m is not None)
            ratio = column[index].median / best
            shade = next(color for limit, color in _SHADES if ratio <= limit)
            found.append(f"{shade}{text}{_END}" if shade else text)
        return found


def _line(first: str, cells: list[str]) -> str:
    return "  |  ".join([first, *cells])
