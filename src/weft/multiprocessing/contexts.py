"""Contexts of start methods, whose locks, queues, shared values and managers have no names.

They are the standard library's with other classes behind the same methods. Which method is the
default is the standard library's to know, so `set_start_method` is one for both.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import threading
from multiprocessing import context, heap, reduction, util
from multiprocessing.managers import SyncManager
from typing import Any

from weft import _C
from weft.multiprocessing import locks, queues


class _Arena(heap.Arena):
    """Memory of Value, Array and Barrier: without a name from the start, and with its room."""

    def __init__(self, size: int, fd: int = -1) -> None:
        if fd == -1:
            fd = _C._shared_file(size)
        super().__init__(size, fd)
        util.Finalize(self, os.close, (fd,))


reduction.register(_Arena, heap.reduce_arena)
heap.Arena = _Arena  # type: ignore[misc]  # the only way to reach its makers


class _Anonymous(context.BaseContext):
    """What all contexts here have in common."""

    def Lock(self) -> Any:
        """A lock that processes share."""
        return locks.Lock(ctx=self)

    def RLock(self) -> Any:
        """A lock that its owner may take again."""
        return locks.RLock(ctx=self)

    def Semaphore(self, value: int = 1) -> Any:
        """A semaphore that processes share."""
        return locks.Semaphore(value, ctx=self)

    def BoundedSemaphore(self, value: int = 1) -> Any:
        """A semaphore that refuses to be given more often than taken."""
        return locks.BoundedSemaphore(value, ctx=self)

    def Queue(self, maxsize: int = 0) -> Any:
        """A queue that a thread fills, so that putting does not wait for a reader."""
        return queues.Queue(maxsize, ctx=self)

    def JoinableQueue(self, maxsize: int = 0) -> Any:
        """A queue whose users can wait until all of it is done."""
        return queues.JoinableQueue(maxsize, ctx=self)

    def SimpleQueue(self) -> Any:
        """A pipe with locks."""
        return queues.SimpleQueue(ctx=self)

    def Manager(self) -> Any:
        """A process that holds objects for others; it ends with the one that started it."""
        # An abstract address: no file. Who connects must know the key of this family of processes.
        address: Any = b"\0weft-manager-" + secrets.token_hex(16).encode()
        manager = SyncManager(address, ctx=self.get_context())
        manager.start(_end_with_parent)
        return manager

    def get_context(self, method: str | None = None) -> Any:
        """The context of a start method; without one, this. ValueError for no such method."""
        if method is None:
            return self
        return _CONTEXTS[super().get_context(method).get_start_method()]


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="weft-parent", daemon=True).start()


class _ForkContext(_Anonymous, context.ForkContext):
    pass


class _SpawnContext(_Anonymous, context.SpawnContext):
    pass


class _ForkServerContext(_Anonymous, context.ForkServerContext):
    pass


class _DefaultContext(_Anonymous):
    """The context of whatever method is the default when it is asked."""

    Process = multiprocessing.Process

    def get_context(self, method: str | None = None) -> Any:
        return super().get_context(method or multiprocessing.get_start_method())


_CONTEXTS: dict[str, Any] = {
    "fork": _ForkContext(),
    "spawn": _SpawnContext(),
    "forkserver": _ForkServerContext(),
}
DEFAULT = _DefaultContext()
