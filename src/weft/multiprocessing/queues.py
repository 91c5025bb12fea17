"""Queues whose readers may be killed while they wait.

The standard library's hold the lock of the reading end until a message comes. A reader that is
killed meanwhile never gives it back, and all others wait for ever. These wait first, and take the
lock to read what has come.
"""

from __future__ import annotations

import queue
import select
import time
from multiprocessing import queues
from multiprocessing.reduction import ForkingPickler
from typing import Any


def _wait_for_message(connection: Any, seconds: float | None) -> bool:
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    return bool(poller.poll(None if seconds is None else max(seconds, 0) * 1000))


class Queue(queues.Queue):
    """multiprocessing.Queue that outlives its readers."""

    _rlock: Any
    _reader: Any
    _sem: Any
    _closed: bool

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """The next object. queue.Empty when none comes in time."""
        if self._closed:
            raise ValueError(f"Queue {self!r} is closed")
        if not block:
            timeout = 0
        end = None if timeout is None else time.monotonic() + timeout
        while (data := self._take(None if end is None else end - time.monotonic())) is None:
            if end is not None and time.monotonic() >= end:
                raise queue.Empty
        self._sem.release()
        return ForkingPickler.loads(data)

    def _take(self, seconds: float | None) -> bytes | None:
        """The bytes of a message; None where another reader was faster, or none came."""
        if not _wait_for_message(self._reader, seconds) or not self._rlock.acquire(True, seconds):
            return None
        try:
            return self._reader.recv_bytes() if _wait_for_message(self._reader, 0) else None
        finally:
            self._rlock.release()


class JoinableQueue(Queue, queues.JoinableQueue):
    """multiprocessing.JoinableQueue that outlives its readers."""


class SimpleQueue(queues.SimpleQueue):
    """multiprocessing.SimpleQueue that outlives its readers."""

    _rlock: Any
    _reader: Any

    def get(self) -> Any:
        """The next object, waiting for it."""
        while True:
            _wait_for_message(self._reader, None)
            with self._rlock:
                if _wait_for_message(self._reader, 0):
                    data = self._reader.recv_bytes()
                    break
        return ForkingPickler.loads(data)
