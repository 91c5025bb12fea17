"""profile: records parts of a program by a schedule, and hands each recording to a function."""

from __future__ import annotations

import enum
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from weft._runtime import lazy
from weft.profiler.events import EventList, write_trace
from weft.profiler.recorder import Recorder
from weft.profiler.regions import record_function

json = lazy.module("json")  # every program finds this file


class ProfilerActivity(enum.Enum):
    """What is recorded; weft records the CPU."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a schedule says of a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """The activities that this build records."""
    return {ProfilerActivity.CPU}


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """A function from the number of a step to an action: after skip_first steps, cycles of wait,
    warmup and active steps, at most `repeat` of them unless that is 0. skip_first_wait: the first
    cycle does not wait. ValueError for negative counts or active = 0.

    >>> plan = weft.profiler.schedule(wait=1, warmup=0, active=1)
    >>> plan(0).name, plan(1).name
    ('NONE', 'RECORD_AND_SAVE')
    """
    counts = wait, warmup, active, repeat, skip_first
    if min(counts) < 0 or active == 0:
        raise ValueError(f"schedule: expected counts of at least 0 and active steps, got {counts}")

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise ValueError(f"schedule: expected a step of at least 0, got {step}")
        if step < skip_first:
            return ProfilerAction.NONE
        step = step - skip_first + (wait if skip_first_wait else 0)
        cycle, within = divmod(step, wait + warmup + active)
        if (repeat > 0 and cycle >= repeat) or within < wait:
            return ProfilerAction.NONE
        if within < wait + warmup:
            return ProfilerAction.WARMUP
        last = within == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[Any], None]:
    """A function for on_trace_ready that writes a trace into a folder, under a name of its own.
    use_python_export changes nothing: traces are written by Python."""

    def handle(prof: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        suffix = ".gz" if use_gzip else ""
        name = f"{worker}.{time.time_ns()}.pt.trace.json{suffix}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handle


class profile:
    """Records the operators that this thread calls, marks (`record_function`), and in all threads
    the functions, operators and fusion groups of programs and the nodes of backward passes, with
    real times.

    - schedule: which steps are recorded; without one all is. `step()` begins the next step.
    - on_trace_ready: called with this object whenever a recording is complete.
    - record_shapes: events have the sizes of their arguments.

    Other devices, memory, stacks, modules and floating-point operations are not recorded:
    activities that ask for them, profile_memory, with_stack, with_flops and with_modules change
    nothing.

    >>> x = weft.ones(2, requires_grad=True)
    >>> with weft.profiler.profile() as prof:
    ...     (x * 2).sum().backward()
    >>> [event.key for event in prof.key_averages()][:3]
    ['aten::mul', 'aten::sum', 'autograd::backward']
    >>> [event.key for event in prof.key_averages()][3:]
    ['SumBackward0', 'MulBackward0', 'torch::autograd::AccumulateGrad']
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
    ) -> None:
        self.activities = supported_activities() if activities is None else set(activities)
        if not self.activities or not all(isinstance(a, ProfilerActivity) for a in self.activities):
            raise ValueError(f"profile: expected activities, got {activities!r}")
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self._recorder: Recorder | None = None
        self._mark: record_function | None = None
        self._events = EventList()
        self._metadata: dict[str, Any] = {}

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begins with step 0."""
        self._change(self._planned())

    def stop(self) -> None:
        """Ends, and hands over what is being recorded."""
        self._change(ProfilerAction.NONE)

    def step(self) -> None:
        """The next step begins."""
        self.step_num += 1
        self._change(self._planned())

    def _planned(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self.schedule is None else self.schedule(self.step_num)

    def _change(self, action: ProfilerAction) -> None:
        before, self.current_action = self.current_action, action
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
            self._mark = None
        if self._recorder is not None and (
            before is ProfilerAction.RECORD_AND_SAVE or action not in _RECORDS
        ):
            self._recorder.stop()
            self._events, self._recorder = EventList(self._recorder.events), None
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        if action in _RECORDS:
            if self._recorder is None:
                self._recorder = Recorder(self.record_shapes)
                self._recorder.start()
            if self.schedule is not None:
                self._mark = record_function(f"ProfilerStep#{self.step_num}")
                self._mark.__enter__()

    def events(self) -> EventList:
        """What was recorded last, in the order in which it began."""
        return EventList(self._events if self._recorder is None else self._recorder.events)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, *args: Any
    ) -> EventList:
        """Averages by name, with `table(sort_by=...)`."""
        return self.events().key_averages(group_by_input_shape)

    def export_chrome_trace(self, path: str) -> None:
        """Writes what was recorded last for chrome://tracing and Perfetto; ".gz" compresses."""
        write_trace(path, self.events(), self._metadata)

    def add_metadata(self, key: str, value: str) -> None:
        """A text beside the events of a trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """The same, of a value written in JSON."""
        self._metadata[key] = json.loads(value)
