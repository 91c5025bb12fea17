"""No child is made by fork while another thread imports a module of weft for the first time.

Python locks each module while it is imported. The child of a fork has the lock but not the thread
that would open it, so importing the same module there would wait for ever. Most of weft is
imported when it is first used, on whatever thread: a fork waits until none is under way, and
keeps new ones from beginning.
"""

from __future__ import annotations

import _imp
import os
import threading
import time
from importlib import _bootstrap
from typing import Any

_PATIENCE = 10.0  # seconds; then the fork goes on, as it would have without this
_LOOK = 0.001

# Python's own list: names of modules that are being imported, and weak references to their locks.
# Private, so a Python to come may have another one (tests/test_fork.py would hang).
_locks: dict[str, Any] = getattr(_bootstrap, "_module_locks", {})
_held = threading.local()  # .here: this thread has Python's import lock because it forks


def _are_importing() -> bool:
    """Whether other threads import modules of weft. With the import lock held, none begins."""
    me = threading.get_ident()
    for name, reference in list(_locks.items()):
        if name.startswith("weft.") and (lock := reference()) is not None and lock.owner != me:
            return True
    return False


def _before_fork() -> None:
    end = time.monotonic() + _PATIENCE
    _imp.acquire_lock()
    while _are_importing() and time.monotonic() < end:
        _imp.release_lock()
        time.sleep(_LOOK)
        _imp.acquire_lock()
    _held.here = True


def _after_fork() -> None:
    if getattr(_held, "here", False):
        _held.here = False
        _imp.release_lock()


# The first of weft's: so it runs after those that wait for threads that may have to import.
os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
