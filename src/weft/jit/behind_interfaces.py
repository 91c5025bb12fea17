"""Functions that take objects behind interfaces: their programs know the classes of those that
they have met. A class that comes later is compiled as the interface asks, and the program is made
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from weft.jit.execution import LOCK, executable
from weft.jit.frontend.types.classes import class_info, implement
from weft.jit.ir import Function
from weft.jit.ir import types as ty


def interfaces_of(function: Function) -> list[ty.InterfaceType]:
    """The interfaces among the types of the parameters, and inside of these."""
    found: list[ty.InterfaceType] = []
    waiting: list[ty.Type] = [each.type for each in function.schema.args]
    while waiting:
        each = waiting.pop()
        waiting += each.children
        if isinstance(each, ty.InterfaceType) and each not in found:
            found.append(each)
    return found


class ByClasses:
    """A function, ready to be called with objects of any class that implements `interfaces`."""

    def __init__(self, function: Function, interfaces: list[ty.InterfaceType]) -> None:
        self._function, self._interfaces = function, interfaces
        self._known: list[ty.ClassType] = []
        self._run: Callable[..., Any] = executable(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        met = [each for each in _classes_in([args, kwargs]) if each not in self._known]
        if met:
            with LOCK:
                self._add(met)
        return self._run(*args, **kwargs)

    def _add(self, met: list[ty.ClassType]) -> None:
        for each in met:
            for interface in self._interfaces:
                implement(each, interface)
        self._known += dict.fromkeys(met)
        self._run = executable(self._function, self._known)


def _classes_in(given: Any) -> Iterator[ty.ClassType]:
    """The classes of the compiled modules and objects in what a function is given."""
    if isinstance(given, list | tuple):
        for each in given:
            yield from _classes_in(each)
    elif isinstance(given, dict):
        yield from _classes_in(list(given.values()))
    elif "_jit_info" in getattr(given, "__dict__", ()):
        yield given._jit_info.type
    elif hasattr(type(given), "_from_jit"):
        yield class_info(type(given)).type
