"""The mark of Python-written functions whose control flow depends on sizes or values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from weft import _C

F = TypeVar("F", bound=Callable[..., Any])


def data_dependent(function: F) -> F:
    """Marks such a function: a trace records a call of its program (weft.jit.tracing.calls)
    rather than the operators of the branch that the example took.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = _C._recorder()
        if recorder is None:
            return function(*args, **kwargs)
        return recorder.override("library", (call, args, kwargs), {})

    call._weft_unwrapped = function  # type: ignore[attr-defined]
    return cast("F", call)
