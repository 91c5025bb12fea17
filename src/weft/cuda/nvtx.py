"""Marks for NVIDIA's profilers: they raise, as there is no GPU. weft.profiler marks by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weft._runtime import absent as _absent

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]  # noqa: F822

_absent.define(
    globals(),
    "Raises RuntimeError.",
    _absent.raising("cuda.nvtx", RuntimeError),
    " ".join(f"{name}(*args,**kwargs)" for name in __all__ if name != "range"),
)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A block, or a function that it decorates, as one mark. Entering it raises RuntimeError."""
    range_push(msg.format(*args, **kwargs))  # type: ignore[name-defined]  # noqa: F821
    yield
