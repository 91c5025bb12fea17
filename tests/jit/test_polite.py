"""The compiling thread gives the interpreter lock away by itself, and only that thread does."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from weft.jit.native import polite
from weft.jit.native.polite import yielding


def busy(seconds: float) -> None:
    """Pure Python with calls, for that long."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(map(abs, range(10)))


@pytest.fixture
def pauses(monkeypatch):
    """The threads that gave it away, one entry a time; the compiling thread may be among them."""
    found: list[threading.Thread] = []
    monkeypatch.setattr(polite.time, "sleep", lambda _: found.append(threading.current_thread()))
    return found


def mine(pauses) -> int:
    return pauses.count(threading.current_thread())


def test_the_lock_is_given_away_again_and_again(pauses):
    with yielding():
        busy(0.2)
    before = mine(pauses)
    assert before > 10
    busy(0.05)
    assert mine(pauses) == before and sys.getprofile() is None


def test_other_threads_keep_it(pauses):
    def work() -> None:
        with yielding():
            busy(0.1)

    thread = threading.Thread(target=work)
    thread.start()
    busy(0.1)
    thread.join()
    assert thread in pauses and not mine(pauses)


def test_errors_pass_and_end_it(pauses):
    with pytest.raises(KeyError), yielding():
        raise KeyError
    assert sys.getprofile() is None


def test_a_profiler_stays(pauses):
    def profiler(*_: object) -> None: ...

    sys.setprofile(profiler)
    try:
        with yielding():
            busy(0.02)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)
    assert not mine(pauses)
