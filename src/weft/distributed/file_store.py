"""FileStore: a store for processes that see one file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import time
import weakref
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from weft.distributed._table import Table
from weft.distributed.errors import DistStoreError
from weft.distributed.stores import Store, too_late

_HEAD = struct.Struct("<iq")  # the lengths of a key and of its value; -1 for one that was deleted
_PAUSE = 0.005  # seconds between looks at the file


class FileStore(Store):
    """A store in a file that processes share: a log of what was set, under a lock of the file.

    world_size: how many stores will be made of the file. It is removed when the last of them ends;
    -1 keeps it. Queues raise NotImplementedError, a file that cannot be opened OSError, one that no
    store wrote DistStoreError.

    >>> import os, tempfile, weft.distributed as dist
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "store")
    ...     one, other = dist.FileStore(path), dist.FileStore(path)
    ...     one.set("rank", "0")
    ...     other.get("rank")
    b'0'
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self._path = os.fspath(file_name)
        self._table = Table()
        self._read = 0  # bytes of the log that the table has
        self._do("add", "cnt/made", 1)
        if world_size > 0:
            weakref.finalize(self, _end, self._path, world_size, os.getpid())

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._path

    def _do(self, operation: str, *args: Any, limit: timedelta | None = None) -> Any:
        if operation.startswith("queue_"):
            raise NotImplementedError(
                f"Store.{operation}: expected a store that has queues, got a FileStore"
            )
        limit = self._timeout if limit is None else limit
        end = time.monotonic() + limit.total_seconds()
        while True:
            with self._locked() as file:
                missing = self._table.missing(operation, args)
                if not missing:
                    return self._performed(file, operation, args)
            if time.monotonic() > end:
                raise too_late(operation, missing, limit)
            time.sleep(_PAUSE)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Any]:
        """The file, which is nobody else's until the end of the block, after a look at its news."""
        with open(self._path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed
            file.seek(self._read)
            self._take(file.read())
            yield file

    def _take(self, log: bytes) -> None:
        place = 0
        while place < len(log):
            try:
                key_size, size = _HEAD.unpack_from(log, place)
                begin = place + _HEAD.size
                middle = begin + key_size
                place = middle + max(size, 0)
                if not (begin <= middle <= place <= len(log)):
                    raise ValueError("sizes beyond the file")
                key = log[begin:middle].decode()
            except (struct.error, ValueError) as error:
                raise DistStoreError(
                    f"FileStore: expected keys and values in {self._path}, got {error}"
                ) from None
            if size < 0:
                self._table.values.pop(key, None)
            else:
                self._table.values[key] = log[middle:place]
        self._read += place

    def _performed(self, file: Any, operation: str, args: tuple[Any, ...]) -> Any:
        keys = [] if not args else args[0] if isinstance(args[0], list) else [args[0]]
        values = self._table.values
        before = {key: values.get(key) for key in keys}
        result = self._table.perform(operation, args)
        for key, value in before.items():
            if values.get(key) is not value:
                self._write(file, key.encode(), values.get(key))
        return result

    def _write(self, file: Any, key: bytes, value: bytes | None) -> None:
        size = -1 if value is None else len(value)
        self._read += file.write(_HEAD.pack(len(key), size) + key + (value or b""))

    def list_keys(self) -> list[str]:
        """All keys that were set."""
        return [key for key in self._do("list_keys") if not key.startswith("cnt/")]

    def has_extended_api(self) -> bool:
        """False, as in PyTorch; append, multi_get and multi_set work all the same."""
        return False

    def clone(self) -> FileStore:
        """Another store of the same file, which does not count for world_size."""
        other = FileStore(self._path)
        other._timeout = self._timeout
        return other


def _end(path: str, world_size: int, owner: int) -> None:
    """A store of world_size ones is gone. A fork has the object too, but made none."""
    if owner == os.getpid():
        with contextlib.suppress(OSError):
            if FileStore(path).add("cnt/ended", 1) >= world_size:
                os.remove(path)
