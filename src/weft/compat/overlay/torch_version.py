"""torch.torch_version: a version as a text that compares by its numbers."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["TorchVersion", "__version__"]


class TorchVersion(str):
    """A version. Comparisons with texts and tuples go by numbers: "2.13.0" is above "2.9".

    >>> TorchVersion("2.13.0") >= "2.9", TorchVersion("2.13.0") < (2, 14)
    (True, True)
    """

    __slots__ = ()

    def __lt__(self, other: Any) -> bool:
        return _numbers(self) < _numbers(other)

    def __le__(self, other: Any) -> bool:
        return _numbers(self) <= _numbers(other)

    def __gt__(self, other: Any) -> bool:
        return _numbers(self) > _numbers(other)

    def __ge__(self, other: Any) -> bool:
        return _numbers(self) >= _numbers(other)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, str | tuple | list):
            return NotImplemented
        return _numbers(self) == _numbers(other)

    __hash__ = str.__hash__


def _numbers(version: Any) -> tuple[tuple[int, ...], int]:
    """Release numbers without zeros at the end, then -1 for a version that precedes the release."""
    text = ".".join(map(str, version)) if isinstance(version, tuple | list) else str(version)
    match = re.match(r"v?(\d+(?:\.\d+)*)([.\-_]?(?:a|b|rc|dev|alpha|beta|pre)\w*)?", text)
    if match is None:
        raise ValueError(f"TorchVersion: expected a version such as '2.13.0', got {version!r}")
    numbers = [int(part) for part in match[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers), -1 if match[2] else 0


__version__ = TorchVersion("2.13.0")  # the PyTorch whose behaviour weft has
