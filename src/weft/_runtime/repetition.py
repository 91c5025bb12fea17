"""Blocks that a part of a program runs in, and that it needs again when it runs again.

Backward runs a checkpointed part of a model a second time, when the blocks around its first run
have ended. A block that changes the meaning of the code inside, as gathered parameters do, says
here how to enter it again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager

Block = Callable[[], AbstractContextManager[None]]


class _Around(threading.local):
    """The blocks that run in this thread, the outermost first, and whether code is repeated."""

    blocks: tuple[Block, ...] = ()
    is_repetition = False


_around = _Around()


@contextmanager
def repeated_in(again: Block) -> Iterator[None]:
    """A block that the parts checkpointed inside enter by `again()` when they run again."""
    before = _around.blocks
    _around.blocks = (*before, again)
    try:
        yield
    finally:
        _around.blocks = before


def blocks_around() -> tuple[Block, ...]:
    """The blocks to enter again around a repetition of code that runs now."""
    return _around.blocks


def is_repetition() -> bool:
    """Whether the code that runs now runs again, for backward."""
    return _around.is_repetition


@contextmanager
def repetition(blocks: Sequence[Block]) -> Iterator[None]:
    """Repeats its body in these blocks and in no others."""
    before = _around.blocks, _around.is_repetition
    _around.blocks, _around.is_repetition = tuple(blocks), True
    try:
        with ExitStack() as stack:
            for again in blocks:
                stack.enter_context(again())
            yield
    finally:
        _around.blocks, _around.is_repetition = before
