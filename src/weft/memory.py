"""The allocators of CPU memory: what they did, what they hold, and how to put another in place.

New storages come from the current allocator. Every block goes back to the allocator that made it,
however often the current one changes in between, and on whichever thread the last tensor goes.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from weft import _C
from weft._runtime.exports import list_own as _list_own

ALIGNMENT = 64  # bytes: where every block has to start


class Blocks(NamedTuple):
    """The blocks of one size that an allocator holds."""

    block_bytes: int
    in_use: int
    cached: int


class Snapshot(NamedTuple):
    """The blocks an allocator holds at this moment, by size, and their sums in bytes."""

    allocator: str
    blocks: tuple[Blocks, ...]

    @property
    def bytes_in_use(self) -> int:
        """Bytes of the blocks handed out."""
        return sum(b.block_bytes * b.in_use for b in self.blocks)

    @property
    def bytes_cached(self) -> int:
        """Bytes of the blocks kept for reuse."""
        return sum(b.block_bytes * b.cached for b in self.blocks)

    def __str__(self) -> str:
        rows = [f"{'block bytes':>14} {'in use':>8} {'cached':>8}"]
        rows += [f"{b.block_bytes:>14,} {b.in_use:>8} {b.cached:>8}" for b in self.blocks]
        rows.append(f"{self.bytes_in_use:,} bytes in use, {self.bytes_cached:,} cached")
        return f"allocator {self.allocator!r}\n" + "\n".join(rows)


def _function(function: Any) -> Any:
    """The address of a ctypes function, anything else as it is."""
    ctypes = sys.modules.get("ctypes")  # without it the object cannot be one of its functions
    if ctypes is not None and isinstance(function, ctypes._CFuncPtr):
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    return function


class Allocator:
    """An allocator made of two functions.

    `alloc(nbytes)` returns the address of a block that starts at a multiple of 64 (0 or None: no
    memory), `free(address, nbytes)` takes it back. Each is a ctypes function pointer or the address
    of a C function (`void *alloc(size_t)`, `void free(void *, size_t)`, called without the
    interpreter lock), or a Python callable. Both may be called on any thread. Requests of 0 bytes
    never reach them.

    An allocator that was installed lives as long as the process, because its blocks may.
    """

    __slots__ = ("_handle", "_kept")
    _handle: Any
    _kept: Any  # the functions: C code does not count references to them

    def __init__(
        self,
        alloc: Callable[[int], int | None] | int,
        free: Callable[[int, int], object] | int,
        *,
        name: str = "user",
    ) -> None:
        self._handle = _C._make_allocator(_function(alloc), _function(free), name)
        self._kept = (alloc, free)

    @classmethod
    def _of(cls, handle: Any) -> Allocator:
        known = _installed.get(handle.address)
        if known is None:
            known = object.__new__(cls)
            known._handle, known._kept = handle, None
        return known

    @property
    def name(self) -> str:
        """What errors and pictures call it."""
        return self._handle.name

    @property
    def limit(self) -> int:
        """Most bytes held; 0 for no limit. Beyond it: OutOfMemoryError."""
        return self._handle.limit()

    @limit.setter
    def limit(self, nbytes: int) -> None:
        self._handle.set_limit(nbytes)

    def stats(self) -> dict[str, int]:
        """What it has done, as counts and bytes."""
        return self._handle.stats()

    def snapshot(self) -> Snapshot:
        """Which sizes it holds, in use and cached."""
        return Snapshot(self.name, tuple(Blocks(*row) for row in self._handle.snapshot()))

    def empty_cache(self) -> None:
        """Gives cached blocks back to the system."""
        self._handle.empty_cache()

    def reset_peak(self) -> None:
        """Makes the peak what is in use now."""
        self._handle.reset_peak()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Allocator) and self._handle.address == other._handle.address

    def __hash__(self) -> int:
        return hash(self._handle.address)

    def __repr__(self) -> str:
        return f"<weft.memory.Allocator {self.name!r}>"


_installed: dict[int, Allocator] = {}  # by address, for ever


def get_allocator() -> Allocator:
    """The allocator of new storages."""
    return Allocator._of(_C._current_allocator())


def caching_allocator() -> Allocator:
    """The built-in allocator."""
    return Allocator._of(_C._caching_allocator())


def set_allocator(allocator: Allocator | None) -> Allocator:
    """Makes it the allocator of new storages, None the built-in one. Returns the one before."""
    if allocator is None:
        allocator = caching_allocator()
    if not isinstance(allocator, Allocator):
        kind = type(allocator).__name__
        raise TypeError(f"set_allocator: expected an Allocator, got {kind}")
    before = get_allocator()
    _installed.setdefault(allocator._handle.address, allocator)
    allocator._handle.install()
    return before


@contextlib.contextmanager
def using(allocator: Allocator) -> Iterator[Allocator]:
    """New storages come from the allocator inside the `with` block, on all threads."""
    before = set_allocator(allocator)
    try:
        yield allocator
    finally:
        set_allocator(before)


# ---- the current allocator ----


def stats() -> dict[str, int]:
    """What the current allocator has done: counts of blocks and bytes."""
    return get_allocator().stats()


def snapshot() -> Snapshot:
    """Which sizes the current allocator holds, in use and cached."""
    return get_allocator().snapshot()


def reset_peak() -> None:
    """Makes the peak what is in use now."""
    get_allocator().reset_peak()


def empty_cache() -> None:
    """Gives the cached blocks of the current allocator back to the system."""
    get_allocator().empty_cache()


def limit() -> int:
    """Most bytes the current allocator holds; 0 for no limit."""
    return get_allocator().limit


def set_limit(nbytes: int) -> None:
    """Most bytes in use plus cached; 0 for no limit. Beyond it: OutOfMemoryError."""
    get_allocator().limit = nbytes


def packed_weights() -> int:
    """Bytes of convolution weights that are kept in the order in which kernels read them.

    A weight is kept from the second call with the same contents on, and goes with its memory or
    its next change. They count in `stats` too.

    >>> import weft
    >>> packed_weights() <= packed_weight_limit()
    True
    """
    return _C._packed_weights()


def packed_weight_limit() -> int:
    """Most bytes of weights that are kept packed: 1 GiB unless set."""
    return _C._packed_weight_limit()


def set_packed_weight_limit(nbytes: int) -> None:
    """Most bytes of weights that are kept packed; what is kept already stays. 0: none from now on,
    each call packs for itself. Raises ValueError for a negative number."""
    _C._set_packed_weight_limit(nbytes)


_list_own(vars(), "ALIGNMENT")
