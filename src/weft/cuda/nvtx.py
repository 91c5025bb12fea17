"""Marks for NVIDIA's profilers: they raise, as there is no GPU. weft.profiler marks by itself."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def _needs_device(name: str) -> Any:
    def raises(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"cuda.nvtx.{name}: expected a GPU, got a build for the CPU alone")

    raises.__name__ = raises.__qualname__ = name
    raises.__doc__ = "Raises RuntimeError."
    return raises


mark, range, range_end, range_pop, range_push, range_start = map(_needs_device, __all__)
