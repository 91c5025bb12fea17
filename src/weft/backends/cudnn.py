"""Flags of cuDNN, which this build does not have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from weft._runtime.absent import is_available as is_available

enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
allow_tf32 = True


def version() -> int | None:
    """None."""
    return None


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """Sets the flags for a block.

    >>> with weft.backends.cudnn.flags(deterministic=True):
    ...     weft.backends.cudnn.deterministic
    True
    """
    given = dict(locals())
    before = {name: globals()[name] for name in given}
    globals().update(given)
    try:
        yield
    finally:
        globals().update(before)
