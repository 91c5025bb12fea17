"""Locks without names: the standard library's classes over semaphores in anonymous memory.

Theirs are files in /dev/shm under spawn and forkserver, which stay when the process that made them
and the helper that cleans up are killed. Ours lie in a file without a name, 64 in each. Children
inherit it, or get its descriptor when they are started.
"""

from __future__ import annotations

import os
import threading
import weakref
from multiprocessing import context, reduction, synchronize
from typing import Any

from weft import _C

_FILE_BYTES = 4096
_RECURSIVE, _SEMAPHORE = range(2)
_MOST = 0x7FFFFFFF


class _File:
    """An anonymous file with room for semaphores. A place in it is never used twice: some process
    may still have what was there."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        weakref.finalize(self, os.close, descriptor).atexit = False
        self.memory = _C._map_shared(descriptor, _FILE_BYTES)

    def __reduce__(self) -> Any:
        context.assert_spawning(self)
        return _open_file, (reduction.DupFd(self.descriptor),)


def _open_file(duplicate: Any) -> _File:
    descriptor = duplicate.detach()
    os.set_inheritable(descriptor, False)
    return _File(descriptor)


_lock = threading.Lock()  # guards the two below
_filling: _File | None = None  # by this process only
_used = 0


def _new_place() -> tuple[_File, int]:
    global _filling, _used
    with _lock:
        if _filling is None or _used == _FILE_BYTES:
            _filling, _used = _File(_C._shared_file(_FILE_BYTES)), 0
        place = _used
        _used += _C.SEMAPHORE_BYTES
        return _filling, place


def _after_fork() -> None:
    """The parent goes on filling its file; the child begins one of its own."""
    global _filling, _lock
    _filling, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class _Anonymous:
    """Takes the place of the standard library's SemLock under the classes below."""

    _file: _File
    _place: int
    _semlock: Any
    _make_methods: Any

    def _make(self, kind: int, value: int, most: int) -> None:
        self._file, self._place = _new_place()
        self._open(kind, most, value)

    def _open(self, kind: int, most: int, value: int | None = None) -> None:
        self._semlock = _C._SemLock(kind, self._file.memory, self._place, most, value)
        self._make_methods()

    def __getstate__(self) -> tuple[Any, ...]:
        context.assert_spawning(self)
        return self._file, self._place, self._semlock.kind, self._semlock.maxvalue

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._file, self._place, kind, most = state
        self._open(kind, most)


class Lock(_Anonymous, synchronize.Lock):
    """multiprocessing.Lock without a name."""

    def __init__(self, *, ctx: Any) -> None:
        self._make(_SEMAPHORE, 1, 1)


class RLock(_Anonymous, synchronize.RLock):
    """multiprocessing.RLock without a name."""

    def __init__(self, *, ctx: Any) -> None:
        self._make(_RECURSIVE, 1, 1)


class Semaphore(_Anonymous, synchronize.Semaphore):
    """multiprocessing.Semaphore without a name."""

    def __init__(self, value: int = 1, *, ctx: Any) -> None:
        self._make(_SEMAPHORE, value, _MOST)


class BoundedSemaphore(_Anonymous, synchronize.BoundedSemaphore):
    """multiprocessing.BoundedSemaphore without a name."""

    def __init__(self, value: int = 1, *, ctx: Any) -> None:
        self._make(_SEMAPHORE, value, value)
