"""Writes the format from before PyTorch 1.6; see legacy.py."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft.serialization.legacy import START, VERSION
from weft.serialization.pickle_writer import PickleWriter

_MACHINE = {
    "protocol_version": VERSION,
    "little_endian": True,
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}


class _LegacyPickleWriter(PickleWriter):
    """Its storages say, too, that they are no views of another one; there are none of bytes."""

    def _storage(self, key: int, dtype: Any) -> None:
        super()._storage(key, dtype or _C.uint8)
        del self._out[-2:]
        self._out += b"NtQ"


def legacy_pieces(obj: Any) -> list[Any]:
    """What the file of an object consists of, one buffer after the other."""
    writer = _LegacyPickleWriter()
    pickle = writer.dump(obj)
    keys = [str(key) for key in range(len(writer.storages))]
    pieces: list[Any] = [START, *map(_small, (VERSION, _MACHINE)), pickle, _small(keys)]
    for storage, dtype in zip(writer.storages, writer._dtypes):
        count = storage.numel() // (1 if dtype is None else dtype.itemsize)
        pieces += [count.to_bytes(8, "little"), memoryview(storage)]
    return pieces


def _small(value: Any) -> bytes:
    return PickleWriter().dump(value)
