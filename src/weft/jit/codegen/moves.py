"""Moves that happen at once, as a sequence: what blocks return goes to the registers of outputs."""

from __future__ import annotations

from collections.abc import Callable

from weft.jit.ir.record import record


@record
class Move:
    """`source` goes to `target`. `last`: nobody reads the source afterwards."""

    target: int
    source: int
    last: bool


def sequence(
    moves: list[Move], temporary: Callable[[int], int], emit: Callable[[int, int, bool], None]
) -> None:
    """Calls emit(target, source, last) so that every target gets what its source held before.

    `temporary(register)` gives a free register of the class of another one.

    >>> done = []
    >>> sequence([Move(1, 2, True), Move(2, 1, True)], lambda r: 9, lambda *m: done.append(m))
    >>> done
    [(9, 1, True), (1, 2, True), (2, 9, True)]
    """
    waiting = [move for move in moves if move.target != move.source]
    stay = {move.source for move in moves if move.target == move.source}
    while waiting:
        read = [move.source for move in waiting]
        ready = next((move for move in waiting if move.target not in read), None)
        if ready is None:
            # Every target is still to be read: one of them steps aside.
            blocked = waiting[0].target
            spare = temporary(blocked)
            emit(spare, blocked, True)
            for move in waiting:
                if move.source == blocked:
                    move.source, move.last = spare, True
            continue
        waiting.remove(ready)
        shared = any(move.source == ready.source for move in waiting) or ready.source in stay
        emit(ready.target, ready.source, ready.last and not shared)
