"""Where the source of a function or class is, and its syntax tree with source ranges."""

from __future__ import annotations

import ast
import os
from typing import Any

from weft._runtime import lazy
from weft.jit.cache import reads
from weft.jit.frontend.source.errors import FrontendError, fail, refuse
from weft.jit.frontend.source.search import find_lines
from weft.jit.ir.fresh_stack import parse
from weft.jit.ir.source import Source, SourceRange

inspect = lazy.module("inspect")  # takes longer to import than to compile a function
linecache = lazy.module("linecache")  # a program given as a text does without

_IN_LINES = (ast.expr, ast.Return, ast.Assign, ast.Expr)  # have columns, and no body
_MOST_TRIED = 16  # ends of a definition
_WITH_BODY = (ast.FunctionDef, ast.ClassDef, ast.If, ast.For, ast.While, ast.With)


class Code:
    """A piece of source: its text without common indent, its tree, and ranges of its nodes."""

    is_archived = False

    def __init__(
        self, text: str, filename: str, first_line: int, indent: int = 0,
        tree: ast.Module | None = None,
    ) -> None:  # fmt: skip
        self.source = Source(text, filename, first_line, indent)
        self.text = text
        self._is_ascii = text.isascii()  # columns are characters then
        self._ranges: dict[ast.AST, SourceRange] = {}
        self._starts = [0]
        self._lines = text.split("\n")
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self.tree = _parse(text, self) if tree is None else tree

    def range(self, node: ast.AST) -> SourceRange:
        """The range that a node covers; of a definition its first line only."""
        known = self._ranges.get(node)
        if known is None:
            known = self._ranges[node] = self._range(node)
        return known

    def _range(self, node: ast.AST) -> SourceRange:
        if self._is_ascii and isinstance(node, _IN_LINES) and node.end_lineno is not None:
            first, last, ends = node.lineno, node.end_lineno, node.end_col_offset
            if 0 < first <= last < len(self._starts) and ends is not None:
                start = self._starts[first - 1] + node.col_offset
                end = self._starts[last - 1] + ends
                return SourceRange(self.source, start, end if end > start else start + 1)
        return self._general_range(node)

    def _general_range(self, node: ast.AST) -> SourceRange:
        first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", None)
        start = self._offset(first, getattr(node, "col_offset", 0))
        if last is None:
            return SourceRange(self.source, start, start + 1)
        end = self._offset(last, getattr(node, "end_col_offset", 0) or 0)
        if isinstance(node, _WITH_BODY):
            end = min(end, start + len(self._lines[first - 1][node.col_offset :].rstrip()))
        return SourceRange(self.source, start, max(end, start + 1))

    def _offset(self, line: int, column: int) -> int:
        """The position in the text of a line (from 1) and a column counted in UTF-8 bytes."""
        if not 1 <= line <= len(self._lines):
            return len(self.text)
        text = self._lines[line - 1]
        if self._is_ascii:
            characters = min(column, len(text))
        else:
            characters = len(text.encode()[:column].decode(errors="ignore"))
        return self._starts[line - 1] + characters


def _parse(text: str, code: Code) -> ast.Module:
    for type_comments in (True, False):  # a broken type comment is a comment
        try:
            return parse(text, code.source.filename, type_comments=type_comments)
        except (SyntaxError, ValueError) as error:
            if not type_comments:
                line = getattr(error, "lineno", None) or 1
                start = code._offset(line, max((getattr(error, "offset", None) or 1) - 1, 0))
                range = SourceRange(code.source, start, start + 1)
                message = getattr(error, "msg", None) or str(error)
                raise FrontendError(f"expected Python source, got {message}", range) from None
        except (RecursionError, MemoryError):
            fail(f"{code.source.filename}: expected less deeply nested source")
    raise FrontendError("expected Python source")


