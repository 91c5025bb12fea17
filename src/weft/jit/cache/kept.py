"""Programs of functions on disk: found by a walk, kept when they have been made.

A function has up to three files: the program of its first call, and the optimised ones for calls
that may record gradients and for those that cannot (weft.jit.execution). WEFT_JIT_CACHE=0 neither
finds nor keeps any.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from weft import _C
from weft.jit.cache.entry import Damaged, Entry, bytes_of, encode, texts_of
from weft.jit.cache.files import PROGRAMS, key
from weft.jit.cache.walk import NotKept, Walk, version

FIRST, GRADIENTS, INFERENCE = "first", "gradients", "inference"
_version = functools.cache(version)


class Kept:
    """The files of one function, or of a text with functions in it."""

    def __init__(self, walk: Walk, *names: str) -> None:
        self.walk = walk
        self.key = key(_version(), walk.digest, *names)
        self._entries: dict[str, Entry | None] = {}

    def inner(self, name: str) -> Kept:
        """The files of a function in the text."""
        return Kept(self.walk, name)

    def entry(self, which: str) -> Entry | None:
        """A program that was kept; None where there is none that fits."""
        if which not in self._entries:
            self._entries[which] = self._load(which)
        return self._entries[which]

    def _load(self, which: str) -> Entry | None:
        data = PROGRAMS.load(key(self.key, which))
        try:
            return None if data is None else Entry(data, self.walk)
        except Damaged:
            return None

    def save(
        self, which: str, name: str, program: bytes, inputs: Iterable[Any],
        callables: Iterable[Any], strings: Iterable[str],
    ) -> None:  # fmt: skip
        """Keeps a program, unless it needs something that the walk has not met."""
        types = {text: _C._jit_types[text] for text in strings if text in _C._jit_types}
        try:
            data = encode(self.walk, name, program, inputs, callables, types)
        except NotKept:
            return
        PROGRAMS.save(key(self.key, which), data)

    def names(self) -> dict[str, str]:
        """The functions that were compiled before, one or those of a text, with their docstrings;
        empty where there were none."""
        data = PROGRAMS.load(key(self.key, "names"))
        try:
            fields = [] if data is None else texts_of(data)
        except Damaged:
            return {}
        return dict(zip(fields[::2], fields[1::2]))

    def save_names(self, names: Mapping[str, str]) -> None:
        """Keeps which functions there are: the compiler takes their source."""
        parts = [part for pair in names.items() for part in pair]
        PROGRAMS.save(key(self.key, "names"), bytes_of(parts))


def of_function(function: Any, scope: Mapping[str, Any]) -> Kept | None:
    """The files of a Python function; None where there can be none. `scope`: the variables around
    the call of `script`."""
    return _walked(lambda walk: walk.start(function), scope)


def of_text(source: str, scopes: Iterable[Mapping[str, Any]]) -> Kept | None:
    """The files of a text."""
    return _walked(lambda walk: walk.start_text(source, scopes))


def _walked(start: Callable[[Walk], None], *scopes: Mapping[str, Any]) -> Kept | None:
    if os.environ.get("WEFT_JIT_CACHE") == "0" or PROGRAMS.folder() is None:
        return None
    walk = Walk(*scopes)
    try:
        start(walk)
        return Kept(walk)
    except (NotKept, OSError):
        return None
