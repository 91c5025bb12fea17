"""What the compiler refuses, and how it says so.

Every refusal names what was expected and what was found, shows the line with a mark under the
place, says what to write instead where that is known, and lists who called the function that was
being compiled.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, NoReturn


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
    """Python syntax that is not part of the language; see REFUSED in refused.py."""


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


def expected(
    what: str, wanted: object, got: object, range: Any, hint: str | None = None
) -> NoReturn:
    """Raises FrontendError: `<what>: expected <wanted>, got <got>`."""
    raise FrontendError(f"{what}: expected {wanted}, got {got}", range, hint)
