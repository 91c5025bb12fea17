"""The names that pickles have for classes and functions: PyTorch's for what PyTorch has."""

from __future__ import annotations

import functools
import sys
from typing import Any

from weft.compat import names


def global_name(value: Any) -> tuple[str, str]:
    """The module of a class or function, and its name there. TypeError for what has no name.

    >>> global_name(weft.nn.Linear), global_name(weft.nn.functional.relu)
    (('torch.nn.modules.linear', 'Linear'), ('torch.nn.functional', 'relu'))
    """
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    for place in (module, "weft.nn.functional", "weft"):
        if place is not None and name is not None and _found(place, name) is value:
            return _torch_place(place, name)
    raise TypeError(
        f"save: expected a class or function at the top of a module, got {module}.{name}"
    )


def _found(module: str, name: str) -> Any:
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


@functools.cache
def _torch_place(module: str, name: str) -> tuple[str, str]:
    """Where PyTorch has an object of weft: at the same place, or beside it in the same package, in
    the file whose name is most alike."""
    if module.partition(".")[0] != "weft":
        return module, name
    same = f"torch{module.removeprefix('weft')}"
    package = same.rpartition(".")[0]
    beside = [f"{package}.{child}" for child in names.children(package)]
    modules = [place for place in (same, *beside, package) if name in names.names(place)]
    if not modules:
        return module, name
    return max(modules, key=lambda place: _common(place, same)), name


def _common(a: str, b: str) -> int:
    """How many characters two names begin with alike."""
    return next((i for i, pair in enumerate(zip(a, b)) if pair[0] != pair[1]), min(len(a), len(b)))
