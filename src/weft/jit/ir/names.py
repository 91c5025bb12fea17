"""Names of values, unique in a graph."""

from __future__ import annotations

import re


class Names:
    """Names in use, and numbers for new ones."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.counters: dict[str, int] = {}
        self.numbered = 0

    def unique(self, wanted: str = "") -> str:
        """The name, or the first one like it that is free."""
        if not wanted:
            return self.fresh()
        plain = wanted.isidentifier() or wanted.isdecimal()
        base = wanted if plain else re.sub(r"[^\w.]", "_", wanted)
        if base not in self.taken:
            self.taken.add(base)
            return base
        before, dot, number = base.rpartition(".")
        if dot and number.isdecimal():
            base = before
        if not base or base.isdigit():
            return self.fresh()
        while True:
            count = self.counters[base] = self.counters.get(base, 0) + 1
            name = f"{base}.{count}"
            if name not in self.taken:
                self.taken.add(name)
                return name

    def fresh(self) -> str:
        """The next number that is free."""
        taken, number = self.taken, self.numbered + 1
        while (name := str(number)) in taken:
            number += 1
        self.numbered = number
        taken.add(name)
        return name

    def release(self, name: str) -> None:
        self.taken.discard(name)
