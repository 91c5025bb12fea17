"""What a call asks of the allocator: an allocator that keeps a record."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import weft

_LIBC = ctypes.CDLL(None)
_LIBC.aligned_alloc.restype = ctypes.c_void_p
_LIBC.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
_LIBC.free.argtypes = [ctypes.c_void_p]
_events: list[int] = []  # bytes of blocks, negative where they are given back


def _alloc(nbytes: int) -> int:
    _events.append(nbytes)
    return _LIBC.aligned_alloc(64, (nbytes + 63) // 64 * 64)


def _free(address: int, nbytes: int) -> None:
    _events.append(-nbytes)
    _LIBC.free(address)


_RECORDING = weft.memory.Allocator(_alloc, _free, name="recording")


class Use(NamedTuple):
    """What a call used: the most bytes at one time beyond those before it, and blocks."""

    peak: int
    blocks: int


def use_of(run: Callable[..., Any], *args: Any, least: int = 0, most: int = 1 << 62) -> Use:
    """What `run(*args)` asks for, its result included; blocks of less than `least` or more than
    `most` bytes do not count."""
    with weft.memory.using(_RECORDING):
        _events.clear()
        result = run(*args)
        events = [nbytes for nbytes in _events if least <= abs(nbytes) <= most]
    del result
    now = peak = 0
    for nbytes in events:
        now += nbytes
        peak = max(peak, now)
    return Use(peak, sum(1 for nbytes in events if nbytes > 0))
