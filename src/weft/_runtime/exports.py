"""`__all__` of packages: programs look there for all optimizers, layers or distributions.

A package writes each name that it exports once, as `from ... import name as name`: a type checker
takes it for public so, and `list_exports` at run time. One that exports all that its modules define
takes it by `from ... import *`, and ends with `list_own`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

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
    """As list_exports, after `*` of the package's modules: what these import goes again."""
    inside = f"{names['__name__']}."
    for name, value in [*names.items()]:
        place = value.__name__ if isinstance(value, ModuleType) else _module_of(value)
        if name[0] != "_" and not place.startswith(inside):
            del names[name]
    list_exports(names, also)


def _module_of(value: Any) -> str:
    return getattr(value, "__module__", None) or ""