def code_of(obj: Any) -> Code:
    """The source of a Python function or class.

    Files and notebook cells are found through inspect and linecache, other code where
    source_search looks. FrontendError when there is no source, with the ways to give one, or when
    the file has changed.
    """
    name = getattr(obj, "__qualname__", repr(obj))
    given = getattr(obj, "__weft_source__", None)
    if isinstance(given, Code):
        return given
    where = getattr(getattr(obj, "__code__", None), "co_filename", None)
    # Of the texts of this name linecache knows one, from Python 3.13 on.
    if where == "<string>" and (found := find_lines(obj)) is not None:
        return _code(*found, where)
    try:
        filename, lines, first = _source_of(obj)
        _check_name(obj, lines, filename)
    except (OSError, TypeError, IndexError, SyntaxError):
        found = find_lines(obj)
        if found is not None:
            return _code(*found, where or "<string>")
        raise FrontendError(
            f"{name}: expected source code to compile, got a {_kind(obj)} of "
            f"{where or 'an unknown file'}, whose source cannot be read",
            hint="a .py file that ships with the program, weft.jit.CompilationUnit(text) with the "
            "source as a string, or __source__ = text among the globals of code made by exec",
        ) from None
    return _code(lines, first, filename)


def _source_of(obj: Any) -> tuple[str, list[str], int]:
    """The file of a function or class, its lines, and the number of the first."""
    filename = _file_of(obj)
    if filename is not None:
        linecache.checkcache(filename)
        every = linecache.getlines(filename, getattr(obj, "__globals__", None))
        found = _lines_of(obj, every)
        if found is not None:
            return filename, *found
    filename = filename or inspect.getsourcefile(obj) or ""
    linecache.checkcache(filename)
    lines, first = inspect.getsourcelines(obj)
    return filename or inspect.getfile(obj), lines, first


def _check_name(obj: Any, lines: list[str], filename: str) -> None:
    """FrontendError where the lines are those of something else."""
    code = getattr(obj, "__code__", None)
    if code is None or code.co_name == "<lambda>" or hasattr(obj, "__wrapped__"):
        return
    if not any(f"def {code.co_name}" in line for line in lines):
        raise FrontendError(
            f"{obj.__qualname__}: expected its definition at line {code.co_firstlineno} of "
            f"{filename}, got another: the file has changed since it was imported"
        )


def _code(lines: list[str], first: int, filename: str) -> Code:
    text = "".join(lines)
    reads.read_lines(filename, max(first, 1), len(lines))
    return Code(_dedented(text).rstrip("\n") + "\n", filename, max(first, 1), _indent(text))


def unwrapped(function: Any) -> Any:
    """The function behind wrappers of functools (inspect, which does the same, takes long to
    import)."""
    seen = {id(function)}
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
        if id(function) in seen:
            raise ValueError(f"expected a function, got a wrapper of itself, {function!r}")
        seen.add(id(function))
    return function


def _file_of(obj: Any) -> str | None:
    """The file of a function, as inspect.getsourcefile finds it; None where that must be asked."""
    name = getattr(getattr(obj, "__code__", None), "co_filename", "")
    return name if name.endswith(".py") and os.path.exists(name) else None


def _dedented(text: str) -> str:
    """A definition without the indent of its first line. What strings go on with in further lines
    stays as it is, or they would be others; comments and continued lines may stand further left."""
    width = _indent(text)
    if not width:
        return text
    inside = _lines_inside_strings(text)
    lines = enumerate(text.split("\n"))
    return "\n".join(line if i in inside else _without(line, width) for i, line in lines)


def _without(line: str, width: int) -> str:
    return line.lstrip() if line[:width].strip() else line[width:]


def _lines_inside_strings(text: str) -> set[int]:
    """The lines that start within a string."""
    if not any(mark in text for mark in ('"""', "'''", "\\\n")):
        return set()
    strings = [
        node
        for statement in _statements(text) or ()
        for node in ast.walk(statement)
        if isinstance(node, ast.JoinedStr | ast.Constant)
    ]
    # Lines count from 1, and the first one is that of _statements.
    spans = ((node.lineno, node.end_lineno or node.lineno) for node in strings)
    return {line - 1 for first, last in spans for line in range(first, last)}


