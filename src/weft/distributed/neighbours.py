"""The other processes of this machine: which of them have ended."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Sequence
from typing import NamedTuple


class Process(NamedTuple):
    """A process, by the machine and the namespace that its number belongs to."""

    machine: str
    namespace: int
    number: int

    @classmethod
    def own(cls) -> Process:
        """This process."""
        try:
            namespace = os.stat("/proc/self/ns/pid").st_ino
        except OSError:
            namespace = 0
        return cls(os.uname().nodename, namespace, os.getpid())


class Neighbours:
    """Those of some processes that run on this machine. Elsewhere than on Linux there are none."""

    def __init__(self, processes: Sequence[Process]) -> None:
        """`processes` has an entry for each rank."""
        self._poll = select.poll()
        self._ranks: dict[int, int] = {}  # by the descriptor of the process
        own = Process.own()
        for rank, process in enumerate(processes):
            if process[:2] == own[:2] and process.number != own.number:
                with contextlib.suppress(AttributeError, OSError):
                    descriptor = os.pidfd_open(process.number)
                    self._ranks[descriptor] = rank
                    self._poll.register(descriptor, select.POLLIN)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._ranks)

    def ended(self) -> list[int]:
        """The ranks whose processes have ended."""
        return sorted(self._ranks[descriptor] for descriptor, _ in self._poll.poll(0))
