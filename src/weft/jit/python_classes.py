"""Python's classes by their names in programs: what a program makes objects of.

A class is known while something else keeps it, such as the module whose program names it.
"""

from __future__ import annotations

import weakref

from weft import _C


def register(name: str, cls: type) -> None:
    """Makes a class known to programs by a name."""

    def forget(found: weakref.ref[type]) -> None:
        if _C._jit_types.get(name) is found:
            del _C._jit_types[name]

    _C._jit_types[name] = weakref.ref(cls, forget)


def find(name: str) -> type | None:
    """The class of a name; None if there is none."""
    found = _C._jit_types.get(name)
    return found() if isinstance(found, weakref.ref) else found