def _lines_of(obj: Any, every: list[str]) -> tuple[list[str], int] | None:
    """Of the lines of a file those of a function made by `def`, and the number of the first; None
    where that cannot be told for sure.

    inspect.getsourcelines does the same for everything, but splits all lines into tokens first.
    Here the definition ends before a line that is not further in than its first one, if what comes
    before that line can be parsed: otherwise it is within brackets or a string. Where that happens
    often, splitting into tokens is faster.
    """
    code = getattr(obj, "__code__", None)
    if code is None or obj.__name__ == "<lambda>" or hasattr(obj, "__wrapped__"):
        return None
    start = code.co_firstlineno - 1
    if not 0 <= start < len(every):
        return None
    width, tried = _indent(every[start]), 0
    for end in range(start + 1, len(every) + 1):
        if end < len(every) and (_is_blank(every[end]) or _indent(every[end]) > width):
            continue
        tried += 1
        if tried > _MOST_TRIED:
            return None
        lines = every[start:end]
        while lines and _is_blank(lines[-1]):
            lines.pop()
        body = _statements("".join(lines))
        if body is not None:
            (node, *rest) = body or (None,)
            found = isinstance(node, ast.FunctionDef) and not rest and node.name == code.co_name
            return (lines, start + 1) if found else None
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_blank(line: str) -> bool:
    """Whether a line says nothing, whatever its indent."""
    rest = line.lstrip()
    return not rest or rest.startswith("#")


def _statements(text: str) -> list[ast.stmt] | None:
    """The statements of a text, which may be indented; None where there are none."""
    try:
        if not text[:1].isspace():
            return list(parse(text).body)
        (whole,) = parse(f"if 1:\n{text}").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return list(whole.body)


def _kind(obj: Any) -> str:
    return "class" if isinstance(obj, type) else "function"


def _at_place(code: Code, found: list[ast.Lambda], function: Any) -> list[ast.Lambda]:
    """Of several lambdas those that lie where the function's instructions say (Python 3.11)."""
    positions = getattr(getattr(function, "__code__", None), "co_positions", None)
    if positions is None:
        return found
    line, indent = code.source.first_line - 1, code.source.indent
    spans = {
        ((a - line, c - indent), (b - line, d - indent))
        for a, b, c, d in positions()
        if None not in (a, b, c, d) and (a, c) != (b, d)
    }

    def covers(node: ast.Lambda) -> bool:
        body = node.body
        start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
        return all(start <= first and last <= end for first, last in spans)

    fitting = [node for node in found if spans and covers(node)]
    return [max(fitting, key=lambda node: (node.lineno, node.col_offset))] if fitting else found


def definition(
    code: Code, name: str, function: Any = None
) -> ast.FunctionDef | ast.ClassDef | ast.Lambda:
    """The definition of `name` in the source; a lambda is looked for inside the statement."""
    if name == "<lambda>":
        found = [node for node in ast.walk(code.tree) if isinstance(node, ast.Lambda)]
        if len(found) > 1:
            found = _at_place(code, found, function)
        if len(found) == 1:
            return found[0]
        fail(
            f"<lambda>: expected one lambda on its line, got {len(found)}",
            code.range(code.tree.body[0]) if code.tree.body else None,
            "def with a name",
        )
    for node in code.tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            return node
        if isinstance(node, ast.AsyncFunctionDef):
            refuse(code, node)
    raise FrontendError(f"{name}: expected a definition in its source, got none")


def function_definition(function: Any, what: str = "a function") -> tuple[ast.FunctionDef, Code]:
    """The definition of a Python function and its source; FrontendError for what is none."""
    code = code_of(function)
    node = definition(code, function.__name__, function)
    if not isinstance(node, ast.FunctionDef):
        fail(f"{function.__qualname__}: expected {what}", code.range(node))
    return node, code
