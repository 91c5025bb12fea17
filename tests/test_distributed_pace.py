"""How processes rest while they poll MPI, by a clock and a transport that count."""

from __future__ import annotations

import pytest

from weft.distributed import pace

IDLE, PIECE = 1e-6, 2e-6  # seconds of a poll: of one that finds nothing, of one that moves 8 KiB
SLEEP = 57e-6  # seconds that the shortest sleep takes


class Machine:
    """A clock; a message of some pieces, of which each poll from `start` on moves one."""

    def __init__(self, pieces: int, start: float = 0.0) -> None:
        self.now, self.polled = 0.0, 0
        self._pieces, self._start = pieces, start

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, SLEEP)

    def poll(self) -> bool:
        moves = self.now >= self._start
        self.polled += 1
        self._pieces -= moves
        self.now += PIECE if moves else IDLE
        return self._pieces <= 0


def wait(machine: Machine, patch: pytest.MonkeyPatch, spins: bool = False) -> None:
    patch.setattr(pace, "time", machine)
    patch.setattr(pace.Pace, "_idle_poll", IDLE)
    own = pace.Pace(spins)
    while not machine.poll():
        own.rest()


@pytest.mark.parametrize("spins", [False, True])
@pytest.mark.parametrize("start", [0.0, 0.5, 20.0])
def test_a_message_in_small_pieces(
    spins: bool, start: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 400 MB each burst of 16 polls rests once for the shortest time, however late it begins: 16
    times 2 us and 57 us for 128 KiB. A rest behind each poll took half a minute."""
    pieces = 400_000_000 // 8192
    machine = Machine(pieces, start)
    wait(machine, monkeypatch, spins)
    assert machine.now - start < pieces / 16 * (16 * PIECE + SLEEP) + 0.01


def test_a_long_wait_takes_little_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polls take less than 1 % of the time, and nothing is seen later than by a rest of 5 ms."""
    machine = Machine(1, start=20.0)
    wait(machine, monkeypatch)
    assert machine.now - 20.0 < 0.006
    assert machine.polled * IDLE < 0.01 * 20.0
