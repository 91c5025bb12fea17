"""Errors of a program's main function.

>>> from weft.distributed.elastic.multiprocessing.errors import record
>>> @record
... def main(steps):
...     return steps + 1
>>> main(2)
3
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["record"]


def record(fn: Callable[..., Any], error_handler: Any = None) -> Callable[..., Any]:
    """The function, as programs for torchrun decorate their main one.

    Its errors go on: other ranks raise one that names them, so there is no file of errors to write.
    SystemExit with the status 0 is the end of the function, not of the program.
    """

    @functools.wraps(fn)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except SystemExit as end:
            if end.code != 0:
                raise
            return None

    return recorded
