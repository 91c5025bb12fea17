"""Paths into nested containers: what leads from a container to its part. `weft.utils._pytree` has
them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft._runtime.exports import list_own as _list_own


@dataclass(frozen=True)
class SequenceKey:
    """A step to the part of a list or tuple at a place."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The part."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A step to the part of a dict under a key."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The part."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """A step to the part of a named tuple of a name."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The part."""
        return getattr(obj, self.name)


KeyPath = tuple[Any, ...]


def keystr(kp: KeyPath) -> str:
    """A path as it is written in Python.

    >>> keystr((MappingKey("a"), SequenceKey(1)))
    "['a'][1]"
    """
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """The part at a path.

    >>> key_get({"a": [1, 2]}, (MappingKey("a"), SequenceKey(1)))
    2
    """
    for step in kp:
        obj = step.get(obj)
    return obj


_list_own(vars())
