"""Programs of archives on disk (weft.jit.cache): found by the bytes of the archive.

A program depends on the code and the pickles of its archive, on its constants without dimensions,
and on weft, on nothing of the process but the operators that users give: programs of archives with
operators of others are not kept.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from weft.jit.archive.classes import Definitions
from weft.jit.archive.numbers import may_be_number
from weft.jit.archive.registry import has_operators_of_users
from weft.jit.cache.cached_programs import CachedPrograms
from weft.jit.cache.files import PROGRAMS, sha256
from weft.jit.cache.walk import Walk


def programs_of(definitions: Definitions, pickles: Iterable[bytes], place: Any) -> _Programs | None:
    """The files of an archive that is about to be loaded; None where there can be none. `place`:
    map_location."""
    names = definitions.names()  # parses all of the code: what is malformed is refused
    if os.environ.get("WEFT_JIT_CACHE") == "0" or PROGRAMS.folder() is None:
        return None
    return _Programs(_Records(definitions, names, pickles, place))


class _Records(Walk):
    """What programs of an archive depend on; the objects that they may need are its tensors and
    classes."""

    def __init__(
        self, definitions: Definitions, names: Sequence[str], pickles: Iterable[bytes], place: Any
    ) -> None:
        super().__init__()
        self._definitions, self._defined = definitions, names
        self._write("archive", "function" if callable(place) else str(place))
        self._write(str(definitions.version), definitions.digest())
        for pickle in pickles:
            self._write(sha256(pickle).hexdigest())
        for each in filter(may_be_number, definitions.constants):
            self._write("number", repr(each.item()))

    @property
    def objects(self) -> list[Any]:
        """Tensors of CONSTANTS, then classes."""
        return [*self._definitions.constants, *map(self._class_named, self._defined)]

    @objects.setter
    def objects(self, value: list[Any]) -> None:
        """There are no others."""

    def _class_named(self, name: str) -> Any:
        try:
            return self._definitions.find(name)
        except RuntimeError:  # one that is malformed, and that nobody needs
            return None

    def number(self, obj: Any) -> int | None:
        """The number of one of them."""
        found = (number for number, each in enumerate(self.objects) if each is obj)
        return next(found, None)


class _Programs(CachedPrograms):
    """The files of an archive or of one of its methods."""

    def entry(self, which: str) -> Any:
        """None where users give operators, which the program may call."""
        return None if has_operators_of_users() else super().entry(which)

    def save(
        self, which: str, name: str, program: bytes, inputs: Iterable[Any],
        callables: Iterable[Any], strings: Iterable[str], classes: Collection[str],
    ) -> None:  # fmt: skip
        """Keeps a program whose operators are all weft's own, or missing."""
        if not has_operators_of_users():
            super().save(which, name, program, inputs, callables, strings, classes)
