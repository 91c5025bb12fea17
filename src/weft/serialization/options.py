"""How files are read and written where nobody says otherwise."""

from __future__ import annotations

import mmap
from enum import Enum

from weft._runtime.exports import list_own as _list_own


class LoadEndianness(Enum):
    """The order of the bytes of numbers in a file."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_endianness: LoadEndianness | None = None
_crc32 = True
_flags = getattr(mmap, "MAP_PRIVATE", 2)


def get_default_load_endianness() -> LoadEndianness | None:
    """What set_default_load_endianness has set; None at first."""
    return _endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """The order of bytes in files that do not tell it; None for little-endian ones. TypeError for
    another value.

    >>> from weft.serialization import LoadEndianness, set_default_load_endianness
    >>> set_default_load_endianness(LoadEndianness.LITTLE)
    >>> set_default_load_endianness(None)
    """
    global _endianness
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError(
            "set_default_load_endianness: expected a LoadEndianness or None, got "
            f"{type(endianness).__name__}"
        )
    _endianness = endianness


def get_crc32_options() -> bool:
    """What set_crc32_options has set; True at first."""
    return _crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Keeps compute_crc32. It has no effect: files have checksums always."""
    global _crc32
    _crc32 = compute_crc32


def get_default_mmap_options() -> int:
    """What set_default_mmap_options has set; mmap.MAP_PRIVATE at first."""
    return _flags


class set_default_mmap_options:
    """Keeps flags, in a `with` block until its end. ValueError for others than mmap.MAP_PRIVATE and
    MAP_SHARED. They have no effect: writes to what was loaded never reach the file."""

    def __init__(self, flags: int) -> None:
        global _flags
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                f"set_default_mmap_options: expected MAP_PRIVATE or MAP_SHARED, got {flags}"
            )
        self._before, _flags = _flags, flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        global _flags
        _flags = self._before


_list_own(vars())
