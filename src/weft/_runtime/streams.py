"""Streams and events: the order of work on a device.

The CPU has one stream, and an operator on it is done when its call returns: nothing waits.

>>> stream = weft.Stream()
>>> stream.record_event().query(), stream.query()
(True, True)
"""

from __future__ import annotations

from typing import Any

from weft import _C


class _Done:
    """What is done already. `device`: None for the CPU; RuntimeError for another one."""

    def __init__(self, device: Any = None) -> None:
        self.device = _C.device("cpu" if device is None else device)
        if self.device.type != "cpu":
            name = type(self).__name__
            raise RuntimeError(f"{name}: expected device cpu, got {self.device}")

    def query(self) -> bool:
        """Whether the work is done: True."""
        return True

    def synchronize(self) -> None:
        """Returns when the work is done: at once."""


class Stream(_Done):
    """A queue of work on a device."""

    stream_id = 0

    def __init__(self, device: Any = None, *, priority: int = 0) -> None:
        super().__init__(device)

    def record_event(self, event: Event | None = None) -> Event:
        """An event that stands for the work so far: `event`, or a new one."""
        return event or Event(self.device)

    def wait_event(self, event: Event) -> None:
        """Work from now on begins after the event."""

    def wait_stream(self, stream: Stream) -> None:
        """Work from now on begins after what `stream` has so far."""

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self) -> int:
        return hash(self.device)


class Event(_Done):
    """A point in the work of a stream."""

    def __init__(self, device: Any = None, *, enable_timing: bool = False) -> None:
        super().__init__(device)

    def record(self, stream: Stream | None = None) -> None:
        """From now on the event stands for the work that the stream has at this moment."""

    def wait(self, stream: Stream | None = None) -> None:
        """Work of the stream from now on begins after the event."""
