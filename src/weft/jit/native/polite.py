"""A thread that lets others have the interpreter lock.

Python hands the lock over when a thread has asked for it for 5 ms (sys.getswitchinterval). A call
of a program that meets the compiling thread would wait that long, again and again. So that thread
gives the lock away by itself, every fraction of a millisecond, wherever it is.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Seconds for which the lock is kept. Shorter ones delay native code: a program that never gives the
# lock away by itself keeps it for 5 ms each time.
SLICE = 0.001


@contextmanager
def yielding() -> Iterator[None]:
    """Within it this thread, and no other, gives the lock to whoever waits for it every SLICE
    seconds.

    Python calls the profile function of a thread at each call and return, which is often enough.
    One that is set already (a profiler of all threads) stays, and nothing is yielded.
    """
    if sys.getprofile() is not None:
        yield
        return
    clock, pause = time.perf_counter, time.sleep
    end = clock() + SLICE

    def between(frame: object, event: str, argument: object) -> None:
        nonlocal end
        if clock() >= end:
            pause(0)  # the lock is free meanwhile
            end = clock() + SLICE

    sys.setprofile(between)
    try:
        yield
    finally:
        sys.setprofile(None)
