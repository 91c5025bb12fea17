"""Programs of functions on disk: found by a walk, kept when they have been made.

A function has up to three files: the program of its first call, and the optimised ones for calls
that may record gradients and for those that cannot (weft.jit.execution). WEFT_JIT_CACHE=0 neither
finds nor keeps any.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from weft.jit import python_classes
from weft.jit.cache.entry import Damaged, Entry, bytes_of, encode, texts_of
from weft.jit.cache.files import PROGRAMS, key
from weft.jit.cache.walk import NotKept, Walk, version

FIRST, GRADIENTS, INFERENCE = "first", "gradients", "inference"
_version = functools.cache(version)


class CachedPrograms:
    """The files of one function, or of a text with functions in it."""

    def __init__(self, walk: Walk, *names: str) -> None:
        self.walk, self._names = walk, names
        self._entries: dict[str, Entry | None] = {}
        # The classes of a module and of those in it by their names, in an order that each process
        # has. Their names may have numbers that tell them from others of the process.
        self.classes: Mapping[str, Any] = {}

    @functools.cached_property
    def key(self) -> str:
        """The digest of everything that the programs depend on."""
        return key(_version(), self.walk.digest, *self._names)

    def inner(self, name: str) -> CachedPrograms:
        """The files of a function in the text, or of a method of the module."""
        made = type(self)(self.walk, name)
        made.classes = self.classes
        return made

    def entry(self, which: str) -> Entry | None:
        """A program that was kept; None where there is none that fits."""
        if which not in self._entries:
            self._entries[which] = self._load(which)
        return self._entries[which]

    def _load(self, which: str) -> Entry | None:
        data = PROGRAMS.load(key(self.key, which))
        try:
            return None if data is None else Entry(data, self.walk, list(self.classes.values()))
        except Damaged:
            return None

    def save(
        self, which: str, name: str, program: bytes, inputs: Iterable[Any],
        callables: Iterable[Any], strings: Iterable[str], classes: Collection[str],
    ) -> None:  # fmt: skip
        """Keeps a program, unless it needs something that the walk has not met."""
        positions = {each: place for place, each in enumerate(self.classes)}
        if not positions.keys() >= set(classes):
            return
        known = {text: python_classes.find(text) for text in strings}
        types = {text: cls for text, cls in known.items() if cls is not None}
        used = {each: positions[each] for each in classes}
        try:
            data = encode(self.walk, name, program, inputs, callables, types, used)
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


def of(root: Any, *scopes: Mapping[str, Any]) -> CachedPrograms | None:
    """The files of a function, a module or a text; None where there can be none. `scopes`: where
    else its names are looked up, such as the variables around the call of `script`."""
    if os.environ.get("WEFT_JIT_CACHE") == "0" or PROGRAMS.folder() is None:
        return None
    walk = Walk(*scopes)
    try:
        walk.start(root)
        return CachedPrograms(walk)
    except (NotKept, OSError):
        return None
