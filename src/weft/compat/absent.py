"""Placeholders for names that PyTorch has and weft lacks: they can be mentioned, not used."""

from __future__ import annotations

import dis
import functools
import sys
from abc import ABCMeta
from typing import Any, NoReturn

_MENTIONS = frozenset(
    dis.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM") if name in dis.opmap
)


def is_mention(depth: int = 2) -> bool:
    """Whether the caller's caller wrote the name as an attribute or import, and does not probe.

    A program must be able to say `torch.x.y` in a base class, an annotation or an import, and must
    get an honest answer from `hasattr(torch.x, "y")` and `getattr(torch.x, "y", None)`. Python
    asks the module in the same way for both; the instruction of the asking frame tells them apart.
    """
    frame = sys._getframe(depth)
    return frame.f_code.co_code[frame.f_lasti] in _MENTIONS


class Absent(ABCMeta):
    """The type of placeholders. A placeholder is a class, so that it can be a base, stand in
    annotations, and be asked for in isinstance, where it answers False."""

    _place: str

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") or name == "_place" or not is_mention():
            raise AttributeError(f"{_place_of(cls)}: expected no attributes, got {name!r}")
        return placeholder(f"{_place_of(cls)}.{name}")

    def __repr__(cls) -> str:
        return f"<{_place_of(cls)}: weft lacks it>" if "_place" in vars(cls) else _shown(cls)

    def __getitem__(cls, parameters: Any) -> Any:
        return cls


def _shown(cls: type) -> str:
    return type.__repr__(cls)


def _place_of(cls: type) -> str:
    """The name in PyTorch of a placeholder, or of the one that a class derives from."""
    return next(each.__dict__["_place"] for each in cls.__mro__ if "_place" in each.__dict__)


def _raises(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
    place = _place_of(cls)
    raise NotImplementedError(f"{place}: expected a name that weft has, got one it has not yet")


_USES = (
    "call bool int float index len iter next contains enter exit lt le gt ge neg add radd sub "
    "rsub mul rmul truediv rtruediv and xor invert matmul"
)
for _use in _USES.split():
    setattr(Absent, f"__{_use}__", _raises)


@functools.cache
def placeholder(place: str) -> Absent:
    """The placeholder for a name of PyTorch, such as "torch.nn.LazyLinear"; one for each place.

    NotImplementedError when it is called, when a class derived from it is, and when its value is
    used.
    """
    module, _, name = place.rpartition(".")
    return Absent(name, (), {"_place": place, "__module__": module})
