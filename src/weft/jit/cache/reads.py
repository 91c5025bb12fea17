"""What the frontend reads of the process while it compiles, to compare with a walk.

A program is kept only if the walk that names it has met everything that the frontend read: each
object that became a part of the program or a type of it, and the lines of each function that was
compiled. What weft's own sources read is weft's. Names mean what they meant to the walk.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weft._runtime.public import weft
from weft.jit.cache.walk import NotKept, Walk

_OWN = os.path.dirname(weft.__file__) + os.sep


class _Open(threading.local):
    reads: Reads | None = None


_open = _Open()


class Reads:
    """What one compilation read, beside its walk."""

    def __init__(self, walk: Walk | None) -> None:
        self.walk = walk
        self.objects: list[Any] = []
        self.spans: list[tuple[str, int, int]] = []
        self.made: set[int] = set()  # programs that this compilation began
        self.known: list[tuple[Any, str]] = []  # functions compiled before, and their walks then

    def are_met(self) -> bool:
        """Whether the walk has met everything."""
        walk = self.walk
        return (
            walk is not None
            and walk.is_current()
            and all(id(each) in self.made or walk.knows(each) for each in self.objects)
            and all(_is_within(span, walk.spans) for span in self.spans)
            and all(was and _digest(function) == was for function, was in self.known)
        )


@contextmanager
def recorded(walk: Walk | None) -> Iterator[Reads]:
    """What is compiled within it is recorded, where there is a walk to compare with."""
    before, _open.reads = _open.reads, Reads(walk)
    try:
        yield _open.reads
    finally:
        _open.reads = before


def read(obj: Any, filename: str) -> None:
    """The frontend met an object where it compiles this file."""
    if _open.reads is not None and not filename.startswith(_OWN):
        _open.reads.objects.append(obj)


def read_lines(filename: str, first: int, count: int) -> None:
    """The frontend reads lines of a file."""
    if _open.reads is not None and not filename.startswith(_OWN):
        _open.reads.spans.append((filename, first, first + count - 1))


def began(program: Any) -> None:
    """The frontend makes a program or a type of modules, which others may use before it is done."""
    if _open.reads is not None:
        _open.reads.made.add(id(program))


def goes_on_with(made: Any) -> None:
    """The frontend uses a type of modules that there was, or that it has begun."""
    if _open.reads is not None and id(made) not in _open.reads.made:
        _open.reads.known.append((made, ""))


def are_met() -> bool:
    """Whether the walk of what is compiled now has met everything."""
    return _open.reads is not None and _open.reads.are_met()


def bindings_of(function: Any) -> tuple[dict[str, Any], ...]:
    """What names of a function meant to the walk."""
    walk = None if _open.reads is None else _open.reads.walk
    found = None if walk is None else walk.bindings.get(0 if function is None else id(function))
    return () if found is None else (found,)


def compiled_before(function: Any, digest: str) -> None:
    """The frontend goes on with a function as it compiled it before."""
    if _open.reads is not None:
        _open.reads.known.append((function, digest))


def digest_of(function: Any) -> str:
    """The digest of a function's walk while something is recorded; else, and where there is none,
    an empty text."""
    return "" if _open.reads is None else _digest(function)


def _digest(function: Any) -> str:
    walk = Walk()
    try:
        walk.start(function)
    except NotKept:
        return ""
    return walk.digest


def _is_within(span: tuple[str, int, int], spans: dict[str, list[tuple[int, int]]]) -> bool:
    filename, first, last = span
    return any(start <= first and last <= end for start, end in spans.get(filename, ()))
