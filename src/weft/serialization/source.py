"""Source: bounds-checked reading at any place of a file, a stream or a mapped file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.serialization.errors import LoadError


class Source:
    """The bytes of an open file from where it stands to its end.

    A file that cannot seek is read whole. With `mapped`, tensors are made over the mapping, which
    lives as long as one of them does: private, so writing to them never reaches the file.
    """

    def __init__(self, file: Any, op: str, *, mapped: bool = False) -> None:
        self.op = op
        self._map: Any = None
        self._data: bytes | None = None
        self._file = file
        self._start = 0
        if mapped:
            self._map = _C._map_descriptor(op, file.fileno(), os.fsencode(file.name))
            self.size = self._map.nbytes
        elif _seekable(file):
            self._start = file.tell()
            self.size = max(file.seek(0, os.SEEK_END) - self._start, 0)
        else:
            self._data = file.read()
            if not isinstance(self._data, bytes):
                raise TypeError(f"{op}: expected a file opened in binary mode")
            self.size = len(self._data)

    def read(self, offset: int, count: int) -> bytes:
        """`count` bytes. LoadError where the file has fewer."""
        self._check(offset, count)
        if self._map is not None:
            return bytes(self._map.tensor(self.op, offset, count)) if count else b""
        if self._data is not None:
            return self._data[offset : offset + count]
        self._file.seek(self._start + offset)
        data = self._file.read(count)
        if not isinstance(data, bytes):
            raise TypeError(f"{self.op}: expected a file opened in binary mode")
        if len(data) != count:
            data += self._rest(count - len(data))
        return data

    def tensor(self, offset: int, count: int) -> Tensor:
        """A uint8 tensor of `count` bytes: of its own, or over the mapped file."""
        self._check(offset, count)
        if count == 0:
            return _C.empty(0, dtype=_C.uint8)
        if self._map is not None:
            return self._map.tensor(self.op, offset, count)
        result = _C.empty(count, dtype=_C.uint8)
        into = memoryview(result)
        if self._data is not None or not hasattr(self._file, "readinto"):
            into[:] = self.read(offset, count)
            return result
        self._file.seek(self._start + offset)
        done = 0
        while done < count:
            got = self._file.readinto(into[done:])
            if not got:
                raise self._short(count, done)
            done += got
        return result

    def leave_at(self, offset: int) -> None:
        """Lets a file that can seek stand there."""
        if self._map is None and self._data is None:
            self._file.seek(self._start + offset)

    def _check(self, offset: int, count: int) -> None:
        if offset < 0 or count < 0 or offset + count > self.size:
            raise LoadError(
                f"{self.op}: expected {count} bytes at {offset}, got a file of {self.size} bytes"
            )

    def _rest(self, count: int) -> bytes:
        """What a reader that returns less than asked for still owes."""
        parts = []
        left = count
        while left:
            part = self._file.read(left)
            if not part:
                raise self._short(count, count - left)
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _short(self, count: int, got: int) -> LoadError:
        return LoadError(
            f"{self.op}: expected {count} more bytes, got {got}: the file is cut short"
        )


def _seekable(file: Any) -> bool:
    if not hasattr(file, "seek") or not hasattr(file, "tell"):
        return False
    return not hasattr(file, "seekable") or bool(file.seekable())


@contextmanager
def open_source(f: Any, op: str, *, mapped: bool = False) -> Iterator[Source]:
    """The Source of a path or of a readable binary file, which is left open."""
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            yield Source(file, op, mapped=mapped)
    elif mapped:
        raise ValueError(f"{op}: expected a path with mmap=True, got {type(f).__name__}")
    elif hasattr(f, "read"):
        yield Source(f, op)
    else:
        raise TypeError(f"{op}: expected a path or a readable file, got {type(f).__name__}")
