"""Room for deep recursion while programs and kernels are compiled.

Python's limit belongs to the process, and compilers run on several threads: the first that enters
raises it, the last that leaves puts it back.
"""

from __future__ import annotations

import os
import sys
import threading

# What a program may need when each of its statements is nested in the one before it, and a kernel
# whose steps feed each other in one long chain.
_FRAMES = 20_000


class DeepRecursion:
    """A context in which Python functions may call each other deeply."""

    _lock = threading.Lock()
    _users = 0
    _before = 0

    def __enter__(self) -> None:
        cls = DeepRecursion
        with cls._lock:
            if not cls._users:
                cls._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(cls._before, _FRAMES))
            cls._users += 1

    def __exit__(self, *exception: object) -> None:
        cls = DeepRecursion
        with cls._lock:
            cls._users = max(cls._users - 1, 0)  # a fork may have made it 0
            if not cls._users:
                sys.setrecursionlimit(cls._before)

    @classmethod
    def after_fork_in_child(cls) -> None:
        """Other threads that had entered, and may hold the lock, are not in this process."""
        cls._lock = threading.Lock()
        if cls._users:
            sys.setrecursionlimit(cls._before)
            cls._users = 0


os.register_at_fork(after_in_child=DeepRecursion.after_fork_in_child)
