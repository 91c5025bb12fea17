"""Seeding and the state of the default generator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weft import _C
from weft._runtime.exports import list_own as _list_own

default_generator = _C.default_generator
manual_seed = _C.manual_seed
seed = _C.seed
initial_seed = _C.initial_seed
get_rng_state = _C.get_rng_state
set_rng_state = _C.set_rng_state


@contextmanager
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """Runs the block and then puts the default generator back to where it stood.

    `devices` and `device_type` name accelerators whose generators are forked as well; there are
    none here, so that an empty or absent list is all that is taken. enabled=False does nothing.

    >>> before = weft.get_rng_state()
    >>> with weft.random.fork_rng():
    ...     _ = weft.rand(3)
    >>> weft.equal(weft.get_rng_state(), before)
    True
    """
    if devices:
        raise RuntimeError(f"{_caller}: expected no {_devices_kw} on a CPU build, got {devices!r}")
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


_list_own(vars(), "default_generator get_rng_state initial_seed manual_seed seed set_rng_state")
