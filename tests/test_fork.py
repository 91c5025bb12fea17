"""Children of fork() work, whatever the threads of the parent were doing at that moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from weft._runtime import fork_lock as _fork_lock

SCENARIOS = Path(__file__).with_name("fork_support.py")
SECONDS = 400  # each takes some seconds on a quiet machine; nothing may ever hang


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "name",
    ["storm", "together", "compiling", "hooks", "allocator", "leaving", "lost_future", "importing"],
)
def test_children_of_fork_work(name: str, threads: int) -> None:
    """In a process of its own, killed with all of its children if it hangs. With more threads than
    processors, too."""
    run = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(SCENARIOS), name],
        env={**os.environ, "WEFT_NUM_THREADS": str(threads)},
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        _, errors = run.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        _, errors = run.communicate()
        pytest.fail(f"{name} hangs: {errors[-4000:]}")
    assert run.returncode == 0, errors[-4000:]


lost: list[int] = []
LOCK = _fork_lock.ForkLock(lambda: lost.append(1))


def losses_in_a_child() -> int:
    """How often a child was told that the lock was lost; there it can be had."""
    pid = os.fork()
    if pid == 0:
        with LOCK:
            os._exit(len(lost))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Holder(threading.Thread):
    """Holds the lock until `is_enough` says so."""

    def __init__(self, is_enough: Callable[[], object]) -> None:
        super().__init__()
        self.has_it, self.is_enough = threading.Event(), is_enough
        self.start()
        self.has_it.wait()

    def run(self) -> None:
        with LOCK:
            self.has_it.set()
            while not self.is_enough():
                time.sleep(0.001)


def test_a_fork_waits_for_the_holder_of_a_lock() -> None:
    holder = Holder(LOCK._queue.locked)  # until somebody waits for it
    assert losses_in_a_child() == 0
    holder.join()
    with LOCK:
        assert losses_in_a_child() == 0 and LOCK.depth == 1


def test_a_fork_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_fork_lock, "_FORK_WAITS", 0.01)
    enough = threading.Event()
    holder = Holder(enough.is_set)
    assert losses_in_a_child() == 1
    enough.set()
    holder.join()
    assert losses_in_a_child() == 0


def test_forks_of_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lets go of the lock if it got it, and only then."""
    errors: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    monkeypatch.setattr(_fork_lock, "_FORK_WAITS", 0.002)
    ended = threading.Event()

    def hold() -> None:
        while not ended.is_set():
            Holder(iter([False] * 3 + [True]).__next__).join()

    threads = [
        threading.Thread(target=lambda: [losses_in_a_child() for _ in range(15)]) for _ in range(3)
    ]
    holding = threading.Thread(target=hold)
    for thread in (holding, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    ended.set()
    holding.join()
    assert not errors and LOCK.depth == 0
