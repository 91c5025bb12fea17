"""weft.accelerator: whatever device there is besides the CPU; in this build, none.

>>> weft.accelerator.current_accelerator() is None
True
"""

from __future__ import annotations

from typing import Any, NoReturn

from weft._runtime.absent import device_count as device_count
from weft._runtime.absent import is_available as is_available


def current_accelerator(check_available: bool = False) -> Any:
    """None."""
    return None


def _needs_device(name: str) -> NoReturn:
    raise RuntimeError(f"accelerator.{name}: expected a device, got a build for the CPU alone")


def synchronize(device: Any = None) -> None:
    """Raises RuntimeError."""
    _needs_device("synchronize")


def current_stream(device: Any = None) -> Any:
    """Raises RuntimeError."""
    _needs_device("current_stream")


def set_stream(stream: Any) -> None:
    """Raises RuntimeError."""
    _needs_device("set_stream")


def current_device_index() -> int:
    """Raises RuntimeError."""
    _needs_device("current_device_index")


def set_device_index(device: Any) -> None:
    """Raises RuntimeError."""
    _needs_device("set_device_index")
