"""What the compiler refuses, and how it says so.

Every refusal names what was expected and what was found, shows the line with a mark under the
place, says what to write instead where that is known, and lists who called the function that was
being compiled.
"""

from __future__ import annotations

import ast
import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from weft.jit.ir.record import NamedTuple

if TYPE_CHECKING:
    from weft.jit.frontend.source.code import Code


class FrontendError(RuntimeError):
    """A program that the compiler refuses, with the place and the chain of callers in its text.

    Attributes: message (one line), range (a SourceRange or None), hint (what to write instead).
    """

    def __init__(self, message: str, range: Any = None, hint: str | None = None) -> None:
        self.message = message
        self.range = range
        self.hint = hint
        self.callers = callers()
        super().__init__(self._text())
        self.__suppress_context__ = True  # what went wrong inside the compiler is no help

    def _text(self) -> str:
        parts = [self.message]
        if self.range is not None:
            parts.append(place(self.range))
        if self.hint:
            parts.append(f"Write instead: {self.hint}")
        for name, caller, range in self.callers:
            if not caller:
                continue  # it is what the user asked for
            parts.append(f"'{name}' is compiled because it is called from '{caller}'")
            if range is not None:
                parts.append(place(range))
        return "\n".join(parts)


class NotSupportedError(FrontendError):
    """Python syntax that is not part of the language; see REFUSED."""


class UnknownOperator(FrontendError):
    """An operator of an archive that weft has not. The statement that calls it becomes one that
    raises: branches that are never taken may name any."""


def place(range: Any) -> str:
    """File and line, and below the source line with a mark under the range."""
    return range.highlight()


class _Callers(threading.local):
    def __init__(self) -> None:
        self.frames: list[tuple[str, str, Any]] = []


_callers = _Callers()


def callers() -> tuple[tuple[str, str, Any], ...]:
    """The calls through which the function now being compiled was reached, innermost first."""
    return tuple(reversed(_callers.frames))


@contextlib.contextmanager
def compiling(name: str, caller: str, range: Any) -> Iterator[None]:
    """While `name` is compiled because `caller` calls it at `range`."""
    _callers.frames.append((name, caller, range))
    try:
        yield
    finally:
        _callers.frames.pop()


@contextlib.contextmanager
def from_outside() -> Iterator[None]:
    """While something is compiled that nobody called: errors start a chain of their own."""
    before, _callers.frames = _callers.frames, []
    try:
        yield
    finally:
        _callers.frames = before


def shortened(error: FrontendError) -> FrontendError:
    """The error without the compiler's frames: they would hide the place it tells."""
    return error.with_traceback(None)


def fail(message: str, range: Any = None, hint: str | None = None) -> NoReturn:
    """Raises FrontendError."""
    raise FrontendError(message, range, hint)


class Refusal(NamedTuple):
    """One kind of syntax: its name, an example, and what to write instead."""

    what: str
    example: str
    instead: str


REFUSED: dict[type[ast.AST], Refusal] = {
    ast.AsyncFunctionDef: Refusal(
        "async functions", "async def f(): ...", "weft.jit.fork and weft.jit.wait"
    ),
    ast.AsyncFor: Refusal("async for", "async for x in xs: ...", "for x in xs"),
    ast.AsyncWith: Refusal("async with", "async with c: ...", "with c"),
    ast.Await: Refusal("await", "await x", "weft.jit.wait(x)"),
    ast.ClassDef: Refusal(
        "classes defined inside a function",
        "def f():\n    class A: ...",
        "the class at module level",
    ),
    ast.Try: Refusal(
        "try",
        "try: ...\nexcept ValueError: ...",
        "an if that tests for the case, or a function marked @weft.jit.ignore",
    ),
    ast.Global: Refusal(
        "global", "global n", "an argument and a result, or an attribute of a module"
    ),
    ast.Nonlocal: Refusal("nonlocal", "nonlocal n", "an argument and a result"),
    ast.Import: Refusal("import inside a function", "import math", "the import at module level"),
    ast.ImportFrom: Refusal(
        "import inside a function", "from math import pi", "the import at module level"
    ),
    ast.Yield: Refusal("yield", "yield x", "a list to which the values are appended"),
    ast.YieldFrom: Refusal("yield from", "yield from xs", "a list that is extended"),
    ast.SetComp: Refusal("set comprehensions", "{x for x in xs}", "a dict with True as values"),
    ast.Set: Refusal("sets", "{1, 2}", "a dict with True as values, or a list"),
}
for _name, _refusal in {
    "Match": Refusal("match", "match x:\n    case 1: ...", "if and elif"),
    "TryStar": Refusal("try", "try: ...\nexcept* ValueError: ...", "an if that tests for the case"),
    "TypeAlias": Refusal("type statements", "type A = int", "the alias at module level"),
    "TemplateStr": Refusal("t-strings", 't"{x}"', "an f-string"),
    "Interpolation": Refusal("t-strings", 't"{x}"', "an f-string"),
}.items():
    if hasattr(ast, _name):
        REFUSED[getattr(ast, _name)] = _refusal

# Refused inside syntax that is otherwise understood; the compiler raises these by name.
REFUSED_FORMS: dict[str, Refusal] = {
    "varargs": Refusal("*args in a definition", "def f(*args): ...", "one list argument"),
    "kwargs": Refusal("**kwargs in a definition", "def f(**kwargs): ...", "one dict argument"),
    "double star": Refusal("** in a call", "len(**options)", "the keyword arguments one by one"),
    "delete": Refusal(
        "del of anything but a name or an item of a list or dict", "del x.y", "x.y = None"
    ),
    "from": Refusal("raise from", "raise A() from e", "raise A()"),
    "generic function": Refusal("type parameters", "def f[T](x: T): ...", "a concrete type"),
    "ascii conversion": Refusal("!a in f-strings", 'f"{x!a}"', 'f"{x!r}"'),
    "generator": Refusal(
        "a generator outside a call or an unpacking", "g = (x for x in xs)", "[x for x in xs]"
    ),
    "recursion": Refusal(
        "recursion without a return annotation",
        "def f(n: int): return f(n - 1)",
        "def f(n: int) -> int: ...",
    ),
}


def refuse(code: Code, node: ast.AST) -> NoReturn:
    """NotSupportedError for syntax that is not part of the language."""
    refusal = REFUSED.get(type(node))
    what = refusal.what if refusal else f"{type(node).__name__} syntax"
    raise NotSupportedError(
        f"expected syntax of the language, got {what}",
        code.range(node),
        refusal.instead if refusal else None,
    )


def refuse_form(code: Code, node: ast.AST, name: str) -> NoReturn:
    """NotSupportedError for one of REFUSED_FORMS."""
    refusal = REFUSED_FORMS[name]
    raise NotSupportedError(
        f"expected syntax of the language, got {refusal.what}", code.range(node), refusal.instead
    )
