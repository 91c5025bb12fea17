"""Marks for NVIDIA's profilers: they raise, as there is no GPU. weft.profiler marks by itself."""

from __future__ import annotations

from weft._runtime import absent as _absent

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]  # noqa: F822

_absent.define(
    globals(),
    "Raises RuntimeError.",
    _absent.raising("cuda.nvtx", RuntimeError),
    " ".join(f"{name}(*args,**kwargs)" for name in __all__),
)
