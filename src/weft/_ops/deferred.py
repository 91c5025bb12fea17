"""Rows of a weft that has been built were checked then: they are made when they are asked for."""

from __future__ import annotations

from _thread import _local
from collections.abc import Callable, Iterator
from typing import Any


class Importing(_local):
    """What a thread that imports a family of rows says of it."""

    trusted = False  # they were checked before, and are deferred


class Deferred:
    """What rows are made of, by their ids, until a thread asks for one."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[Any, ...]] = {}
        self._made: dict[str, Any] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._given))

    def keep(self, id: str, *given: Any) -> None:
        self._given[id] = given

    def make(self, id: str, build: Callable[..., Any], add: Callable[[Any], Any]) -> Any:
        """The row of that id, added by the thread that is first; None where none is deferred."""
        if (given := self._given.get(id)) is None:
            return None
        made = build(*given)
        row = self._made.setdefault(id, made)
        if row is made:
            add(row)
        self._given.pop(id, None)
        return row
