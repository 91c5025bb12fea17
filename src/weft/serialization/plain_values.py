"""Values of Python's standard library in pickles: queues, dates, paths, numbers, namespaces.

They are allowed with `weights_only=False`, as in PyTorch. Their constructors get what the classes
themselves write, checked, so that none of them runs for long or calls anything.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import fractions
import pathlib
import types
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any

from weft.serialization.errors import LoadError
from weft.serialization.unpickle import Callee, ObjectType


def _made(kind: Callable[..., Any], *accepted: tuple[type, ...]) -> Callable[..., Any]:
    """The class, called with as many arguments as it is given, each of one of these types."""

    def make(*arguments: Any) -> Any:
        fits = len(arguments) <= len(accepted)
        if not fits or any(type(a) not in types for a, types in zip(arguments, accepted)):
            raise LoadError(f"load: expected the parts of a {kind.__name__}, got something else")
        return kind(*arguments)

    make.__name__ = kind.__name__
    return make


def _deque(items: Any = (), length: Any = None) -> deque[Any]:
    """Empty, to be filled."""
    if items != () or type(length) not in (int, type(None)):
        raise LoadError("load: expected a deque to be made empty, got something else")
    return deque(maxlen=length)


def _frozenset(check_key: Callable[[Any], None], elements: Any) -> frozenset[Any]:
    if type(elements) is not list:
        raise LoadError("load: expected the elements of a frozenset, got something else")
    for element in elements:
        check_key(element)
    return frozenset(elements)


def _fraction(*parts: Any) -> fractions.Fraction:
    if len(parts) == 1 and type(parts[0]) is str and len(parts[0]) < 4096:  # of Python 3.10
        top, _, bottom = parts[0].partition("/")
        parts = (int(top), int(bottom or 1))
    return _made(fractions.Fraction, (int,), (int,))(*parts)


def _path(kind: type[pathlib.PurePath]) -> Callable[..., Any]:
    return lambda *parts: _made(kind, *[(str,)] * len(parts))(*parts)


_ZONE = (datetime.timezone, type(None))
_BOUND = (int, type(None))
_CALLS: dict[str, Callable[..., Any]] = {
    "collections.deque": _deque,
    "builtins.range": _made(range, (int,), (int,), (int,)),
    "builtins.slice": _made(slice, _BOUND, _BOUND, _BOUND),
    "datetime.date": _made(datetime.date, (bytes,)),
    "datetime.time": _made(datetime.time, (bytes,), _ZONE),
    "datetime.datetime": _made(datetime.datetime, (bytes,), _ZONE),
    "datetime.timedelta": _made(datetime.timedelta, (int,), (int,), (int,)),
    "datetime.timezone": _made(datetime.timezone, (datetime.timedelta,), (str,)),
    "decimal.Decimal": _made(decimal.Decimal, (str,)),
    "fractions.Fraction": _fraction,
    "types.SimpleNamespace": types.SimpleNamespace,
}
_PATHS = ("PosixPath", "PurePosixPath", "PureWindowsPath")
_CALLS |= {f"pathlib.{name}": _path(getattr(pathlib, name)) for name in _PATHS}
_NAMES: dict[str, Any] = {name: Callee(name, call) for name, call in _CALLS.items()}
_NAMES["builtins.xrange"] = _NAMES["builtins.range"]  # of protocol 2
_NAMES["builtins.frozenset"] = Callee("builtins.frozenset", _frozenset, checks=True)
_NAMES["argparse.Namespace"] = ObjectType("argparse.Namespace", argparse.Namespace)
_NAMES["uuid.UUID"] = ObjectType("uuid.UUID", lambda: uuid.UUID.__new__(uuid.UUID))


def find(module: str, name: str) -> Any:
    """What a global of the standard library stands for, or None."""
    return _NAMES.get(f"{module}.{name}")


def set_number(target: uuid.UUID, state: Any) -> None:
    """Gives a UUID its number."""
    number = state.get("int") if type(state) is dict else None
    if type(number) is not int or not 0 <= number < 1 << 128:
        raise LoadError("load: expected the number of a UUID, got something else")
    object.__setattr__(target, "int", number)
    object.__setattr__(target, "is_safe", uuid.SafeUUID.unknown)
