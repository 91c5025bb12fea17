"""The parent that `weft launch` gives each rank.

A launcher of MPI ends all ranks when one of its own children is killed, before the others can say
which one it was. So its child is the guard: it lives on for a while when the rank is killed. When
the launcher is killed, the guard ends the rank, which may be far from asking MPI.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from typing import Any

from weft.distributed.launchers import launched

GRACE = 20.0  # seconds for other ranks to end the program by an error
_PR_SET_PDEATHSIG = 1
_SENT_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def guard() -> None:
    """Returns in a child, which is the rank. This process ends as the rank does: with its exit
    status, or after a grace with 128 and the number of the signal that killed it."""
    launcher, own = os.getppid(), os.getpid()
    rank = os.fork()
    if rank == 0:
        _die_with(own)
        return
    sent: list[int] = []

    def send_on(number: int, _: Any) -> None:
        sent.append(number)
        os.kill(rank, number)

    for number in _SENT_ON:
        signal.signal(number, send_on)
    _wait_for_either(launcher, rank)
    if os.getppid() != launcher:
        send_on(signal.SIGKILL, None)
    _, status = os.waitpid(rank, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code not in sent:  # the launcher knows of those
            _wait_for_others(rank, -code)
        code = 128 - code
    sys.stdout.flush()
    os._exit(code)


def _die_with(parent: int) -> None:
    """Has Linux kill this process when its parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _wait_for_either(*processes: int) -> None:
    """Waits until one of some processes has ended, where the system can say so (Linux)."""
    ends = select.poll()
    with contextlib.suppress(AttributeError, OSError):
        for process in processes:
            ends.register(os.pidfd_open(process), select.POLLIN)
        ends.poll()


def _wait_for_others(pid: int, number: int) -> None:
    """Says which rank was killed. The others notice, and end all processes, this one too."""
    place, name = launched(), signal.Signals(number).name
    rank = "?" if place is None else place.rank
    text = f"weft launch: rank {rank} (process {pid} of {os.uname().nodename}) ended by {name}"
    print(text, file=sys.stderr, flush=True)
    for each in _SENT_ON:
        signal.signal(each, signal.SIG_DFL)
    if place is not None and place.size > 1:
        time.sleep(GRACE)
