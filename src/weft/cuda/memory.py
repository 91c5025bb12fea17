"""Memory of GPUs, of which there is none: no figures, and no recordings."""

from __future__ import annotations

from typing import Any, NoReturn

from weft.cuda import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_max_memory_allocated,
    reset_peak_memory_stats,
)

__all__ = [
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
]


def _needs_device(name: str) -> Any:
    def raises(*args: Any, **kwargs: Any) -> NoReturn:
        raise AssertionError(f"cuda.memory.{name}: expected a GPU, got a build for the CPU alone")

    raises.__name__ = raises.__qualname__ = name
    raises.__doc__ = "Raises AssertionError."
    return raises


_record_memory_history = _needs_device("_record_memory_history")
_dump_snapshot = _needs_device("_dump_snapshot")
_snapshot = _needs_device("_snapshot")
