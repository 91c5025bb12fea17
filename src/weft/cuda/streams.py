"""Streams, events and graphs of GPUs: classes to mention. Making one raises without a GPU."""

from __future__ import annotations

from typing import Any

__all__ = ["CUDAGraph", "Event", "ExternalStream", "Stream"]


class _OfDevice:
    """RuntimeError when it is made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"cuda.{cls.__name__}: expected a GPU, got a build for the CPU alone")


class Stream(_OfDevice):
    """A queue of work on a GPU; weft.Stream is that of the CPU."""


class ExternalStream(Stream):
    """A stream that another library made."""


class Event(_OfDevice):
    """A point in the work of a stream; weft.Event is that of the CPU."""


class CUDAGraph(_OfDevice):
    """Work that a GPU repeats as a whole."""
