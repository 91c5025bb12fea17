"""A /dev/shm of their own for programs under test, so that what others leave in the machine's is not taken for theirs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest

# A prefix of commands that see it, and the names that are in it.
PrivateShm = tuple[list[str], Callable[[], set[str]]]

_HOLD = "mount -t tmpfs none /dev/shm && echo && exec sleep 9999"


@pytest.fixture
def private_shm() -> Iterator[PrivateShm]:
    """Without the right to mount: the machine's, and what is new in it."""
    try:
        holder = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", _HOLD],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except FileNotFoundError:
        holder = None
    if holder is None or holder.stdout is None or holder.stdout.read(1) != b"\n":
        if holder is not None:
            holder.communicate()
        before = set(os.listdir("/dev/shm"))
        yield [], lambda: set(os.listdir("/dev/shm")) - before
        return
    folder = f"/proc/{holder.pid}/root/dev/shm"
    yield ["nsenter", "-t", str(holder.pid), "-m"], lambda: set(os.listdir(folder))
    os.killpg(holder.pid, signal.SIGKILL)
    holder.communicate()
