"""weft.accelerator: whatever device there is besides the CPU; in this build, none.

>>> weft.accelerator.current_accelerator() is None
True
"""

from __future__ import annotations

from typing import Any, NoReturn

from weft._runtime import absent as _absent
from weft._runtime.absent import device_count as device_count
from weft._runtime.absent import is_available as is_available


def current_accelerator(check_available: bool = False) -> Any:
    """None."""
    return None


def _needs_device(name: str) -> NoReturn:
    raise RuntimeError(f"accelerator.{name}: expected a device, got a build for the CPU alone")


_absent.define(
    globals(),
    "Raises RuntimeError.",
    _needs_device,
    "synchronize(device=None) current_stream(device=None) set_stream(stream) "
    "current_device_index() set_device_index(device)",
)
