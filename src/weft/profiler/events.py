"""Events of a profile, their averages by name, and the table of these."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

from weft._runtime import lazy

gzip = lazy.module("gzip")
json = lazy.module("json")  # every program finds this file


class Interval(NamedTuple):
    """A time range in microseconds."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """How long it is."""
        return self.end - self.start


class _Times:
    """What events and averages of them share. Times are in microseconds; a device has none."""

    count: int = 1
    cpu_time_total: float
    self_cpu_time_total: float
    is_async = is_remote = is_legacy = False
    device_time = device_time_total = self_device_time_total = 0
    cuda_time = cuda_time_total = self_cuda_time_total = 0
    cpu_memory_usage = self_cpu_memory_usage = device_memory_usage = flops = 0

    @property
    def cpu_time(self) -> float:
        """The average of one call."""
        return self.cpu_time_total / self.count if self.count else 0.0


class Event(_Times):
    """One call of an operator, or one run of a marked part."""

    id: int = 0
    cpu_parent: Event | None = None

    def __init__(
        self,
        name: str,
        shapes: Any = (),
        start_ns: int = 0,
        end_ns: int = 0,
        thread: int | None = None,
        is_user_annotation: bool = False,
    ) -> None:
        self.name, self.input_shapes = name, shapes
        self.start_ns, self.end_ns = start_ns, end_ns
        self.thread = threading.get_native_id() if thread is None else thread
        self.process = os.getpid()
        self.is_user_annotation = is_user_annotation
        self.cpu_children: list[Event] = []

    key = property(lambda self: self.name, doc="The name.")

    @property
    def time_range(self) -> Interval:
        """When it ran."""
        return Interval(self.start_ns / 1e3, self.end_ns / 1e3)

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """How long it ran."""
        return (self.end_ns - self.start_ns) / 1e3

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """The same without what ran inside of it."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    def __repr__(self) -> str:
        return f"<Event {self.name} cpu_time={self.cpu_time_total:.3f}us>"


def nested(events: Iterable[Event]) -> list[Event]:
    """Events that have ended, in the order in which they began, each inside of the one of its
    thread that was open all the time."""
    found = sorted(events, key=lambda event: (event.start_ns, -event.end_ns))
    stacks: dict[int, list[Event]] = {}
    for id, event in enumerate(found):
        event.id = id
        stack = stacks.setdefault(event.thread, [])
        while stack and stack[-1].end_ns < event.end_ns:
            stack.pop()
        event.cpu_parent, event.cpu_children = stack[-1] if stack else None, []
        if event.cpu_parent is not None:
            event.cpu_parent.cpu_children.append(event)
        stack.append(event)
    return found


class Average(_Times):
    """All events of a name, and of the same shapes where these were asked for."""

    def __init__(self, key: str, input_shapes: Any = None) -> None:
        self.key, self.input_shapes = key, input_shapes
        self.count, self.cpu_time_total, self.self_cpu_time_total = 0, 0.0, 0.0
        self.is_user_annotation = False

    def add(self, event: Any) -> Average:
        """Counts an event, or an average, in."""
        self.count += event.count
        self.self_cpu_time_total += event.self_cpu_time_total
        if not _inside_itself(event):
            self.cpu_time_total += event.cpu_time_total
        self.is_user_annotation = event.is_user_annotation
        return self

    def __repr__(self) -> str:
        return f"<Average {self.key} count={self.count} cpu_time={self.cpu_time:.3f}us>"


def _inside_itself(event: Any) -> bool:
    """Whether an event of the same name is around it, whose time has its own already."""
    parent = getattr(event, "cpu_parent", None)
    while parent is not None:
        if parent.name == event.name:
            return True
        parent = parent.cpu_parent
    return False


class EventList(list):
    """Events or averages."""

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all, counted once."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """Averages by name, in the order in which names first appear."""
        found: dict[Any, Average] = {}
        for event in self:
            shapes = event.input_shapes if group_by_input_shape else None
            average = found.setdefault((event.key, repr(shapes)), Average(event.key, shapes))
            average.add(event)
        return EventList(found.values())

    def total_average(self) -> Average:
        """One average of all."""
        total = Average("Total")
        for event in self:
            total.add(event)
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """The times as text. sort_by: cpu_time, cpu_time_total, self_cpu_time_total, count; times
        of another device keep the order. AttributeError for what events have not."""
        rows: Iterable[Any] = self
        if top_level_events_only:
            rows = (event for event in rows if getattr(event, "cpu_parent", None) is None)
        if sort_by is not None:
            rows = sorted(rows, key=lambda event: getattr(event, sort_by), reverse=True)
        whole = self.self_cpu_time_total
        lines = [_row(event, whole, max_name_column_width) for event in rows]
        lines = lines[:row_limit] if row_limit >= 0 else lines
        text = _aligned([_HEAD, *lines])
        title = "" if header is None else f"{header}\n"
        return f"{title}{text}\nSelf CPU time total: {_time(whole)}\n"

    def export_chrome_trace(self, path: str) -> None:
        """Writes events as Chrome's chrome://tracing and Perfetto read them; ".gz" compresses."""
        write_trace(path, self, {})

    def __str__(self) -> str:
        return self.table()


_HEAD = (
    *("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"),
    *("# of Calls", "Input Shapes"),
)


def _row(event: Any, whole: float, width: int) -> tuple[str, ...]:
    own, total = event.self_cpu_time_total, event.cpu_time_total
    name = event.key if len(event.key) <= width else event.key[: width - 3] + "..."
    shares = [f"{100 * part / whole if whole else 0:.2f}%" for part in (own, total)]
    shapes = str(event.input_shapes) if event.input_shapes else ""
    times = shares[0], _time(own), shares[1], _time(total), _time(event.cpu_time)
    return (name, *times, str(event.count), shapes)


def _time(microseconds: float) -> str:
    for unit, scale in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= scale:
            return f"{microseconds / scale:.3f}{unit}"
    return f"{microseconds:.3f}us"


def _aligned(rows: list[tuple[str, ...]]) -> str:
    """Columns between lines; a column without any text is left out."""
    columns = [column for column in zip(*rows) if len(rows) == 1 or any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    line = "  ".join("-" * width for width in widths)
    texts = ["  ".join(cell.rjust(width) for cell, width in zip(r, widths)) for r in zip(*columns)]
    return "\n".join([line, texts[0], line, *texts[1:], line])


def write_trace(path: str, events: Iterable[Event], metadata: dict[str, Any]) -> None:
    """A trace of events in the format of Chrome, times in microseconds."""
    content = {
        "schemaVersion": 1,
        **metadata,
        "traceEvents": [
            {
                "ph": "X",
                "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
                "name": event.name,
                "pid": event.process,
                "tid": event.thread,
                "ts": event.time_range.start,
                "dur": event.cpu_time_total,
                "args": {"Ev Idx": event.id, "Input Dims": event.input_shapes or []},
            }
            for event in events
        ],
    }
    opener: Any = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "wt", encoding="utf-8") as file:
        json.dump(content, file)
