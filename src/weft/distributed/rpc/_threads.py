"""Threads that do what is put in a queue. They end with the process, even one that waits."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

Task = Callable[[], Any]


class Threads:
    """At most `limit` threads, made when no other has time."""

    def __init__(self, name: str, limit: int) -> None:
        self._name, self._limit = name, limit
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._threads = 0

    def do(self, task: Task) -> None:
        """Runs a task in one of the threads. It must handle its errors."""
        self._tasks.put(task)
        if self._idle.acquire(blocking=False):
            return
        with self._lock:
            if self._threads == self._limit:
                return
            self._threads += 1
        threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()
            del task  # what it holds
            self._idle.release()

    def end(self) -> None:
        """Ends them when they have done what was put in before."""
        for _ in range(self._threads):
            self._tasks.put(None)
