"""Where a program's time goes: `profile` and its schedules, marks of a program's parts.

>>> with weft.profiler.record_function("doctest"):
...     _ = weft.ones(2) + 1
>>> weft.profiler.regions()["doctest"].count
1
"""

from typing import TYPE_CHECKING

from weft._runtime import lazy
from weft.profiler.regions import Region, record_function, regions, reset

if TYPE_CHECKING:
    from weft.profiler.events import EventList
    from weft.profiler.profiler import (
        ProfilerAction,
        ProfilerActivity,
        profile,
        schedule,
        supported_activities,
        tensorboard_trace_handler,
    )

__all__ = [
    "EventList",
    "ProfilerAction",
    "ProfilerActivity",
    "Region",
    "kineto_available",
    "profile",
    "record_function",
    "regions",
    "reset",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

# Programs need the marks alone: the rest waits, with the sockets and archives that traces need.
_MODULE_OF = dict.fromkeys((*__all__, "profiler"), "weft.profiler.profiler") | dict.fromkeys(
    ("EventList", "events"), "weft.profiler.events"
)
__getattr__ = lazy.names("weft.profiler", _MODULE_OF)


def kineto_available() -> bool:
    """True: traces of operators are there. PyTorch answers for the library that makes its own."""
    return True
