"""Types of arguments that take one number for several: `kernel: BroadcastingList2[int]`."""

from __future__ import annotations

import typing as _typing
from typing import Any

# Programs import these from here too.
List, Tuple, Dict = _typing.List, _typing.Tuple, _typing.Dict  # noqa: UP006
Optional, Union = _typing.Optional, _typing.Union


class _BroadcastingList:
    """A list of the given length. A program takes one number in its place, for each item.

    >>> import weft
    >>> def area(size: BroadcastingList2[int]) -> int:
    ...     return size[0] * size[1]
    >>> weft.jit.script(area)(3), weft.jit.script(area)([2, 5])
    (9, 10)
    """

    def __init__(self, length: int) -> None:
        self.__weft_length__ = length

    def __getitem__(self, item: Any) -> Any:
        return list[item]

    def __repr__(self) -> str:
        return f"BroadcastingList{self.__weft_length__}"


BroadcastingList1 = _BroadcastingList(1)
BroadcastingList2 = _BroadcastingList(2)
BroadcastingList3 = _BroadcastingList(3)
BroadcastingList4 = _BroadcastingList(4)
BroadcastingList5 = _BroadcastingList(5)
BroadcastingList6 = _BroadcastingList(6)

__all__ = [f"BroadcastingList{_length}" for _length in range(1, 7)]
