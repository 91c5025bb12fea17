"""libtorch/absent_functions.h and absent_methods.h: what libtorch has and weft does not.

tools/gen/libtorch_absent.txt lists names; with `*` also those with `_out` and `_outf` behind them.
What the other generators make is left out, so that a new operator needs no change of the list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

FILES = ("libtorch/absent_functions.h", "libtorch/absent_methods.h")
_LISTED = Path(__file__).with_suffix(".txt")


def files(functions: Collection[str], methods: Collection[str]) -> dict[str, str]:
    """Both lists as calls of the macro WEFT_ABSENT, but for the names given."""
    texts = dict.fromkeys(FILES, "")
    for kind, name in _names():
        what, _, result = kind.partition(" ")
        if what == "methods" and name not in methods:
            texts[FILES[1]] += f"WEFT_ABSENT({result}, {name})\n"
        elif what == "functions" and name not in functions:
            texts[FILES[0]] += f"WEFT_ABSENT({name})\n"
    return texts


def _names() -> Iterator[tuple[str, str]]:
    """("functions" or "methods Tensor", name)."""
    for part in _LISTED.read_text(encoding="utf-8").split("\n\n"):
        kind, *lines = part.splitlines()
        for word in " ".join(lines).split():
            name = word.rstrip("*")
            yield from (
                (kind, name + end) for end in ("", "_out", "_outf")[: 3 if "*" in word else 1]
            )
