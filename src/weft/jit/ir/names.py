"""Names of values, unique in a graph."""

from __future__ import annotations

import re

_OTHERS = re.compile(r"[^\w.]")
_NUMBERED = re.compile(r"(.*)\.\d+")


class Names:
    """Names in use, and numbers for new ones."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.counters: dict[str, int] = {}

    def unique(self, wanted: str = "") -> str:
        base = wanted if wanted.isidentifier() or not wanted else _OTHERS.sub("_", wanted)
        if base and base not in self.taken:
            self.taken.add(base)
            return base
        number = _NUMBERED.fullmatch(base)
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
