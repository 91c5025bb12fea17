"""Columns: many values of one kind in shared memory, written once.

    numbers   the narrowest integers that hold them all, or float64, or bool
    texts     UTF-8, one after the other, and where each begins
    blobs     bytes, likewise
    tuples    one column per place; dicts with equal keys: one per key
    pickles   anything else, each pickled for itself

A column gives a new object for each index. It keeps no Python object per value, so reading writes
nothing to its memory. Pickled by multiprocessing's pickler it travels as handles.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.multiprocessing import sharing  # its import also teaches pickles to send handles


class Column:
    """Values by index from 0 on; the length is the owner's to know."""

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """Bytes of shared memory."""
        raise NotImplementedError


class Numbers(Column):
    """Integers, floats or bools, all of one dtype."""

    def __init__(self, data: Tensor) -> None:
        memory = sharing.new_shared(data.nbytes)
        self._open(_C._from_storage(memory, data.dtype, (len(data),), (1,), 0).copy_(data))

    def _open(self, data: Tensor) -> None:
        self._data = data
        self._view = memoryview(data)

    def __getitem__(self, index: int) -> Any:
        return self._view[index]

    @property
    def nbytes(self) -> int:
        return self._data.nbytes

    def __getstate__(self) -> Tensor:
        return self._data

    def __setstate__(self, data: Tensor) -> None:
        self._open(data)


class Blobs(Column):
    """Strings of bytes, one after the other."""

    def __init__(self, values: Sequence[bytes]) -> None:
        self._bytes = Numbers(_bytes_tensor(b"".join(values)))
        self._ends = integers([0, *itertools.accumulate(map(len, values))])

    def __getitem__(self, index: int) -> Any:
        return bytes(self.span(index))

    def span(self, index: int) -> memoryview:
        """The bytes themselves."""
        ends = self._ends._view
        return self._bytes._view[ends[index] : ends[index + 1]]

    @property
    def nbytes(self) -> int:
        return self._bytes.nbytes + self._ends.nbytes


class Texts(Blobs):
    """Strings, as UTF-8."""

    def __init__(self, values: Sequence[str]) -> None:
        super().__init__([value.encode("utf-8", "surrogatepass") for value in values])

    def __getitem__(self, index: int) -> str:
        return str(self.span(index), "utf-8", "surrogatepass")


class Pickles(Blobs):
    """Objects of any kind that can be pickled."""

    def __init__(self, values: Sequence[Any]) -> None:
        super().__init__([pickle.dumps(value, pickle.HIGHEST_PROTOCOL) for value in values])

    def __getitem__(self, index: int) -> Any:
        return pickle.loads(self.span(index))


class Tuples(Column):
    """Tuples of one length, or named tuples of one class."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._make: Callable[[Any], Any] = getattr(type(values[0]), "_make", tuple)
        self._columns = [column(list(place)) for place in zip(*values)]

    def __getitem__(self, index: int) -> Any:
        return self._make([place[index] for place in self._columns])

    @property
    def nbytes(self) -> int:
        return sum(place.nbytes for place in self._columns)


class Records(Column):
    """Dicts with the same keys in the same order."""

    def __init__(self, values: Sequence[dict[Any, Any]]) -> None:
        self._columns = {key: column([value[key] for value in values]) for key in values[0]}

    def __getitem__(self, index: int) -> Any:
        return {key: place[index] for key, place in self._columns.items()}

    @property
    def nbytes(self) -> int:
        return sum(place.nbytes for place in self._columns.values())


def column(values: Sequence[Any]) -> Column:
    """The narrowest column that gives these very values, and types, back."""
    kinds = set(map(type, values))
    kind = kinds.pop() if len(kinds) == 1 else object
    if kind is int and min(values) >= -(2**63) and max(values) < 2**63:
        return integers(values)
    if (make := _SIMPLE.get(kind)) is not None:
        return make(values)
    if kind is dict and _have_the_same_keys(values):
        return Records(values)
    if issubclass(kind, tuple) and (kind is tuple or _are_plain_named_tuples(kind, values)):
        lengths = set(map(len, values))
        if len(lengths) == 1 and lengths != {0}:
            return Tuples(values)
    return Pickles(values)


_KEYS = {str, int, bytes, bool, type(None)}  # equal ones of one of these classes are alike


def _have_the_same_keys(values: Sequence[dict[Any, Any]]) -> bool:
    first = tuple(map(type, values[0]))
    return (
        bool(first)
        and _KEYS.issuperset(first)
        and len(set(map(tuple, values))) == 1
        and all(tuple(map(type, value)) == first for value in values)  # True is equal to 1
    )


def _are_plain_named_tuples(kind: Any, values: Sequence[Any]) -> bool:
    """Without attributes, which a subclass may have."""
    return hasattr(kind, "_make") and not any(getattr(value, "__dict__", None) for value in values)


_SIMPLE: dict[type, Callable[[Any], Column]] = {
    bool: lambda values: _numbers(values, _C.bool),
    float: lambda values: _numbers(values, _C.float64),
    str: Texts,
    bytes: Blobs,
}


def integers(values: Sequence[int]) -> Numbers:
    """Integers of at most 64 bits."""
    low, high = min(values), max(values)
    for dtype in (_C.int8, _C.int16, _C.int32):
        limit = 1 << (8 * dtype.itemsize - 1)
        if -limit <= low and high < limit:
            break
    else:
        dtype = _C.int64
    return _numbers(values, dtype)


def _numbers(values: Sequence[Any], dtype: Any) -> Numbers:
    return Numbers(_C.tensor(values, dtype=dtype))


def _bytes_tensor(data: bytes) -> Tensor:
    if not data:
        return _C.empty(0, dtype=_C.uint8)
    return _C.frombuffer(bytearray(data), dtype=_C.uint8)
