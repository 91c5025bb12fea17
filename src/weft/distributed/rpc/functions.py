"""What marks functions for calls from other processes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def async_execution(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function that returns a weft.futures.Future: a caller in another process gets its
    value when it is there, and no thread waits for it here. staticmethod and classmethod go
    outside. The caller gets a RuntimeError for other results.

    >>> from weft.distributed import rpc
    >>> @rpc.functions.async_execution
    ... def later() -> weft.futures.Future[int]:
    ...     future: weft.futures.Future[int] = weft.futures.Future()
    ...     future.set_result(3)
    ...     return future
    >>> later().wait()
    3
    """

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    vars(run)["_wrapped_async_rpc_function"] = fn
    return run


def is_async(function: Any) -> bool:
    """Whether it was marked; a method by its function."""
    return hasattr(function, "_wrapped_async_rpc_function")
