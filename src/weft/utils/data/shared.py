"""Shared containers: data sets of Python objects that workers read without copying them.

A worker that looks at an object of a list writes to it, for CPython counts references inside of
objects, and the system then copies the page: bit by bit every worker gets a copy of the list.
These containers hold their contents in shared memory, as bytes, and make an object each time one
is asked for; nothing in that memory is ever written. Figures are in docs/data.md.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

from weft import _C
from weft.utils.data.columns import Column, Numbers, column, integers

_LARGE = 1 << 22  # bytes

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class SharedList(Sequence[T]):
    """A list that does not change, in shared memory.

    Takes any objects that can be pickled. Strings, bytes, numbers, and tuples and dicts of them
    with equal lengths or keys, are held narrowly and read without unpickling. What an index gives
    is a new object each time: changing it changes nothing in the list.

    Forked processes share it; other start methods, queues and pipes of `weft.multiprocessing`
    send a handle.

    >>> from weft.utils.data import SharedList
    >>> samples = SharedList([("cat.png", 3), ("dog.png", 5)])
    >>> samples[1], samples[-2:], len(samples)
    (('dog.png', 5), [('cat.png', 3), ('dog.png', 5)], 2)
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._column: Column
        self._column, self._length = _counted_column(items)
        if self.nbytes >= _LARGE:
            _C._trim_heap()  # the lists in between were larger than this one

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: Any) -> Any:
        """The item, or a plain list of those of a slice. IndexError outside."""
        if isinstance(index, slice):
            return [self._column[i] for i in range(*index.indices(self._length))]
        try:
            position = range(self._length)[index]  # negative ones too
        except IndexError:
            raise IndexError(
                f"SharedList: expected an index in [-{self._length}, {self._length}), got {index}"
            ) from None
        except TypeError:
            raise TypeError(
                f"SharedList: expected an index of type int or slice, got {type(index).__name__}"
            ) from None
        return self._column[position]

    def __iter__(self) -> Iterator[T]:
        return map(self._column.__getitem__, range(self._length))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SharedList | list):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other))

    __hash__ = None  # type: ignore[assignment]

    @property
    def nbytes(self) -> int:
        """Bytes of shared memory."""
        return self._column.nbytes

    def __repr__(self) -> str:
        return f"SharedList({_shown(self)})"


class SharedDict(Mapping[K, V]):
    """A dict that does not change, in shared memory; it keeps the order.

    Keys are strings, bytes, numbers, None and tuples of them; values as in `SharedList`. TypeError
    for other keys.

    >>> from weft.utils.data import SharedDict
    >>> labels = SharedDict({"cat": 3, "dog": 5})
    >>> labels["dog"], "cow" in labels, list(labels)
    (5, False, ['cat', 'dog'])
    """

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        plain = dict(items)
        self._keys: SharedList[K] = SharedList(plain)
        self._values: SharedList[V] = SharedList(plain.values())
        self._slots, self._mask = _hash_table([_stable_hash(key) for key in plain])

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, key: K) -> V:
        """The value of a key. KeyError where there is none."""
        try:
            slot = _stable_hash(key) & self._mask
        except TypeError:
            raise KeyError(key) from None
        while (position := self._slots[slot]) >= 0:
            if self._keys[position] == key:
                return self._values[position]
            slot = (slot + 1) & self._mask
        raise KeyError(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    @property
    def nbytes(self) -> int:
        """Bytes of shared memory."""
        return self._keys.nbytes + self._values.nbytes + self._slots.nbytes

    def __repr__(self) -> str:
        return f"SharedDict({_shown(self.items())})"


def _counted_column(items: Iterable[Any]) -> tuple[Column, int]:
    # On its own: a list made here is gone before the caller gives memory back.
    values = items if isinstance(items, list | tuple) else list(items)
    return column(values), len(values)


def _hash_table(hashes: list[int]) -> tuple[Numbers, int]:
    """Positions by hash, -1 where there is none; a taken place is passed over to the next."""
    mask = (1 << max(2 * len(hashes), 1).bit_length()) - 1
    slots = [-1] * (mask + 1)
    for position, value in enumerate(hashes):
        slot = value & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = position
    return integers(slots), mask


def _stable_hash(key: Any) -> int:
    """Equal for equal keys, in every process: Python's own differs for strings."""
    if isinstance(key, str):
        return zlib.crc32(key.encode("utf-8", "surrogatepass"))
    if isinstance(key, bytes):
        return zlib.crc32(key)
    if key is None or isinstance(key, int | float | complex):
        return zlib.crc32(b"%d" % hash(key)) if key is not None else 0
    if isinstance(key, tuple):
        parts = b" ".join(b"%d" % _stable_hash(part) for part in key)
        return zlib.crc32(parts)
    raise TypeError(
        "SharedDict: expected keys made of str, bytes, numbers, None and tuples, got "
        f"{type(key).__name__}"
    )


def _shown(items: Iterable[Any]) -> str:
    shown: list[str] = []
    for item in items:
        if len(shown) == 5:
            shown.append("...")
            break
        shown.append(repr(item))
    return f"[{', '.join(shown)}]"
