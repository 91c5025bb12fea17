"""A pool of shared buffers (slabs), which a worker fills with batches, again and again.

A slab is free, busy or retired (see csrc/core/shared_buffer.h). The worker makes one when none is
free and sends its descriptor with the first batch in it; both sides map it once. The batch's
tensors lie over the parent's mapping, and the death of the last of them makes the slab free.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor

_FREE, _BUSY, _RETIRED = range(3)
_ALIGNMENT = 64
# So many slabs with living batches make a parent that keeps what it gets: further batches are sent
# through the socket, for every mapping counts against a limit of the system (65,530 on Linux).
MOST_SLABS = 256

_REFERENCES = 9  # place in _storage_info


class _Slab:
    """A slab in the process that writes it. `end`: where the next part of the batch begins."""

    def __init__(self, number: int, nbytes: int) -> None:
        self.number = number
        self.nbytes = nbytes
        self.end = _C.SLAB_HEADER
        self.descriptor = _C._shared_file(nbytes)  # -1 once sent
        self.bytes: Tensor = _C._map_shared(self.descriptor, nbytes)
        self.address = self.bytes.data_ptr()
        self.alone = _C._storage_info(self.bytes)[_REFERENCES]

    def room(self) -> int:
        return self.nbytes - self.end

    def is_free(self) -> bool:
        """No reader, and nobody in this process keeps a tensor of an earlier batch."""
        return (
            _C._slab_state(self.bytes) == _FREE
            and _C._storage_info(self.bytes)[_REFERENCES] == self.alone
        )

    def close_descriptor(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def is_retired(self) -> bool:
        return _C._slab_state(self.bytes) == _RETIRED


class Arena:
    """The worker's slabs, and those that the batch in the making lies in.

    spare: how many free slabs stay for later; a parent that kept many batches may drop them all.
    """

    def __init__(self, spare: int) -> None:
        self._spare = spare
        self._slabs: list[_Slab] = []
        self._current: list[_Slab] = []
        self._dropped: list[int] = []
        self._made = 0
        self._last_total = 0  # bytes of the batch before: what the first slab should have room for

    def empty(self, size: tuple[int, ...], dtype: Any) -> Tensor | None:
        """A contiguous tensor in a slab of this batch; None when there may be no further slab."""
        nbytes = math.prod(size) * dtype.itemsize
        slab = self._current[-1] if self._current else None
        if slab is None or slab.room() < nbytes:
            slab = self._take(nbytes)
            if slab is None:
                return None
        start = slab.end
        slab.end = start + -(-nbytes // _ALIGNMENT) * _ALIGNMENT
        return _C._from_storage(
            slab.bytes, dtype, tuple(size), _row_major(size), start // dtype.itemsize
        )

    def place(self, tensor: Tensor) -> tuple[int, int] | None:
        """Slab of this batch, and byte in it, where a tensor begins; None if it is elsewhere."""
        if self._current:
            address = tensor.data_ptr()
            for position, slab in enumerate(self._current):
                if slab.address <= address < slab.address + slab.nbytes:
                    return position, address - slab.address
        return None

    def finish(self) -> tuple[list[tuple[int, int]], list[int], list[int]]:
        """Hands the batch over: its slabs as (number, nbytes if new or 0), those that are gone,
        and the descriptors of the new ones, to be given to `sent` once they are on their way."""
        slabs = []
        for slab in self._current:
            _C._slab_mark(slab.bytes, _BUSY)
            slabs.append((slab.number, slab.nbytes if slab.descriptor >= 0 else 0))
        descriptors = [slab.descriptor for slab in self._current if slab.descriptor >= 0]
        dropped, self._dropped = self._dropped, []
        return slabs, dropped, descriptors

    def sent(self) -> None:
        """The batch is on its way; the next one begins."""
        for slab in self._current:
            slab.close_descriptor()
        self._clear()

    def abandon(self) -> None:
        """There will be no batch: what was taken for it is free again."""
        for slab in self._current:
            _C._slab_mark(slab.bytes, _FREE)
        self._clear()

    def _clear(self) -> None:
        if self._current:
            self._last_total = sum(slab.end - _C.SLAB_HEADER for slab in self._current)
            self._current = []

    def _take(self, nbytes: int) -> _Slab | None:
        wanted = nbytes if self._current else max(nbytes, self._last_total)
        wanted += _C.SLAB_HEADER
        self._drop(lambda slab: slab.is_retired())
        free = [slab for slab in self._slabs if slab not in self._current and slab.is_free()]
        fitting = [slab for slab in free if slab.nbytes >= wanted]
        if fitting:
            slab = min(fitting, key=lambda slab: slab.nbytes)
            free.remove(slab)
            self._drop(free[self._spare :].__contains__)
        else:
            self._drop(free.__contains__)  # too small, so they would stay unused
            if len(self._slabs) >= MOST_SLABS:
                return None
            slab = _Slab(self._made, _rounded(wanted))
            self._made += 1
            self._slabs.append(slab)
        slab.end = _C.SLAB_HEADER
        self._current.append(slab)
        return slab

    def _drop(self, which: Callable[[_Slab], bool]) -> None:
        gone = [slab for slab in self._slabs if slab not in self._current and which(slab)]
        for slab in gone:
            slab.close_descriptor()
            self._slabs.remove(slab)
            self._dropped.append(slab.number)


def _rounded(nbytes: int) -> int:
    """Some room for batches of changing size: up to the next quarter of a power of two."""
    step = max(1 << max(nbytes.bit_length() - 3, 0), 1 << 14)
    return -(-nbytes // step) * step


def _row_major(size: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for length in reversed(size):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))
