"""What the compiler knows of a function or class, kept in the object itself: both go at once.

A dictionary would keep for ever what refers to its key, as a compiled function does to its names.
"""

from __future__ import annotations

import weakref
from typing import Any

MARK = "_weft_jit_known"


def known(obj: Any) -> Any:
    """What is kept for an object; None for nothing, and for a wrapper that has copied the mark."""
    found = vars(obj).get(MARK)
    return found[1] if found is not None and found[0]() is obj else None


def keep(obj: Any, value: Any) -> None:
    """Keeps a value for an object."""
    setattr(obj, MARK, (weakref.ref(obj), value))


def forget(obj: Any) -> None:
    """Keeps nothing for an object."""
    if known(obj) is not None:
        delattr(obj, MARK)
