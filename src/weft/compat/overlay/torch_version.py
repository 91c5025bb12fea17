"""torch.torch_version: a version as a text that compares by its numbers."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any


def _compared(name: str) -> Callable[[Any, Any], Any]:
    """A comparison by numbers; where one of both has none ("parrots"), that of texts."""

    def compare(self: Any, other: Any) -> Any:
        mine, others = _numbers(self), _numbers(other)
        if mine is None or others is None:
            return getattr(str, name)(self, other)
        return getattr(operator, name)(mine, others)

    return compare


class TorchVersion(str):
    """A version. Comparisons with texts and tuples go by numbers: "2.13.0" is above "2.9".

    >>> TorchVersion("2.13.0") >= "2.9", TorchVersion("2.13.0") < (2, 14)
    (True, True)
    """

    __slots__ = ()
    __lt__, __le__ = _compared("__lt__"), _compared("__le__")
    __gt__, __ge__ = _compared("__gt__"), _compared("__ge__")
    __eq__ = _compared("__eq__")
    __hash__ = str.__hash__


def _numbers(version: Any) -> tuple[tuple[int, ...], int] | None:
    """Release numbers without zeros at the end, then -1 for a version that precedes the release."""
    text = ".".join(map(str, version)) if isinstance(version, tuple | list) else str(version)
    match = re.match(r"v?(\d+(?:\.\d+)*)([.\-_]?(?:a|b|rc|dev|alpha|beta|pre)\w*)?", text)
    if match is None or isinstance(version, float | int):
        return None
    numbers = [int(part) for part in match[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers), -1 if match[2] else 0


__version__ = TorchVersion("2.13.0")  # the PyTorch whose behaviour weft has
