"""Source that inspect does not find: of `python -c`, of a piped file, of the prompt, of exec.

A text that may hold a function is compiled again, and taken if that gives the function's own code.
"""

from __future__ import annotations
import __future__

import ast
import os
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from weft.jit.ir.fresh_stack import parse

_FUTURE = __future__.annotations.compiler_flag  # the one that changes what is compiled
_LONGEST = 10_000_000  # characters of a text that is looked into


def find_lines(function: Any) -> tuple[list[str], int] | None:
    """The lines of a function and the number of the first; None where they are nowhere."""
    if not isinstance(function, FunctionType):
        return None
    code = function.__code__
    for text in _texts(function, code):
        if len(text) > _LONGEST or not _holds(text, code):
            continue
        found = _definition(parse(text), code)
        if found is not None:
            first, last = found
            return text.splitlines(keepends=True)[first - 1 : last], first
    return None


def _texts(function: FunctionType, code: CodeType) -> Iterator[str]:
    """Texts that may hold the function, the likely ones first."""
    own = function.__globals__.get("__source__")
    if isinstance(own, str):
        yield own
    if code.co_filename == "<string>" and "-c" in sys.orig_argv[1:-1]:
        yield sys.orig_argv[sys.orig_argv.index("-c", 1) + 1]
    if code.co_filename == "<stdin>":
        yield from _piped()
    packed = getattr(sys, "_MEIPASS", None)
    if packed is not None:
        yield from _packed(os.path.join(packed, code.co_filename))
    yield from _typed(function.__qualname__.partition(".")[0])
    yield from _held_by_callers()


def _piped() -> Iterator[str]:
    """The whole input, where it is a file."""
    try:
        size = os.fstat(0).st_size
        yield os.pread(0, size, 0).decode() if size else ""
    except (OSError, UnicodeDecodeError):
        return


def _packed(path: str) -> Iterator[str]:
    """A script of an application that PyInstaller made, in the folder it runs from."""
    try:
        with open(path, encoding="utf-8") as file:
            yield file.read()
    except (OSError, UnicodeDecodeError):
        return


def _typed(name: str) -> Iterator[str]:
    """Definitions of a name in the history of the prompt, the latest first."""
    readline = sys.modules.get("readline")
    if readline is None:
        return
    count = readline.get_current_history_length()
    lines = [readline.get_history_item(i + 1) or "" for i in range(count)]
    starts = (f"def {name}(", f"class {name}(", f"class {name}:", f"{name} =")
    for index in reversed(range(count)):
        if not lines[index].startswith(starts):
            continue
        first, last = index, index + 1
        while first and lines[first - 1].startswith("@"):
            first -= 1
        while last < count and (lines[last][:1].isspace() or not lines[last]):
            last += 1
        yield "\n".join(lines[first:last]) + "\n"


def _held_by_callers() -> Iterator[str]:
    """Texts in variables and constants of the functions that run: what was given to exec."""
    frame: Any = sys._getframe(1)
    seen: set[int] = set()
    while frame is not None:
        values = [*frame.f_locals.values(), *frame.f_code.co_consts]
        if id(frame.f_globals) not in seen:
            seen.add(id(frame.f_globals))
            values += list(frame.f_globals.values())
        for value in values:
            if isinstance(value, str) and ("def " in value or "lambda" in value):
                yield value
        frame = frame.f_back


def _holds(text: str, code: CodeType) -> bool:
    """Whether compiling the text gives the code."""
    if code.co_name != "<lambda>" and f"def {code.co_name}" not in text:
        return False
    try:
        made = compile(text, code.co_filename, "exec", code.co_flags & _FUTURE, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(_same(each, code) for each in _nested(made))


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _nested(value)


def _same(a: CodeType, b: CodeType) -> bool:
    facts = ("co_name", "co_code", "co_names", "co_varnames", "co_freevars", "co_firstlineno")
    if any(getattr(a, fact) != getattr(b, fact) for fact in facts):
        return False
    pairs = list(zip(a.co_consts, b.co_consts))
    return len(a.co_consts) == len(b.co_consts) and all(
        _same(x, y) if isinstance(x, CodeType) and isinstance(y, CodeType) else _equal(x, y)
        for x, y in pairs
    )


def _equal(x: Any, y: Any) -> bool:
    return type(x) is type(y) and repr(x) == repr(y)


def _definition(tree: ast.Module, code: CodeType) -> tuple[int, int] | None:
    """The first and the last line of the definition; of a lambda those of its statement."""
    line = code.co_firstlineno
    best = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(each.lineno for each in decorators)])
        last = node.end_lineno or first
        if code.co_name == "<lambda>":
            fits = not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.If | ast.For)
        else:
            fits = isinstance(node, ast.FunctionDef) and node.name == code.co_name
            fits = fits and first == line
        if fits and first <= line <= last:
            best = first, last
    return best
