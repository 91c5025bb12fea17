"""A pool of shared buffers, which a worker fills with batches, again and again.

A buffer is free, busy or retired (see csrc/core/shared_buffer.h). The worker makes one when none is
free and sends its descriptor with the first batch in it; both sides map it once. The batch's
tensors lie over the parent's mapping, and the death of the last of them makes the buffer free.
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
# A parent that keeps so many batches keeps what it gets: further ones are sent through the socket,
# for every mapping counts against a limit of the system (65,530 on Linux).
MOST_BUFFERS = 256

_REFERENCES = 9  # place in _storage_info


class _Buffer:
    """A buffer in the process that writes it. `end`: where the next part of the batch begins."""

    def __init__(self, number: int, nbytes: int) -> None:
        self.number = number
        self.nbytes = nbytes
        self.end = _C.SHARED_BUFFER_HEADER
        self.descriptor = _C._shared_file(nbytes)  # -1 once sent
        self.bytes: Tensor = _C._map_shared(self.descriptor, nbytes)
        self.address = self.bytes.data_ptr()
        self.alone = _C._storage_info(self.bytes)[_REFERENCES]

    def available(self) -> int:
        return self.nbytes - self.end

    def is_free(self) -> bool:
        """No reader, and nobody in this process keeps a tensor of an earlier batch."""
        return (
            _C._shared_buffer_state(self.bytes) == _FREE
            and _C._storage_info(self.bytes)[_REFERENCES] == self.alone
        )

    def close_descriptor(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def is_retired(self) -> bool:
        return _C._shared_buffer_state(self.bytes) == _RETIRED


class BufferPool:
    """The worker's buffers, and those that the batch in the making lies in.

    spare: how many free buffers stay for later; a parent that kept many batches may drop them all.
    """

    def __init__(self, spare: int) -> None:
        self._spare = spare
        self._buffers: list[_Buffer] = []
        self._current: list[_Buffer] = []
        self._dropped: list[int] = []
        self._made = 0
        self._last_total = 0  # bytes of the batch before: the first buffer has room for them

    def empty(self, size: tuple[int, ...], dtype: Any) -> Tensor | None:
        """A contiguous tensor in a buffer of this batch; None when there may be no further one."""
        nbytes = math.prod(size) * dtype.itemsize
        buffer = self._current[-1] if self._current else None
        if buffer is None or buffer.available() < nbytes:
            buffer = self._take(nbytes)
            if buffer is None:
                return None
        start = buffer.end
        buffer.end = start + -(-nbytes // _ALIGNMENT) * _ALIGNMENT
        return _C._from_storage(
            buffer.bytes, dtype, tuple(size), _row_major(size), start // dtype.itemsize
        )

    def place(self, tensor: Tensor) -> tuple[int, int] | None:
        """Buffer of this batch, and byte in it, where a tensor begins; None if it is elsewhere."""
        if self._current:
            address = tensor.data_ptr()
            for position, buffer in enumerate(self._current):
                if buffer.address <= address < buffer.address + buffer.nbytes:
                    return position, address - buffer.address
        return None

    def finish(self) -> tuple[list[tuple[int, int]], list[int], list[int]]:
        """Hands the batch over: its buffers as (number, nbytes if new or 0), those that are gone,
        and the descriptors of the new ones, to be given to `sent` once they are on their way."""
        buffers = []
        for buffer in self._current:
            _C._mark_shared_buffer(buffer.bytes, _BUSY)
            buffers.append((buffer.number, buffer.nbytes if buffer.descriptor >= 0 else 0))
        descriptors = [buffer.descriptor for buffer in self._current if buffer.descriptor >= 0]
        dropped, self._dropped = self._dropped, []
        return buffers, dropped, descriptors

    def sent(self) -> None:
        """The batch is on its way; the next one begins."""
        for buffer in self._current:
            buffer.close_descriptor()
        self._clear()

    def abandon(self) -> None:
        """There will be no batch: what was taken for it is free again."""
        for buffer in self._current:
            _C._mark_shared_buffer(buffer.bytes, _FREE)
        self._clear()

    def _clear(self) -> None:
        if self._current:
            self._last_total = sum(buffer.end - _C.SHARED_BUFFER_HEADER for buffer in self._current)
            self._current = []

    def _take(self, nbytes: int) -> _Buffer | None:
        wanted = nbytes if self._current else max(nbytes, self._last_total)
        wanted += _C.SHARED_BUFFER_HEADER
        self._drop(lambda buffer: buffer.is_retired())
        free = [each for each in self._buffers if each not in self._current and each.is_free()]
        fitting = [buffer for buffer in free if buffer.nbytes >= wanted]
        if fitting:
            buffer = min(fitting, key=lambda buffer: buffer.nbytes)
            free.remove(buffer)
            self._drop(free[self._spare :].__contains__)
        else:
            self._drop(free.__contains__)  # too small, so they would stay unused
            if len(self._buffers) >= MOST_BUFFERS:
                return None
            buffer = _Buffer(self._made, _rounded(wanted))
            self._made += 1
            self._buffers.append(buffer)
        buffer.end = _C.SHARED_BUFFER_HEADER
        self._current.append(buffer)
        return buffer

    def _drop(self, which: Callable[[_Buffer], bool]) -> None:
        gone = [buffer for buffer in self._buffers if buffer not in self._current and which(buffer)]
        for buffer in gone:
            buffer.close_descriptor()
            self._buffers.remove(buffer)
            self._dropped.append(buffer.number)


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
