"""How a process rests while it polls MPI.

MPI moves data only while it is asked whether an operation has ended. One poll moves megabytes where
processes may read each other's memory. Where they may not (containers, Yama), MPICH's shared memory
moves 8 KiB a poll: a rest of half a millisecond behind each would make that 14 MB/s. So polls come
in bursts, and rests grow only while nothing moves, which the time of a poll tells.
"""

from __future__ import annotations

import statistics
import time

_BURST = 16  # polls between two rests
_SPIN = 0.001  # seconds without a rest: even a sleep of none may cost a turn of the scheduler
_MOVING = 1.4  # times an idle poll; those that moved 8 KiB took 1.7 times and more, idle ones 1.1
_SHARE = 1 / 400  # a rest over the time since data moved: what waiting may add to an operation
_LONGEST = 0.005  # seconds of a rest


class Pace:
    """The rests of one wait. `spins`: whether it begins without any."""

    _idle_poll = float("inf")  # seconds: the least that half of the polls of any burst took

    def __init__(self, spins: bool) -> None:
        self._last = self._moved = time.monotonic()
        self._busy = self._last + (_SPIN if spins else 0.0)
        self._times: list[float] = []

    def rest(self) -> float:
        """Is called behind each poll that found no end. The time."""
        now = time.monotonic()
        self._times.append(now - self._last)
        self._last = now
        if len(self._times) == _BURST:
            self._end_burst()
        return self._last

    def _end_burst(self) -> None:
        # The first poll behind a rest finds cold caches, any may be interrupted; half are not.
        usual = statistics.median_low(self._times)
        self._times.clear()
        Pace._idle_poll = min(Pace._idle_poll, usual)
        if usual > _MOVING * Pace._idle_poll:
            self._moved = self._last
        if self._last >= self._busy:
            time.sleep(min((self._last - self._moved) * _SHARE, _LONGEST))
            self._last = time.monotonic()
