"""Python's multiprocessing, whose queues, pipes, pools and arguments share the memory of tensors.

Everything of the standard library's `multiprocessing` is here under its own name. A tensor that is
sent becomes a handle of under a kilobyte; sender and receiver then see the same bytes. From the
first import on that holds for the standard library's own names too.

>>> import weft
>>> import weft.multiprocessing as mp
>>> x = weft.zeros(3)
>>> queue = mp.SimpleQueue()
>>> queue.put(x)
>>> y = queue.get()
>>> x.is_shared(), y.data_ptr() == x.data_ptr()  # what comes back is recognised
(True, True)

How the memory moves, the strategies and their limits: docs/sharing.md.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403
from multiprocessing import util as _util

from weft.multiprocessing import sharing
from weft.multiprocessing.contexts import DEFAULT as _DEFAULT
from weft.multiprocessing.reductions import init_reductions
from weft.multiprocessing.sharing import (
    get_all_sharing_strategies,
    get_sharing_strategy,
    set_sharing_strategy,
)
from weft.multiprocessing.spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *multiprocessing.__all__,
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "init_reductions",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

for _name in (
    "Array", "Barrier", "BoundedSemaphore", "Condition", "Event", "JoinableQueue", "Lock",
    "Manager", "Pool", "Queue", "RLock", "RawArray", "RawValue", "Semaphore", "SimpleQueue",
    "Value", "get_context",
):  # fmt: skip
    globals()[_name] = getattr(_DEFAULT, _name)


def _at_end(_: object = None) -> None:
    """In a child: after the feeder threads of queues have written (their priority is -5)."""
    _util.Finalize(None, sharing.end_of_child, exitpriority=-1000)


init_reductions()
_util.register_after_fork(init_reductions, _at_end)
# A child of spawn runs no handlers of fork, and may import this before it knows its parent.
if multiprocessing.parent_process() is not None or hasattr(
    multiprocessing.current_process(), "_inheriting"
):
    _at_end()
