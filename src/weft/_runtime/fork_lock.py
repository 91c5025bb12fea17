"""A lock that forks wait for."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

_FORK_WAITS = 10.0  # seconds


class _Fork(threading.local):
    has_lock = False  # whether this thread, which forks, got the lock


class ForkLock:
    """A reentrant lock: no child is made while another thread holds it, unless that takes too long.

    It is given in the order in which threads ask for it, so that a fork gets its turn between two
    holders. `lost` is called in a child that was made while another thread held the lock: what the
    lock guards may be half done there.
    """

    def __init__(self, lost: Callable[[], None] | None = None) -> None:
        self._lost = lost
        self._fork = _Fork()
        self._renew()
        os.register_at_fork(
            before=self._before_fork,
            after_in_parent=self._after_fork_in_parent,
            after_in_child=self._after_fork_in_child,
        )

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._queue = threading.Lock()  # held by the next in turn
        self._owner = 0
        self.depth = 0  # how often the owner has entered

    def _acquire(self, seconds: float) -> bool:
        if self._owner != threading.get_ident():
            if not self._queue.acquire(timeout=seconds):
                return False
            try:
                if not self._lock.acquire(timeout=seconds):
                    return False
            finally:
                self._queue.release()
            self._owner = threading.get_ident()
        self.depth += 1
        return True

    def __enter__(self) -> ForkLock:
        self._acquire(-1)
        return self

    def __exit__(self, *exception: object) -> None:
        self.depth -= 1
        if not self.depth:
            self._owner = 0
            self._lock.release()

    def _before_fork(self) -> None:
        self._fork.has_lock = False  # also if a signal ends the wait
        self._fork.has_lock = self._acquire(_FORK_WAITS)

    def _after_fork_in_parent(self) -> None:
        if self._fork.has_lock:
            self.__exit__()

    def _after_fork_in_child(self) -> None:
        """The child has this thread only: nobody else holds the lock or waits for it."""
        depth = self.depth - 1 if self._fork.has_lock else 0
        lost = self._owner and not self._fork.has_lock
        self._renew()
        if depth:
            self._acquire(-1)
            self.depth = depth
        if lost and self._lost is not None:
            self._lost()
