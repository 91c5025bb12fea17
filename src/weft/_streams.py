"""Streams and events: the order of work on a device.

The CPU has one stream, and an operator on it is done when its call returns: nothing waits.

>>> stream = weft.Stream()
>>> stream.query()
True
"""

from __future__ import annotations

from typing import Any

from weft import _C

__all__ = ["Event", "Stream"]


def _check_device(what: str, device: Any) -> Any:
    """The device; RuntimeError for one whose streams Python does not know."""
    place = _C.device("cpu" if device is None else device)
    if place.type != "cpu":
        raise RuntimeError(f"{what}: expected device cpu, got {place}")
    return place


class Stream:
    """A queue of work on a device. `device`: None for the CPU; other devices raise RuntimeError."""

    stream_id = 0

    def __init__(self, device: Any = None, *, priority: int = 0) -> None:
        self.device = _check_device("Stream", device)

    def query(self) -> bool:
        """Whether all work of the stream is done: True."""
        return True

    def synchronize(self) -> None:
        """Returns when all work of the stream is done: at once."""

    def record_event(self, event: Event | None = None) -> Event:
        """An event that stands for the work so far: `event`, or a new one."""
        made = Event(self.device) if event is None else event
        made.record(self)
        return made

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
        return hash((self.device, self.stream_id))

    def __repr__(self) -> str:
        return f"torch.Stream device_type={self.device.type}, stream_id={self.stream_id}"


class Event:
    """A point in the work of a stream. `device`: None for the CPU; others raise RuntimeError."""

    def __init__(self, device: Any = None, *, enable_timing: bool = False) -> None:
        self.device = _check_device("Event", device)

    def record(self, stream: Stream | None = None) -> None:
        """From now on the event stands for the work that the stream has at this moment."""

    def wait(self, stream: Stream | None = None) -> None:
        """Work of the stream from now on begins after the event."""

    def query(self) -> bool:
        """Whether the work before the event is done: True."""
        return True

    def synchronize(self) -> None:
        """Returns when the work before the event is done: at once."""
