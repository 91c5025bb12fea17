"""What a profile records: when each operator began and ended."""

from __future__ import annotations

import threading
import time
from typing import Any

from weft._C import Tensor, _start_profile, _stop_profile
from weft._runtime import torch_function
from weft.profiler.events import Event, nested

_active = threading.local()


def active_recorder() -> Recorder | None:
    """The recorder of this thread that was started last."""
    stack = getattr(_active, "stack", None)
    return stack[-1] if stack else None


class Recorder:
    """Between start and stop, records what Python calls in its thread, and what runs below Python
    in all threads: functions and operators of programs, nodes of backward passes.

    A mode of `weft.overrides`, whose `__torch_function__` the extension calls for each operator.
    """

    def __init__(self, record_shapes: bool = False) -> None:
        self.events: list[Event] = []
        self._record_shapes = record_shapes
        self._open: list[Event] = []
        self._first = 0

    def start(self) -> None:
        """Begins recording."""
        if not hasattr(_active, "stack"):
            _active.stack = []
        _active.stack.append(self)
        torch_function.push_mode(self)
        self._first = _start_profile()

    def stop(self) -> None:
        """Ends it, and what is still open. RuntimeError while a mode is on that began inside."""
        if torch_function.modes()[-1:] != [self]:
            raise RuntimeError("profile: expected an end inside of the modes that were on before")
        below = _stop_profile(self._first)
        torch_function.pop_mode()
        _active.stack.remove(self)
        while self._open:
            self._close(self._open[-1])
        for name, shapes, *times in below:
            self.events.append(Event(name, shapes if self._record_shapes else (), *times))
        self.events = nested(self.events)

    def begin(self, name: str, shapes: Any = (), is_user_annotation: bool = False) -> None:
        """Something begins inside of what is open."""
        event = Event(name, shapes, is_user_annotation=is_user_annotation)
        self.events.append(event)
        self._open.append(event)
        event.start_ns = time.perf_counter_ns()

    def end(self, name: str) -> None:
        """What began last under this name ends; nothing, where it began before the recording."""
        for event in reversed(self._open):
            if event.name == name:
                return self._close(event)

    def _close(self, event: Event) -> None:
        event.end_ns = time.perf_counter_ns()
        self._open.remove(event)

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        if name in ("__get__", "__set__", "__delete__", ""):  # attributes
            return func(*args, **(kwargs or {}))
        name = "autograd::backward" if name == "backward" else f"aten::{name}"
        self.begin(name, _shapes(args) if self._record_shapes else ())
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.end(name)


def _shapes(args: Any) -> list[list[int]]:
    """The sizes of each argument; those of no tensor are empty."""
    return [list(value.shape) if isinstance(value, Tensor) else [] for value in args]
