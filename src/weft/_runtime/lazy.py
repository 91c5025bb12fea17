"""Modules that are imported when something of them is first used.

`import weft` takes 20 ms because most of it waits for a use. A package that waits has a
`__getattr__` of `names`, or one that calls `find`; a file says at its head what it waits for:
`graph_view = lazy.module("weft.jit.graph_view")`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def find(package: str, name: str, module: str | None) -> Any:
    """The value of `name` in a package: the module itself, or what it defines under that name, kept
    in the package from now on. AttributeError where no module has it.

    >>> find("weft", "fft", "weft.fft").__name__
    'weft.fft'
    >>> find("weft", "vstack", "weft._functions.stacking").__name__
    'vstack'
    """
    if module is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    if module == f"{package}.{name}":
        return importlib.import_module(module)
    found = value(module, name)
    setattr(sys.modules[package], name, found)
    return found


def names(package: str, module_of: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package, by the module of each name that it finds at first use."""
    return lambda name: find(package, name, module_of.get(name))


def value(module: str, name: str) -> Any:
    """What a module defines under a name."""
    return getattr(importlib.import_module(module), name)


class module:
    """A module that is imported at the first use of something in it.

    >>> module("weft.fft").fftfreq(4, 0.25)
    tensor([ 0.,  1., -2., -1.])
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # who looks at all names of a file imports nothing
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return value(self.__name__, name)
