"""The storages a pickle refers to, read when they are first named."""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.serialization.errors import LoadError, shown
from weft.serialization.globals import StorageType
from weft.serialization.options import LoadEndianness, get_default_load_endianness
from weft.serialization.unpickle import Arguments
from weft.serialization.zip_reader import ZipReader
from weft.storage import TypedStorage, UntypedStorage

MapLocation = Any  # None, a device or its name, a dict of names, a function (storage, name)


class Storages:
    """Storages by their keys: the same key gives the same memory, so views stay views.

    `read(key, bytes, dtype)` makes a uint8 tensor of at least that many bytes; the dtype is None
    for a storage of bytes.
    """

    def __init__(self, read: Callable[[str, int, Any], Tensor], map_location: MapLocation) -> None:
        self._read = read
        self._map_location = map_location
        self._loaded: dict[str, Tensor] = {}

    def persistent(self, identity: Any) -> TypedStorage:
        """The storage of ("storage", type, key, location, number of elements). One of bytes has the
        dtype uint8, as in PyTorch."""
        dtype, key, location, size = description(identity)
        loaded = self._loaded.get(key)
        if loaded is None:
            if located(self._map_location, location) == "meta":  # nothing is read
                loaded = _C.empty(size, dtype=_C.uint8, device="meta")
            else:
                loaded = self._place(self._read(key, size, dtype), location)
            if loaded.data_ptr() % 8:
                loaded = loaded.clone()  # mapped where elements cannot be
            self._loaded[key] = loaded
        if loaded.numel() < size:
            raise LoadError(
                f"load: expected {size} bytes in storage '{shown(key)}', got {loaded.numel()}"
            )
        untyped = UntypedStorage._of(loaded)
        return TypedStorage(wrap_storage=untyped, dtype=_C.uint8 if dtype is None else dtype)

    def _place(self, data: Tensor, location: str) -> Tensor:
        """The storage where map_location wants it."""
        to = self._map_location
        if callable(to):
            moved = to(data, location)
            if isinstance(moved, Tensor) and moved.dtype == _C.uint8:
                return moved
            if moved is not None:
                raise LoadError("load: expected a uint8 tensor or None from map_location")
        return default_restore_location(data, located(to, location))


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage at the place that a file names. LoadError for one other than the CPU.

    >>> storage = weft.ones(2).untyped_storage()
    >>> weft.serialization.default_restore_location(storage, "cpu") is storage
    True
    """
    if location != "cpu" and not location.startswith("cpu:"):
        raise LoadError(
            f"load: expected storages on the CPU or meta, got one on '{shown(location)}'; "
            "load it with map_location='cpu'"
        )
    return storage


def located(to: MapLocation, location: str) -> str:
    """The name of the device where map_location puts what was at another one. A function tells it
    for storages alone."""
    if isinstance(to, dict):
        return str(to.get(location, location))
    return location if to is None or callable(to) else str(to)


def storages_of(
    archive: ZipReader, folder: str, map_location: MapLocation, mapped: bool = False
) -> Storages:
    """The storages of a folder of an archive, whose records are named by their keys."""
    order = b"big" if get_default_load_endianness() is LoadEndianness.BIG else b"little"
    if "byteorder" in archive:
        order = archive.read("byteorder", 64)
    if order not in (b"little", b"big"):
        raise LoadError(f"load: expected the byte order little or big, got {shown(order)}")
    big = order == b"big"
    if big and mapped:
        raise LoadError("load: expected little-endian bytes with mmap=True, got big-endian ones")

    def read(key: str, size: int, dtype: Any) -> Tensor:
        name = f"{folder}/{key}"
        if size == 0 and name not in archive:
            return _C.empty(0, dtype=_C.uint8)
        # Checked before any memory is taken.
        if archive.size(name) < size:
            raise LoadError(
                f"load: expected {size} bytes in record '{shown(name)}', got {archive.size(name)}"
            )
        data = archive.tensor(name)
        return swap_bytes(data, dtype) if big else data

    return Storages(read, map_location)


def description(identity: Any) -> tuple[Any, str, str, int]:
    """Dtype, key, location and bytes of the storage that a persistent id describes."""
    if type(identity) is Arguments:  # Python 2 wrote bytes, which encoding="bytes" leaves
        identity = Arguments(
            x.decode("ascii", "replace") if type(x) is bytes else x for x in identity
        )
    if type(identity) is not Arguments or len(identity) not in (5, 6) or identity[0] != "storage":
        raise LoadError("load: expected the description of a storage, got something else")
    kind, key, location, count = identity[1:5]
    if identity[5:] not in ((), (None,)):
        raise LoadError("load: expected a storage of its own, got a view (PyTorch before 0.4)")
    if (type(kind), type(key), type(location), type(count)) != (StorageType, str, str, int):
        raise LoadError("load: expected a storage's type, key, location and number of elements")
    size = count * (1 if kind.dtype is None else kind.dtype.itemsize)
    if not 0 <= size < 1 << 62:
        raise LoadError(f"load: expected the number of elements of a storage, got {count}")
    return kind.dtype, key, location, size


def swap_bytes(data: Tensor, dtype: Any) -> Tensor:
    """The bytes of another byte order, element by element."""
    if dtype is None:
        raise LoadError("load: expected little-endian bytes, got big-endian ones of unknown dtype")
    width = dtype.itemsize // (2 if dtype.is_complex else 1)
    if width == 1 or not data.numel():
        return data
    numbers = array.array({2: "H", 4: "I", 8: "Q"}[width])
    view = memoryview(data)
    numbers.frombytes(view[: len(view) // width * width])
    numbers.byteswap()
    return _C.frombuffer(numbers, dtype=_C.uint8)
