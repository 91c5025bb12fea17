"""The format PyTorch wrote before 1.6: pickles one after the other, then the storages.

A number that marks the format, its version, facts about the machine, the object, the keys of the
storages in the order they follow: for each its number of elements and its bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft._C import Tensor
from weft.serialization.errors import LoadError, shown
from weft.serialization.globals import set_state
from weft.serialization.source import Source
from weft.serialization.storages import MapLocation, Storages, description
from weft.serialization.unpickle import Callee, Unpickler
from weft.storage import TypedStorage

_MAGIC = 0x1950A86A20F9469CFC6C
VERSION = 1001
START = b"\x80\x02\x8a\n" + _MAGIC.to_bytes(10, "little") + b"."


def load_legacy(
    source: Source,
    map_location: MapLocation,
    find: Callable[[str, str], Any],
    encoding: str | None = None,
) -> Any:
    """The object of a file that begins with START.

    The object is read twice: where its storages are in the file is known only behind it.
    """
    data = source.read(0, source.size)
    begin, end, extents = _survey(source, data, find)

    def read(key: str, size: int, dtype: Any) -> Tensor:
        offset, count = extents[key]
        if count < size:
            raise LoadError(f"load: expected {size} bytes in storage '{shown(key)}', got {count}")
        return source.tensor(offset, count)

    storages = Storages(read, map_location)
    reader = Unpickler(data, find, storages.persistent, set_state, encoding)
    reader.position = begin
    result = reader.load()
    source.leave_at(end)  # another object may follow
    return result


def _survey(
    source: Source, data: bytes, find: Callable[[str, str], Any]
) -> tuple[int, int, dict[str, tuple[int, int]]]:
    """Where the pickle of the object begins, where the file of it ends, and place and size of each
    storage's bytes."""
    dtypes: dict[str, Any] = {}

    def note(identity: Any) -> TypedStorage:
        dtype, key = description(identity)[:2]
        return TypedStorage(dtype=dtypes.setdefault(key, dtype))

    reader = Unpickler(
        data, functools.partial(_find_nothing, find), note, lambda target, state: None
    )
    reader.load()
    version, machine = reader.load(), reader.load()
    if type(version) is not int or version != VERSION or type(machine) is not dict:
        raise LoadError(f"load: expected version {VERSION} of the old format, got another")
    if machine.get("little_endian") is not True:
        raise LoadError("load: expected little-endian bytes in the old format, got big-endian ones")
    begin = reader.position
    reader.load()
    keys = reader.load()
    if type(keys) is not list or any(type(key) is not str or key not in dtypes for key in keys):
        raise LoadError("load: expected the keys of the storages, got others")
    extents = {}
    at = reader.position
    for key in keys:
        dtype = dtypes[key]
        count = int.from_bytes(source.read(at, 8), "little")
        size = count * (1 if dtype is None else dtype.itemsize)
        extents[key] = (at + 8, size)
        at += 8 + size
    return begin, at, extents


def _find_nothing(find: Callable[[str, str], Any], module: str, name: str) -> Any:
    """The allowed globals, with functions that make no tensors."""
    found = find(module, name)
    if isinstance(found, Callee) and module.startswith("torch._"):
        return Callee(found.name, lambda *arguments: None)
    return found
