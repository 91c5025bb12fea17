"""Transport: one batch from a worker to the parent.

A batch that is a tensor, or a list of them, says so itself. The structure of any other is pickled,
and its tensors lie beside the pickle. Where all of it is small it goes through the socket.
Otherwise the tensors lie in shared buffers (buffer_pool.py), where collating has put them already
if it could, and so does a pickle that is long itself.
"""

from __future__ import annotations

import io
import os
import pickle
import threading
from multiprocessing.reduction import ForkingPickler
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.utils.data.buffer_pool import BufferPool
from weft.utils.data.channel import Channel, Message

# Bytes of a batch that rather go through the socket: sharing costs a mapping for each living batch.
INLINE_BYTES = 1 << 15

# How a batch is put together: as many bytes of a pickle, in the message or (_IN_BUFFER) behind the
# last tensor, or without one: usual batches need none, and it takes 10 us to write and 3 to read.
_IN_BUFFER, _TENSOR, _LIST = 0, -1, -2

_now = threading.local()  # .parts: the tensors of the pickle that this thread reads


def _part(index: int) -> Tensor:
    return _now.parts[index]


class _Packer(ForkingPickler):
    """Pickles a batch and leaves its plain tensors out."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.tensors: list[Tensor] = []

    def reducer_override(self, value: Any) -> Any:
        if _is_plain(value):
            self.tensors.append(value)
            return _part, (len(self.tensors) - 1,)
        return NotImplemented


def _is_plain(value: Any) -> bool:
    return type(value) is Tensor and not value.requires_grad


def _taken_apart(batch: Any) -> tuple[int, Any, list[Tensor]]:
    """How a batch is put together, the pickle if there is one, and the tensors beside it."""
    if _is_plain(batch):
        return _TENSOR, b"", [batch]
    is_list = type(batch) is list and all(map(_is_plain, batch))
    if is_list and len(set(map(id, batch))) == len(batch):  # the same one twice stays one
        return _LIST, b"", batch
    file = io.BytesIO()
    packer = _Packer(file)
    packer.dump(batch)
    return file.tell(), file.getvalue(), packer.tensors


# A tensor beside the pickle: dtype, size and stride, and where it is. In the socket: the bytes it
# has. In buffers: buffer, byte in it, and bytes.


def send_batch(channel: Channel, kind: int, number: int, batch: Any, pool: BufferPool) -> None:
    """Sends a batch as one message."""
    try:
        form, body, tensors = _taken_apart(batch)
        dense = [_dense(tensor) for tensor in tensors]
        slots = [pool.place(flat) for flat, _ in dense]
        total = len(body) + sum(flat.nbytes for flat, _ in dense)
        if total <= INLINE_BYTES and not any(slots):
            _send_inline(channel, kind, number, form, body, dense)
        else:
            _send_shared(channel, kind, number, form, body, dense, slots, pool)
    except BaseException:
        pool.abandon()
        raise


def _dense(tensor: Tensor) -> tuple[Tensor, tuple[Any, ...]]:
    """The elements in one row, in the order of memory, and how to see the tensor in them."""
    size, strides = tuple(tensor.shape), tensor.stride()
    if not tensor.is_contiguous():
        order = sorted(range(len(size)), key=lambda dim: -strides[dim])
        if tensor.permute(order).is_contiguous():  # such as channels_last: its strides stay
            return tensor.permute(order).view(-1), (_name(tensor.dtype), size, strides)
        tensor = tensor.contiguous()
        strides = tensor.stride()
    return tensor.view(-1), (_name(tensor.dtype), size, strides)


def _name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def _bytes_of(flat: Tensor) -> Tensor:
    begin = flat.storage_offset() * flat.dtype.itemsize
    return _C._storage_view(flat)[begin : begin + flat.nbytes]


def _send_inline(
    channel: Channel, kind: int, number: int, form: int, body: Any, dense: list[tuple[Tensor, Any]]
) -> None:
    parts = [(*seen, flat.nbytes) for flat, seen in dense]
    header = pickle.dumps((parts, (), (), form))
    extra = [_bytes_of(flat) for flat, _ in dense if flat.nbytes]
    channel.send(kind, number, header, [body, *extra])


def _send_shared(
    channel: Channel,
    kind: int,
    number: int,
    form: int,
    body: Any,
    dense: list[tuple[Tensor, Any]],
    slots: list[tuple[int, int] | None],
    pool: BufferPool,
) -> None:
    if len(body) > INLINE_BYTES:
        text = _C.frombuffer(bytearray(body), dtype=_C.uint8)
        dense.append((text, ("uint8", (len(body),), (1,))))
        slots.append(None)
        form, body = _IN_BUFFER, b""
    moved: list[tuple[int, int]] = []
    for (flat, _), place in zip(dense, slots):
        if not flat.nbytes:
            place = (0, _C.SHARED_BUFFER_HEADER)  # an empty tensor has no address of its own
        elif place is None:
            copy = pool.empty((flat.numel(),), flat.dtype)
            if copy is None:  # too many buffers are in use: everything goes through the socket
                tensors = [(held.clone(), seen) for held, seen in dense]
                pool.abandon()
                _send_inline(channel, kind, number, form, body, tensors)
                return
            copy.copy_(flat)
            place = pool.place(copy)
            assert place is not None
        moved.append(place)
    parts = [(*seen, *place, flat.nbytes) for (flat, seen), place in zip(dense, moved)]
    buffers, dropped, descriptors = pool.finish()
    header = pickle.dumps((parts, buffers, dropped, form))
    channel.send(kind, number, header, [body] if len(body) else [], descriptors)
    pool.sent()


class Receiver:
    """What the parent knows of one worker's buffers."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._buffers: dict[int, Tensor] = {}

    def unpack(self, message: Message) -> Any:
        """The batch of a message."""
        parts, buffers, dropped, form = pickle.loads(message.body)
        for number in dropped:
            self._buffers.pop(number, None)
        pickled = max(form, 0)
        if buffers:
            tensors = self._shared(parts, buffers)
        else:
            tensors = _copied(parts, message.extra[pickled:])
        if form == _TENSOR:
            return tensors[0]
        if form == _LIST:
            return tensors
        body: Any = memoryview(tensors[-1]) if form == _IN_BUFFER else message.extra[:pickled]
        return _put_together(body, tensors)

    def _shared(self, parts: list[Any], buffers: list[tuple[int, int]]) -> list[Tensor]:
        for number, nbytes in buffers:
            if nbytes:
                descriptor = self._channel.descriptors.popleft()
                try:
                    self._buffers[number] = _C._map_shared(descriptor, nbytes)
                finally:
                    os.close(descriptor)
        held: list[list[Any]] = [[] for _ in buffers]
        for dtype, size, stride, buffer, begin, nbytes in parts:
            held[buffer].append((begin, nbytes, getattr(_C, dtype), size, stride))
        filled = [
            iter(_C._shared_buffer_parts(self._buffers[number], mine))
            for (number, _), mine in zip(buffers, held)
        ]
        return [next(filled[buffer]) for _, _, _, buffer, _, _ in parts]


def _put_together(body: Any, tensors: list[Tensor]) -> Any:
    _now.parts = tensors
    try:
        return pickle.loads(body)
    finally:
        _now.parts = None


def _copied(parts: list[Any], extra: memoryview) -> list[Tensor]:
    tensors, begin = [], 0
    for dtype, size, stride, nbytes in parts:
        data = _C.empty(nbytes, dtype=_C.uint8)
        if nbytes:
            data.copy_(_C.frombuffer(extra, dtype=_C.uint8, count=nbytes, offset=begin))
            begin += nbytes
        tensors.append(_C._from_storage(data, getattr(_C, dtype), size, stride, 0))
    return tensors
