"""weft.profiler under its older name."""

from __future__ import annotations

from typing import Any

from weft.profiler import EventList, record_function
from weft.profiler.events import Average
from weft.profiler.recorder import Recorder

__all__ = ["EventList", "profile", "record_function"]


class profile:
    """Records the operators of a block, as weft.profiler.profile does; without steps.

    enabled=False records nothing. Arguments for other devices, memory and stacks change nothing.

    >>> with weft.autograd.profiler.profile() as prof:
    ...     _ = weft.ones(2) + 1
    >>> prof.key_averages()[1].count
    1
    """

    def __init__(self, enabled: bool = True, *, record_shapes: bool = False, **others: Any) -> None:
        self.enabled = enabled
        self.function_events = EventList()
        self._recorder = Recorder(record_shapes)

    def __enter__(self) -> profile:
        if self.enabled:
            self._recorder.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.enabled:
            self._recorder.stop()
            self.function_events = EventList(self._recorder.events)

    def key_averages(self, group_by_input_shape: bool = False, *args: Any) -> EventList:
        """Averages by name."""
        return self.function_events.key_averages(group_by_input_shape)

    def total_average(self) -> Average:
        """One average of all."""
        return self.function_events.total_average()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """The events as text: the arguments of EventList.table."""
        return self.function_events.table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events for chrome://tracing and Perfetto."""
        self.function_events.export_chrome_trace(path)

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, in microseconds."""
        return self.function_events.self_cpu_time_total
