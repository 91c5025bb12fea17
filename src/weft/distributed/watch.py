"""Who is missing: processes that wait tell each other what they wait for, and why they end.

MPI waits for ever. A process that has waited for most of its timeout asks the others; those that
wait too answer. At the timeout it names those that did not, tells all others, and raises. Likewise
a process that ends by an exception tells the others, which raise when they next wait, and one that
waits tells them which process of its machine has ended. Then all meet once more, so that each
prints its error, and MPI ends those that do not come.

Only processes inside of `wait` look for messages: there is no thread, and a group that works sends
none.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from weft.distributed.errors import DistBackendError
from weft.distributed.neighbours import Neighbours
from weft.distributed.pace import Pace

_GRACE = 5.0  # seconds before the timeout at which others are asked
_LAST_MEETING = 3.0  # seconds for others to print their errors
_LOOK = 0.02  # seconds between two looks for messages
_LAST_WORDS = 1.0  # seconds in which what a process sent before its end arrives


class Waiting(NamedTuple):
    """What a process waits for: the `number`-th operation of a group, which needs `peers`, ranks of
    the world. What goes from one process to another has the number -1."""

    what: str
    group: str
    number: int
    peers: tuple[int, ...]


class _Kind(Enum):
    QUESTION = 0
    ANSWER = 1
    FAULT = 2


class Watch:
    """The messages of one process with all others, over a communicator of their own."""

    def __init__(self, channel: Any, neighbours: Neighbours) -> None:
        self._channel, self._neighbours = channel, neighbours
        # Where processes share a processor, the one that is waited for needs it.
        self._spins = neighbours.count < (os.cpu_count() or 1)
        self._posted: list[Any] = []
        self._answers: dict[int, tuple[float, list[Waiting]]] = {}  # by rank: when, and what
        self._waiting: list[Waiting] = []  # of threads of this process
        self._looking = threading.Lock()
        self._lost_at = float("inf")  # when a neighbour was first seen to have ended
        self.fault: str | None = None
        self._print_error = sys.excepthook
        sys.excepthook = self._end_by_error
        atexit.register(self._leave)

    def wait(self, is_done: Callable[[], bool], waiting: Waiting, timeout: float) -> None:
        """Returns when is_done does. DistBackendError with the ranks that are missing at the
        timeout, or with what ended another rank."""
        self.check(waiting.what)
        self._waiting.append(waiting)
        try:
            self._wait(is_done, waiting, timeout)
        finally:
            self._waiting.remove(waiting)

    def _wait(self, is_done: Callable[[], bool], waiting: Waiting, timeout: float) -> None:
        start = time.monotonic()
        look, ask = start + _LOOK, start + max(timeout - _GRACE, timeout * 0.75)
        asked = float("inf")
        pace = Pace(self._spins)
        while not is_done():
            now = pace.rest()
            if now >= look:
                self._look_alone(now, start)
                self.check(waiting.what)
                look = now + _LOOK
            if now >= ask:
                self._tell(_Kind.QUESTION, None, waiting.peers)
                ask, asked = float("inf"), now
            if now >= start + timeout:
                self._tell_fault(self._blame(waiting, timeout, asked))
                self.check(waiting.what)

    def check(self, what: str) -> None:
        """DistBackendError where the world is known to be broken."""
        if self.fault is not None:
            raise DistBackendError(f"{what}: {self.fault}")

    def _look_alone(self, now: float, start: float) -> None:
        """Looks, unless another thread that waits does: neighbours bear one poll at a time."""
        if self._looking.acquire(blocking=False):
            try:
                self._look(now, start)
            finally:
                self._looking.release()

    def _look(self, now: float, start: float) -> None:
        for rank, (kind, content) in self._channel.messages():
            if kind is _Kind.QUESTION:
                self._tell(_Kind.ANSWER, list(self._waiting), [rank])
            elif kind is _Kind.ANSWER:
                self._answers[rank] = (now, content)
            elif self.fault is None:
                self.fault = content
        ended = self._neighbours.ended()
        if ended and self.fault is None:
            self._lost_at = min(self._lost_at, now)
            if now >= max(self._lost_at, start) + _LAST_WORDS:
                self._tell_fault(f"rank {', '.join(map(str, ended))} ended in the middle of it")

    def _tell(self, kind: _Kind, content: Any, ranks: Any) -> None:
        others = [rank for rank in ranks if rank != self._channel.rank]
        self._posted += [self._channel.post((kind, content), rank) for rank in others]

    def _tell_fault(self, text: str) -> None:
        self.fault = text
        self._tell(_Kind.FAULT, text, range(self._channel.size))

    def _blame(self, waiting: Waiting, timeout: float, asked: float) -> str:
        others = [rank for rank in waiting.peers if rank != self._channel.rank]
        answers = {rank: what for rank, (at, what) in self._answers.items() if at >= asked}
        silent = [rank for rank in others if rank not in answers]
        elsewhere = [
            f"rank {rank} waits in {each.what} (operation {each.number} of {each.group})"
            for rank in others
            if all(each[:3] != waiting[:3] for each in answers.get(rank, ()))
            for each in answers.get(rank, ())
        ]
        if silent:
            got = f"no sign of rank {', '.join(map(str, silent))}"
        else:
            got = "; ".join(elsewhere) or "no end of it, though all ranks wait in it"
        return (
            f"expected all ranks in operation {waiting.number} of {waiting.group} "
            f"within {timeout:g} s, got {got}"
        )

    def _end_by_error(self, kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if self.fault is None:
            first = (str(error).splitlines() or [""])[0]
            self._tell_fault(f"rank {self._channel.rank} raised {kind.__name__}: {first}")
        self._print_error(kind, error, trace)

    def _leave(self) -> None:
        """At the end of a broken process: waits for others that end too, then ends all."""
        if self.fault is None:
            return
        sys.stdout.flush()
        sys.stderr.flush()
        (meeting,) = self._channel.barrier()
        end = time.monotonic() + _LAST_MEETING
        while not meeting.Test() and time.monotonic() < end:
            time.sleep(0.005)
        self._channel.abort()
