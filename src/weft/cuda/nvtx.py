"""Marks for NVIDIA's profilers: they raise, as there is no GPU. weft.profiler marks by itself."""

from __future__ import annotations

from weft._runtime.absent import raising as _raising

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


mark, range, range_end, range_pop, range_push, range_start = (
    _raising("cuda.nvtx", name, RuntimeError) for name in __all__
)
