"""The interpreter lock changes hands quickly while groups are compiled.

A thread that wants the lock gets it when it has asked for 5 ms (sys.getswitchinterval). A call of a
program that meets the compiling thread would wait that long, again and again. The other way round,
a program that never gives the lock away by itself would keep it for 5 ms each time the compiling
thread has let go of it, which every read of a file does: native code would come after seconds. So
the interval is a fraction of a millisecond meanwhile.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

INTERVAL = 0.0001  # seconds; handing the lock over takes some hundredths of a millisecond

_before: float | None = None  # the program's own interval, while it is ours
_ours = 0.0


@contextmanager
def yielding() -> Iterator[None]:
    """Within it threads give the lock to whoever has waited for INTERVAL. A shorter interval of the
    program's stays. One thread at a time."""
    global _before, _ours
    if sys.getswitchinterval() > INTERVAL:
        _before = sys.getswitchinterval()
        sys.setswitchinterval(INTERVAL)
        _ours = sys.getswitchinterval()
    try:
        yield
    finally:
        _restore()


def _restore() -> None:
    """Puts the program's interval back, unless it has set another one since."""
    global _before
    if _before is not None and sys.getswitchinterval() == _ours:
        sys.setswitchinterval(_before)
    _before = None


# A child that is made in the middle has no compiling thread.
os.register_at_fork(after_in_child=_restore)
