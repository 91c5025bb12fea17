"""`__all__` of packages: programs look there for all optimizers, layers or distributions.

A package writes each name that it exports once, as `from ... import name as name`: a type checker
takes it for public so, and `list_exports` at run time. One that exports all that its modules define
takes it by `from ... import *`, and ends with `take_own`; a module that exports all that it defines
ends with `list_own`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, TypeVar

_OTHERS = ("Any", "NoReturn", "TYPE_CHECKING", "annotations")  # what packages import for themselves


def list_exports(names: dict[str, Any], also: str = "") -> None:
    """Sets `__all__` of a package: its public names but for modules, and those in `also`.

    >>> names = {"relu": weft.relu, "fft": weft.fft, "_hidden": 1}
    >>> list_exports(names, "fft")
    >>> names["__all__"]
    ['fft', 'relu']
    """
    public = (
        name
        for name, value in names.items()
        if name[0] != "_" and name not in _OTHERS and not isinstance(value, ModuleType)
    )
    names["__all__"] = sorted({*public, *also.split()})


def list_own(names: dict[str, Any], also: str = "") -> None:
    """Sets `__all__` of a module, or of a package with its modules: the public names of what it
    defines, and those in `also`."""
    own = (
        name
        for name, value in names.items()
        if name[0] != "_" and not isinstance(value, ModuleType) and _is_own(names, value)
    )
    names["__all__"] = sorted({*own, *also.split()})


def take_own(names: dict[str, Any], also: str = "") -> None:
    """As list_own, of a package that took all of its modules by `*`: what these import goes."""
    for name, value in [*names.items()]:
        if name[0] != "_" and name not in also.split() and not _is_own(names, value):
            del names[name]
    list_own(names, also)


def _is_own(names: dict[str, Any], value: Any) -> bool:
    place = getattr(value, "__name__" if isinstance(value, ModuleType) else "__module__", None)
    inside = place == names["__name__"] or (place or "").startswith(names["__name__"] + ".")
    return inside and not isinstance(value, TypeVar)
