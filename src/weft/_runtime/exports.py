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
    names["__all__"] = sorted([*_own(names), *also.split()])


def take_own(names: dict[str, Any], also: str = "") -> None:
    """As list_own, of a package that took all of its modules by `*`: what these import goes."""
    own, inside = _own(names), f"{names['__name__']}."
    kept = {*own, *also.split()}
    for name in [name for name in names if name[0] != "_" and name not in kept]:
        if not getattr(names[name], "__name__", "").startswith(inside):  # no module of its own
            del names[name]
    names["__all__"] = sorted(kept)


def _own(names: dict[str, Any]) -> list[str]:
    home = names["__name__"]
    inside = f"{home}."
    own = []
    for name, value in names.items():
        if name[0] != "_":
            place = getattr(value, "__module__", None) or ""
            if (place == home or place.startswith(inside)) and not isinstance(value, TypeVar):
                own.append(name)
    return own
