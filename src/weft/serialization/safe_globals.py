"""Classes and functions of a program that `load` may call, beside those that it knows."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from weft.nn import functional, modules
from weft.nn.modules.module import Module
from weft.serialization.names import global_name

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals"]

_allowed: dict[str, Any] = {}
_given: list[Any] = []


def _named(item: Any) -> tuple[str, Any]:
    """The name of a global in a pickle, and its value."""
    if isinstance(item, tuple):
        if len(item) != 2 or not callable(item[0]) or not isinstance(item[1], str):
            raise ValueError(f"add_safe_globals: expected (callable, name), got {item!r}")
        return item[1], item[0]
    if not callable(item):
        raise ValueError(f"add_safe_globals: expected classes and functions, got {item!r}")
    return ".".join(global_name(item)), item


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Allows `load` to make objects of these classes and to call these functions.

    A pair (callable, "module.name") allows it under another name. Loading then runs their code:
    __new__, __setstate__ and, where a pickle asks for a call, the callable itself. ValueError for
    what is no callable.

    >>> import argparse
    >>> with weft.serialization.safe_globals([argparse.Namespace]):
    ...     weft.serialization.get_safe_globals()
    [<class 'argparse.Namespace'>]
    """
    for item in list(safe_globals):
        name, value = _named(item)
        if _allowed.get(name) is not value:
            _allowed[name] = value
            _given.append(item)


def get_safe_globals() -> list[Any]:
    """All that is allowed, as it was given."""
    return list(_given)


def clear_safe_globals() -> None:
    """Allows nothing any more."""
    _allowed.clear()
    _given.clear()


class safe_globals:
    """add_safe_globals for a block; afterwards what was allowed before it is."""

    def __init__(self, safe_globals: Iterable[Any]) -> None:
        self._globals = list(safe_globals)

    def __enter__(self) -> None:
        self._before = get_safe_globals()
        add_safe_globals(self._globals)

    def __exit__(self, *error: object) -> None:
        clear_safe_globals()
        add_safe_globals(self._before)


def allowed(module: str, name: str) -> Any:
    """What a global of a pickle stands for by the program's leave; None without it."""
    return _allowed.get(f"{module}.{name}")


def own(module: str, name: str) -> Any:
    """The layer or activation of the library that PyTorch has under this name, or None."""
    if module in ("torch.nn.functional", "torch._C._nn"):
        return getattr(functional, name) if name in _ACTIVATIONS else None
    if not module.startswith("torch.nn.modules."):
        return None
    same = sys.modules.get(f"weft{module.removeprefix('torch')}")
    found = getattr(modules, name, None) or getattr(same, name, None)
    return found if isinstance(found, type) and _is_own(found) else None


_ACTIVATIONS = ("relu", "gelu", "silu", "elu", "leaky_relu", "mish", "softplus", "hardswish")


def _is_own(kind: type) -> bool:
    """Whether it is a class of the library's layers, or of what they are told."""
    inside = kind.__module__.startswith("weft.nn.modules.")
    return inside and issubclass(kind, (Module, modules.LinearCrossEntropyOptions))


def is_allowed_object(value: Any) -> bool:
    """Whether a value is of a class that was allowed: it may be given its state."""
    return any(type(value) is kind for kind in _allowed.values()) or _is_own(type(value))
