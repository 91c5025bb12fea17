"""Which register each value is in, and moves between registers."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable

from weft.jit.codegen.scalars import is_scalar_type
from weft.jit.ir import Value
from weft.jit.ir.record import record

# While a function is made, scalar registers count from here; the numbers become final at its end.
SCALAR_BASE = 1 << 20


def is_scalar_register(register: int) -> bool:
    """Whether it holds plain bits."""
    return register >= SCALAR_BASE


class Registers:
    """Registers of both classes. A register is free unless a value owns it; a reserved one is given
    only to values that ask for it."""

    def __init__(self) -> None:
        self.of: dict[Value, int] = {}
        self.hints: dict[Value, int] = {}
        self.owners: dict[int, object] = {}
        self._reserved: Counter[int] = Counter()
        self._count = {False: 0, True: 0}
        self._free: dict[bool, list[int]] = {False: [], True: []}

    def counts(self) -> tuple[int, int]:
        """How many object and scalar registers there are."""
        return self._count[False], self._count[True]

    def take(self, scalar: bool, owner: object, hint: int | None = None) -> int:
        """A free register, the one hinted at if it is free."""
        if hint is not None and hint not in self.owners and is_scalar_register(hint) == scalar:
            self.owners[hint] = owner
            return hint
        free, kept = self._free[scalar], []
        register = None
        while free:
            candidate = heapq.heappop(free)
            if candidate in self.owners:
                continue
            if self._reserved[candidate]:
                kept.append(candidate)
                continue
            register = candidate
            break
        for candidate in kept:
            heapq.heappush(free, candidate)
        if register is None:
            register = self._count[scalar] + (SCALAR_BASE if scalar else 0)
            self._count[scalar] += 1
        self.owners[register] = owner
        return register

    def define(self, value: Value) -> int:
        """The register of a new value."""
        register = self.take(is_scalar_type(value.type), value, self.hints.get(value))
        self.of[value] = register
        return register

    def put(self, value: Value, register: int) -> None:
        """Says that a value is in a register from here on."""
        self.of[value] = register
        self.owners[register] = value

    def free(self, register: int) -> None:
        """Nobody needs what is in a register any more."""
        self.owners.pop(register, None)
        heapq.heappush(self._free[is_scalar_register(register)], register)

    def reserve(self, register: int) -> int:
        """Keeps a register for values that ask for it; undone by `unreserve`."""
        self._reserved[register] += 1
        return register

    def unreserve(self, register: int) -> None:
        """Takes one `reserve` back."""
        self._reserved[register] -= 1

    def is_reserved(self, register: int) -> bool:
        """Whether it is kept for somebody."""
        return self._reserved[register] > 0

    def snapshot(self) -> dict[int, object]:
        """Who owns what."""
        return dict(self.owners)

    def restore(self, owners: dict[int, object]) -> None:
        """Back to a snapshot; registers made since are free."""
        self.owners = dict(owners)
        for scalar, base in ((False, 0), (True, SCALAR_BASE)):
            every = range(base, base + self._count[scalar])
            self._free[scalar] = [r for r in every if r not in self.owners]


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
