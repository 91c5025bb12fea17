"""weft.cpu: the CPU by the names of devices' modules, so that programs ask all devices alike.

>>> weft.cpu.is_available(), weft.cpu.device_count(), weft.cpu.current_device()
(True, 1, 'cpu')
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weft._runtime.exports import list_own as _list_own
from weft._runtime.streams import Event as Event
from weft._runtime.streams import Stream as Stream
from weft.cpu import amp as amp

_stream = Stream()


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True: there is nothing to initialise."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """ "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing to do: there is one."""


def synchronize(device: Any = None) -> None:
    """Nothing to do: an operator is done when its call returns."""


def current_stream(device: Any = None) -> Stream:
    """The CPU's only stream."""
    return _stream


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """A block whose work is in the order of `stream`, as all is."""
    yield


StreamContext = stream


_list_own(vars(), "Event Stream amp")
