"""weft.accelerator: whatever device there is besides the CPU; in this build, none.

>>> weft.accelerator.current_accelerator() is None
True
"""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def current_accelerator(check_available: bool = False) -> Any:
    """None."""
    return None
