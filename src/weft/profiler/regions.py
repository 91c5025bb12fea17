"""Marks of a program's parts: counted at all times, and shown by a profile that is under way."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from weft.profiler.recorder import active_recorder

__all__ = ["Region", "record_function", "regions", "reset"]


class Region(NamedTuple):
    """What is known of a marked part: how often it ran, and for how many seconds in all."""

    count: int  # type: ignore[assignment]
    seconds: float


_regions: dict[str, Region] = {}


def regions() -> dict[str, Region]:
    """The parts that have run since the start or `reset`, by name."""
    return dict(_regions)


def reset() -> None:
    """Forgets all parts."""
    _regions.clear()


class record_function:
    """Marks a block, or as a decorator a function, by name. args: a text, kept."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._starts: list[float] = []

    def __enter__(self) -> record_function:
        recorder = active_recorder()
        if recorder is not None:
            recorder.begin(self.name, is_user_annotation=True)
        self._starts.append(time.perf_counter())
        return self

    def __exit__(self, *exception: object) -> None:
        seconds = time.perf_counter() - self._starts.pop()
        recorder = active_recorder()
        if recorder is not None:
            recorder.end(self.name)
        count, before = _regions.get(self.name, Region(0, 0.0))
        _regions[self.name] = Region(count + 1, before + seconds)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        name = self.name

        @functools.wraps(function)
        def marked(*args: Any, **kwargs: Any) -> Any:
            with record_function(name):
                return function(*args, **kwargs)

        return marked
