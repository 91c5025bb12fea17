"""How storages get from process to process: the strategies, and handles in the place of bytes.

A handle is a few hundred bytes that name shared memory. `docs/sharing.md` has the picture.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.multiprocessing import descriptors
from weft.storage import UntypedStorage

_STRATEGIES = ("file_descriptor", "file_system")
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` takes."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """How storages that become shared from now on are sent."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Chooses how storages that become shared from now on are sent, in this process.

    - "file_descriptor" (the start): each storage has a file of its own whose descriptor is sent
      over a socket. When half of the descriptors that `ulimit -n` allows are in use, further
      storages go the other way by themselves.
    - "file_system": up to 1024 storages lie in one file and are found by name.

    Neither leaves anything behind in a file system. ValueError for another name.
    """
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise ValueError(
            f"set_sharing_strategy: expected one of {', '.join(_STRATEGIES)}, got {new_strategy!r}"
        )
    _strategy = new_strategy


def share(tensor: Tensor) -> None:
    """Moves the storage under a tensor to shared memory; nothing where it is there already."""
    _C._share(tensor, _strategy == "file_system")


def new_shared(nbytes: int) -> Tensor:
    """A uint8 tensor over new shared memory of zeros."""
    return _C._new_shared(nbytes, _strategy == "file_system")


# ---- handles ----


def handle_of(tensor: Tensor) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
    """A function and arguments that give, called once in another process, the same bytes.

    Moves the storage to shared memory first. RuntimeError where that fails.
    """
    share(tensor)
    place = _C._shared_place(tensor)
    info = _C._storage_info(tensor)
    nbytes, read_only = info[1], info[4]
    if nbytes == 0:
        return _empty, ()
    if place is None:
        path = getattr(UntypedStorage._of(tensor), "filename", None)
        if path is not None:  # a file mapped shared
            file = os.stat(path)
            return _by_file, (os.path.abspath(path), (file.st_dev, file.st_ino), nbytes)
        raise RuntimeError(
            f"send: expected memory of weft or of one process, got {nbytes} bytes that were shared "
            "by other means; send a clone()"
        )
    descriptor, *_, in_heap = place
    if in_heap:
        _C._shared_incref(tensor)  # until the handle arrives
        return _by_name, (*_C._shared_name(tensor), nbytes, read_only)
    if descriptor < 0:
        raise RuntimeError(
            f"send: expected a storage whose descriptor is open, got one of {nbytes} bytes whose "
            "descriptor was closed because half of those that ulimit -n allows are in use; raise "
            "that limit, or send a clone()"
        )
    _, device, inode, _, _ = place
    return _by_descriptor, (
        *descriptors.offer(tensor), os.getpid(), (device, inode), nbytes, read_only
    )  # fmt: skip


def _empty() -> Tensor:
    return new_shared(0)


def _by_file(path: str, file: tuple[int, int], nbytes: int) -> Tensor:
    found = os.stat(path)
    if (found.st_dev, found.st_ino) != file:
        raise RuntimeError(f"receive: expected the file that was sent at {path}, got another one")
    storage: Any = UntypedStorage
    return storage.from_file(path, True, nbytes)._handle


def _by_name(manager: str, name: str, nbytes: int, read_only: bool) -> Tensor:
    return _C._adopt_name(manager, name, nbytes, read_only)


def _by_descriptor(
    address: bytes, key: bytes, sender: int, file: tuple[int, int], nbytes: int, read_only: bool
) -> Tensor:
    try:
        descriptor = descriptors.fetch(address, key, sender)
    except descriptors.SenderGone:
        known = _C._find_shared(*file, 0)  # it may have come from here
        if known is None:
            raise
        return known
    return _C._adopt_descriptor(descriptor, nbytes, read_only)


# ---- the end of a process ----

_LINGER = 10.0  # seconds


def wait_for_receivers() -> None:
    """At the end of a child: what it sent last is still in its hands, so it waits to be fetched.

    Not longer than 10 seconds, and not when the parent has ended: then nobody may come.
    """
    parent = multiprocessing.parent_process()
    end = time.monotonic() + _LINGER
    pause = 0.0005
    while descriptors.waiting() or _C._shared_awaited():
        if parent is None or not parent.is_alive() or time.monotonic() > end:
            return
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


def end_of_child() -> None:
    """Waits for receivers, then leaves the heaps: a child ends without freeing its objects."""
    wait_for_receivers()
    _C._leave_shared()
