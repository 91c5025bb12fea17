"""Functions of weft that decide by the sizes or values of what they are given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from weft import _C

F = TypeVar("F", bound=Callable[..., Any])


def decides(function: F) -> F:
    """Marks such a function. A trace records a call of its program (weft.jit.tracing.library),
    which decides in every call; else it would have what was decided for the example.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = _C._recorder()
        if recorder is None:
            return function(*args, **kwargs)
        return recorder.face("library", (call, args, kwargs), {})

    call._weft_decides = function  # type: ignore[attr-defined]
    return cast("F", call)
