"""Names of values, unique in a graph."""

from __future__ import annotations

import re


class Names:
    """Names in use, and numbers for new ones."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.counters: dict[str, int] = {}

    def unique(self, wanted: str = "") -> str:
        base = re.sub(r"[^\w.]", "_", wanted)
        number = re.fullmatch(r"(.*)\.\d+", base)
        if base and base not in self.taken:
            self.taken.add(base)
            return base
        if number:
            base = number.group(1)
        base = "" if base.isdigit() else base
        while True:
            count = self.counters[base] = self.counters.get(base, 0) + 1
            name = f"{base}.{count}" if base else str(count)
            if name not in self.taken:
                self.taken.add(name)
                return name

    def release(self, name: str) -> None:
        self.taken.discard(name)
