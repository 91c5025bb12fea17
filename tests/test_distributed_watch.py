"""Processes that wait for each other, by a channel and neighbours that are not there."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from weft.distributed.watch import Waiting, Watch

WAITING = Waiting("barrier", "the world", 1, (0, 1))


class Channel:
    """The messages of a process that nobody writes to."""

    rank, size = 0, 2

    def messages(self) -> Iterator[tuple[int, Any]]:
        return iter(())


class Neighbours:
    """Two processes, seen for a time in which another thread would come to look."""

    count = 2

    def __init__(self) -> None:
        self.looks, self._inside = 0, threading.Lock()

    def ended(self) -> list[int]:
        assert self._inside.acquire(blocking=False), "two threads look at once"
        time.sleep(0.05)
        self.looks += 1
        self._inside.release()
        return []


@pytest.fixture
def neighbours(monkeypatch: pytest.MonkeyPatch) -> Neighbours:
    monkeypatch.setattr("sys.excepthook", None)  # Watch sets its own
    monkeypatch.setattr("atexit.register", lambda function: None)
    return Neighbours()


def test_one_thread_looks_at_a_time(neighbours: Neighbours) -> None:
    """A poll of processes that two threads share refuses the second."""
    watch = Watch(Channel(), neighbours)
    errors: list[BaseException] = []

    def waits() -> None:
        try:
            watch.wait(lambda: neighbours.looks >= 4 or bool(errors), WAITING, 100.0)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=waits) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
