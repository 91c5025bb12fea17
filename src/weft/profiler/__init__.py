"""Where a program's time goes: `profile` and its schedules, marks of a program's parts.

>>> with weft.profiler.record_function("doctest"):
...     _ = weft.ones(2) + 1
>>> weft.profiler.regions()["doctest"].count
1
"""

from weft.profiler.events import EventList
from weft.profiler.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)
from weft.profiler.regions import Region, record_function, regions, reset

__all__ = [
    "EventList",
    "ProfilerAction",
    "ProfilerActivity",
    "Region",
    "profile",
    "record_function",
    "regions",
    "reset",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
