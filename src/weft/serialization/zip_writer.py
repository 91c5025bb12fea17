"""ZipWriter: a zip archive in PyTorch's layout, written in one pass to anything with write()."""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple

_ALIGNMENT = 64
_LIMIT = 0xFFFFFFFF  # from here on a number needs the zip64 fields
_CHUNK = 64 << 20


class _Written(NamedTuple):
    name: bytes
    crc: int
    size: int
    stored: int  # bytes in the file
    header: int
    flags: int
    method: int


class ZipWriter:
    """Writes records whose bytes begin at multiples of 64 in the file, stored as they are unless
    they are to be compressed.

    The layout is PyTorch's to the byte (padding in an extra field "FB", data descriptors, always a
    zip64 end), so a reader may also compute where records are. Times are left out: the same content
    gives the same file.
    """

    def __init__(self, file: Any, folder: str) -> None:
        self._file = file
        self._folder = folder
        self._at = 0
        self._records: list[_Written] = []

    def add(self, name: str, data: Any, compressed: bool = False) -> None:
        """Writes one record. `data` is any buffer of bytes; what is compressed must be short."""
        view = memoryview(data).cast("B") if len(data) else memoryview(b"")
        path = f"{self._folder}/{name}".encode()
        crc, size, method = zlib.crc32(view), len(view), 0
        if compressed and len(deflated := _deflated(view)) < size:
            view, method = memoryview(deflated), 8
        flags = 0x808 if view else 0x800
        record = _Written(path, crc, size, len(view), self._at, flags, method)
        big = len(view) >= _LIMIT
        extra = struct.pack("<2H2Q", 1, 16, 0, 0) if big else b""
        # The header, its name, and the head of the padding field come before the padding itself.
        padding = -(self._at + 30 + len(path) + len(extra) + 4) % _ALIGNMENT
        extra += b"FB" + struct.pack("<H", padding) + b"Z" * padding
        size = _LIMIT if big else 0  # the sizes follow the data
        fixed = (0, flags, method, 0, 0, 0, size, size, len(path), len(extra))
        self._write(b"PK\3\4" + struct.pack("<5H3L2H", *fixed) + path + extra)
        self._write(view)
        if view:
            numbers = "<L2Q" if big else "<3L"
            self._write(b"PK\7\b" + struct.pack(numbers, crc, len(view), record.size))
        self._records.append(record)

    def checksum(self) -> str:
        """40 digits that depend on the names and the contents written so far."""
        names = zlib.crc32(b"\0".join(record.name for record in self._records))
        sizes = 0
        content = 0
        for record in self._records:
            content = zlib.crc32(struct.pack("<LQ", record.crc, record.size), content)
            sizes = (sizes * 31 + record.size) & 0xFFFFFFFF
        return f"{names << 32 | sizes:020d}{content:020d}"

    def close(self) -> None:
        """Writes the directory. The file itself stays open."""
        start = self._at
        for record in self._records:
            self._write(_directory_entry(record))
        size = self._at - start
        count = len(self._records)
        end64 = self._at
        self._write(b"PK\6\6" + struct.pack("<Q2H2L", 44, 0x31E, 45, 0, 0))
        self._write(struct.pack("<4Q", count, count, size, start))
        self._write(b"PK\6\7" + struct.pack("<LQL", 0, end64, 1))
        few = min(count, 0xFFFF)
        small = (min(size, _LIMIT), min(start, _LIMIT))
        self._write(b"PK\5\6" + struct.pack("<4H2LH", 0, 0, few, few, *small, 0))

    def _write(self, data: bytes | memoryview) -> None:
        """All of the data, also through files that write less than they are given."""
        view = memoryview(data)
        while view:
            count = self._file.write(view[:_CHUNK])
            count = min(len(view), _CHUNK) if count is None else count
            self._at += count
            view = view[count:]


def _deflated(data: memoryview) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def _directory_entry(record: _Written) -> bytes:
    wide = b""
    size, stored, header = record.size, record.stored, record.header
    if record.size >= _LIMIT:
        wide += struct.pack("<2Q", record.size, record.stored)
        size = stored = _LIMIT
    if record.header >= _LIMIT:
        wide += struct.pack("<Q", record.header)
        header = _LIMIT
    extra = struct.pack("<2H", 1, len(wide)) + wide if wide else b""
    names = (len(record.name), len(extra))
    fixed = (0, 0, record.flags, record.method, 0, 0, record.crc, stored, size, *names)
    return b"PK\1\2" + struct.pack("<6H3L5H2L", *fixed, 0, 0, 0, 0, header) + record.name + extra
