"""ZipReader: the records of a zip archive, with every size checked before memory is taken."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from weft import _C
from weft._C import Tensor
from weft.serialization.errors import LoadError, shown
from weft.serialization.source import Source

_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")

_MORE = 0xFFFFFFFF  # the value is in the zip64 extra field
_STORED, _DEFLATED = 0, 8
# What the deflated records of an archive may grow to: this many times the file, or 16 MiB.
_GROWTH = 64
_GROWTH_FLOOR = 16 << 20


class Record(NamedTuple):
    """One entry of the directory."""

    name: bytes
    header: int  # where its local header is
    size: int
    packed: int
    method: int


class ZipReader:
    """The records of an archive by their names, without the top folder all names begin with, unless
    `in_folder` is False.

    Refused with LoadError: encryption, compression other than deflate, a name given twice, records
    that overlap (the sizes read must fit into the file) or grow beyond 64 times the file.
    """

    def __init__(self, source: Source, in_folder: bool = True) -> None:
        self._source = source
        self._in_folder = in_folder
        self._stored_left = source.size
        self._growth_left = max(source.size * _GROWTH, _GROWTH_FLOOR)
        self._records: dict[str, Record] = {}
        count, self._end, size = self._find_directory()
        self._read_directory(source.read(self._end, size), count)

    def __contains__(self, name: str) -> bool:
        return name in self._records

    def names(self) -> list[str]:
        """The names of all records."""
        return list(self._records)

    def size(self, name: str) -> int:
        """Bytes of a record. LoadError if there is none."""
        return self._record(name).size

    def read(self, name: str, limit: int) -> bytes:
        """The bytes of a small record; LoadError when it has more than `limit`."""
        record = self._record(name)
        if record.size > limit:
            raise LoadError(
                f"load: expected at most {limit} bytes in record '{name}', got {record.size}"
            )
        return self._bytes(record)

    def tensor(self, name: str) -> Tensor:
        """A uint8 tensor of a record's bytes, over the mapped file where the source has one."""
        record = self._record(name)
        if record.method == _STORED:
            return self._source.tensor(self._locate(record), record.size)
        data = self._bytes(record)
        return _C.frombuffer(bytearray(data) or bytearray(1), dtype=_C.uint8)[: len(data)]

    def _record(self, name: str) -> Record:
        record = self._records.get(name)
        if record is None:
            raise LoadError(f"load: expected a record '{shown(name)}' in the archive, got none")
        return record

    def _bytes(self, record: Record) -> bytes:
        start = self._locate(record)
        if record.method == _STORED:
            return self._source.read(start, record.size)
        self._growth_left -= record.size
        if self._growth_left < 0:
            raise LoadError(
                f"load: expected compressed records of at most {_GROWTH} times the file, got more"
            )
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            data = inflater.decompress(self._source.read(start, record.packed), record.size + 1)
        except zlib.error as error:
            raise LoadError(f"load: expected a deflated record, got {error}") from None
        if len(data) != record.size:
            raise LoadError(
                f"load: expected {record.size} bytes in record '{shown(record.name)}', got others"
            )
        return data

    def _locate(self, record: Record) -> int:
        """Where the bytes of a record begin."""
        local = _LOCAL.unpack(self._source.read(record.header, _LOCAL.size))
        if local[0] != b"PK\3\4":
            raise LoadError(f"load: expected record '{shown(record.name)}' where its entry says")
        name = self._source.read(record.header + _LOCAL.size, local[9])
        if name != record.name:
            raise LoadError(f"load: expected record '{shown(record.name)}', got '{shown(name)}'")
        start = record.header + _LOCAL.size + local[9] + local[10]
        if start + record.packed > self._end:
            raise LoadError(f"load: expected record '{shown(record.name)}' inside the file")
        self._stored_left -= record.packed
        if self._stored_left < 0:
            raise LoadError("load: expected records that do not overlap, got overlapping ones")
        return start

    # ---- the directory ----

    def _find_directory(self) -> tuple[int, int, int]:
        """Number of entries, place and size of the directory."""
        reach = min(self._source.size, _LOCATOR64.size + _END.size + 0xFFFF)
        tail = self._source.read(self._source.size - reach, reach)
        at = tail.rfind(b"PK\5\6")
        while at >= 0:
            if at + _END.size <= len(tail):
                end = _END.unpack_from(tail, at)
                if at + _END.size + end[7] == len(tail):
                    break
            at = tail.rfind(b"PK\5\6", 0, at)
        else:
            raise LoadError("load: expected a zip archive, got a file cut short or of another kind")
        count, size, offset = end[4], end[5], end[6]
        if at >= _LOCATOR64.size and tail[at - _LOCATOR64.size :][:4] == b"PK\6\7":
            where = _LOCATOR64.unpack_from(tail, at - _LOCATOR64.size)[2]
            end64 = _END64.unpack(self._source.read(where, _END64.size))
            if end64[0] != b"PK\6\6":
                raise LoadError("load: expected the zip64 end of the directory where it says")
            count, size, offset = end64[7:]
        if count * _ENTRY.size > size or offset + size > self._source.size:
            raise LoadError("load: expected the directory of the archive inside the file")
        return count, offset, size

    def _read_directory(self, data: bytes, count: int) -> None:
        at = 0
        top: str | None = None
        for _ in range(count):
            record, at = _entry(data, at)
            try:
                name = record.name.decode()
            except UnicodeDecodeError:
                raise LoadError("load: expected record names in UTF-8") from None
            folder, _, rest = name.partition("/") if self._in_folder else ("", "", name)
            if top is None:
                top = folder
            if folder != top or not rest or name.endswith("/"):
                continue
            if rest in self._records:
                raise LoadError(f"load: expected one record '{shown(name)}', got two")
            self._records[rest] = record


def _entry(data: bytes, at: int) -> tuple[Record, int]:
    """The directory entry at a place, and the place after it."""
    if at + _ENTRY.size > len(data):
        raise LoadError("load: expected more entries in the directory of the archive")
    fields = _ENTRY.unpack_from(data, at)
    if fields[0] != b"PK\1\2":
        raise LoadError("load: expected an entry in the directory of the archive")
    flags, method = fields[3], fields[4]
    name_end = at + _ENTRY.size + fields[10]
    extra_end = name_end + fields[11]
    name = data[at + _ENTRY.size : name_end]
    packed, size, header = _wide(fields[8], fields[9], fields[16], data[name_end:extra_end])
    if flags & 1 or method not in (_STORED, _DEFLATED):
        raise LoadError(f"load: expected a stored or deflated record, got '{shown(name)}'")
    if method == _STORED and packed != size:
        raise LoadError(f"load: expected one size of record '{shown(name)}', got two")
    return Record(name, header, size, packed, method), extra_end + fields[12]


def _wide(packed: int, size: int, header: int, extra: bytes) -> tuple[int, int, int]:
    """The sizes and the place of a record, from the zip64 extra field where they are too large."""
    if _MORE not in (packed, size, header):
        return packed, size, header
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            break
        at += 4 + length
    else:
        raise LoadError("load: expected a zip64 field for a record of more than 4 GiB")
    at += 4
    values = []
    for value in (size, packed, header):
        if value == _MORE:
            if at + 8 > len(extra):
                raise LoadError("load: expected a whole zip64 field")
            (value,) = struct.unpack_from("<Q", extra, at)
            at += 8
        values.append(value)
    return values[1], values[0], values[2]
