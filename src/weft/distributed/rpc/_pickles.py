"""What travels between workers, pickled: unpickling runs what a process of the same program says,
so processes trust each other. References are told by their names."""

from __future__ import annotations

import io
import itertools
import pickle
import struct
import traceback
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from weft.distributed.rpc._link import Part

if TYPE_CHECKING:
    from weft.distributed.rpc._agent import Agent


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, agent: Agent, parts: list[Part]) -> None:
        super().__init__(file, 5, buffer_callback=lambda buffer: parts.append(buffer.raw()))
        self._agent = agent

    def persistent_id(self, obj: Any) -> Any:
        """References become their owner and key; each that travels counts as one more."""
        if not isinstance(obj, self._agent.reference):
            return None
        self._agent.hold(obj._owner, obj._key)
        return obj._owner, obj._key


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, agent: Agent, buffers: Iterable[Part]) -> None:
        super().__init__(file, buffers=buffers)
        self._agent = agent

    def persistent_load(self, pid: Any) -> Any:
        """The reference, which the sender has counted."""
        return self._agent.reference._of(self._agent, *pid)


def dumps(agent: Agent, value: Any) -> list[Part]:
    """A value in parts: how many and how long they are, its pickle, and its tensors' own memory."""
    file, buffers = io.BytesIO(), list[Part]()
    _Pickler(file, agent, buffers).dump(value)
    parts: list[Part] = [file.getvalue(), *buffers]
    return [struct.pack(f"<{len(parts) + 1}Q", len(parts), *map(len, parts)), *parts]


def loads(agent: Agent, body: Sequence[Part]) -> Any:
    """The value of parts, which have come as one."""
    data = memoryview(body[0])
    (count,) = struct.unpack_from("<Q", data)
    head = struct.Struct(f"<{count + 1}Q")
    ends = list(itertools.accumulate(head.unpack_from(data)[1:], initial=head.size))
    first, *buffers = (data[start:end] for start, end in itertools.pairwise(ends))
    return _Unpickler(io.BytesIO(first), agent, buffers).load()


def error_in_parts(agent: Agent, error: BaseException) -> list[Part]:
    """An error's class, if that can be pickled, and its text with the place where it arose."""
    text = f"On {agent.info}:\n{error!r}\n{''.join(traceback.format_exception(error))}"
    try:
        return dumps(agent, (type(error), text))
    except Exception:
        return dumps(agent, (RuntimeError, text))


def error_of_parts(agent: Agent, body: Sequence[Part]) -> BaseException:
    """An error of that class and text; RuntimeError for a class that is made otherwise."""
    kind, text = loads(agent, body)
    try:
        return kind(text)
    except Exception:
        return RuntimeError(f"rpc: expected {kind.__name__} to be made of a text, got: {text}")
