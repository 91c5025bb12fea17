"""Object files as images: machine code that the runtime maps and calls without a linker.

The layout of an image stands in csrc/runtime/native_code.h. `make` lays the sections of an ELF
object one after the other, resolves what refers to within, and gives every function of the C
library a stub that jumps through a cell, which the runtime fills in.

Relocations: System V ABI, AMD64 supplement, section 4.4; ELF for the Arm 64-bit architecture.
"""

from __future__ import annotations

import struct

from weft.jit.ir.record import field, record

MAGIC = b"WFTNATIV"
VERSION = 1
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")
_ALLOC = 2  # SHF_ALLOC
_RELA_TYPE, _SYMTAB_TYPE, _NOBITS_TYPE = 4, 2, 8


class ImageError(ValueError):
    """An object file that cannot be made an image; the text says what it holds."""


@record
class _Section:
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    address: int = -1  # within the code of the image


@record
class _Symbol:
    name: str
    section: int
    value: int


@record
class _Elf:
    data: bytes
    machine: int
    sections: list[_Section] = field(default_factory=list)
    symbols: list[_Symbol] = field(default_factory=list)

    def string(self, table: _Section, at: int) -> str:
        start = table.offset + at
        return self.data[start : self.data.index(b"\0", start)].decode()


def make(elf: bytes, entry: str, isa: int) -> bytes:
    """The image of an ELF object for x86-64 or AArch64 whose function `entry` is to be called.

    `isa` is the instruction-set level (0, 1, 2 for v2, v3, v4; 0 on AArch64) the code needs.
    Raises ImageError for other machines and for relocations compilers do not emit for kernels.
    """
    parsed = _parse(elf)
    code = bytearray()
    for section in parsed.sections:
        if section.flags & _ALLOC and section.size:
            code += b"\0" * (-len(code) % max(section.align, 1))
            section.address = len(code)
            data = elf[section.offset : section.offset + section.size]
            code += b"\0" * section.size if section.kind == _NOBITS_TYPE else data
    linker = _LINKERS[parsed.machine](parsed, code)
    for section in parsed.sections:
        if section.kind == _RELA_TYPE and parsed.sections[section.info].address >= 0:
            linker.section(section)
    found = [s for s in parsed.symbols if s.name == entry and s.section]
    if not found:
        raise ImageError(f"image: expected a function {entry}, got none")
    start = parsed.sections[found[0].section].address + found[0].value
    header = struct.pack("<IIIII", VERSION, isa, start, len(code), len(linker.cells))
    imports = b"".join(
        struct.pack("<II", cell, len(name)) + name.encode() for name, cell in linker.cells.items()
    )
    return MAGIC + header + imports + bytes(code)


def _parse(data: bytes) -> _Elf:
    header = _HEADER.unpack_from(data)
    if header[0][:6] != b"\x7fELF\x02\x01" or header[2] not in _LINKERS:
        raise ImageError(f"image: expected an x86-64 or AArch64 object, got machine {header[2]}")
    elf = _Elf(data, header[2])
    raw = [_SECTION.unpack_from(data, header[6] + i * header[11]) for i in range(header[12])]
    for _, kind, flags, _, offset, size, link, info, align, _ in raw:
        elf.sections.append(_Section("", kind, flags, offset, size, link, info, align))
    for section, (name, *_) in zip(elf.sections, raw):
        section.name = elf.string(elf.sections[header[13]], name)
        if section.name.startswith(".eh_frame") or section.name.startswith(".note"):
            section.flags = 0  # nothing unwinds through kernels
    for section in elf.sections:
        if section.kind == _SYMTAB_TYPE:
            names = elf.sections[section.link]
            for at in range(section.offset, section.offset + section.size, _SYMBOL.size):
                name, _, _, index, value, _ = _SYMBOL.unpack_from(data, at)
                elf.symbols.append(_Symbol(elf.string(names, name), index, value))
    return elf


class _Linker:
    """Applies relocations to the code; makes stubs for what is not in the object."""

    stub: bytes  # jumps to the address in the cell, eight bytes that follow it

    def __init__(self, elf: _Elf, code: bytearray) -> None:
        self._elf, self._code = elf, code
        self.cells: dict[str, int] = {}  # where the addresses of functions are to be filled in

    def section(self, relocations: _Section) -> None:
        base = self._elf.sections[relocations.info].address
        end = relocations.offset + relocations.size
        for at in range(relocations.offset, end, _RELA.size):
            offset, info, addend = _RELA.unpack_from(self._elf.data, at)
            self._apply(base + offset, info & 0xFFFFFFFF, self._elf.symbols[info >> 32], addend)

    def _apply(self, place: int, kind: int, symbol: _Symbol, addend: int) -> None:
        raise NotImplementedError

    def _target(self, symbol: _Symbol) -> int:
        if symbol.section:
            return self._elf.sections[symbol.section].address + symbol.value
        return self._cell(symbol) - len(self.stub)

    def _cell(self, symbol: _Symbol) -> int:
        if symbol.section:
            raise ImageError(f"image: expected no table entry for {symbol.name}")
        if symbol.name not in self.cells:
            self._code += b"\0" * (-len(self._code) % 8)
            self._code += self.stub + bytes(8)
            self.cells[symbol.name] = len(self._code) - 8
        return self.cells[symbol.name]


class _X86(_Linker):
    stub = b"\xff\x25\x02\x00\x00\x00\x66\x90"  # jmp *[rip + 2]

    def _apply(self, place: int, kind: int, symbol: _Symbol, addend: int) -> None:
        if kind in (2, 4):  # R_X86_64_PC32, R_X86_64_PLT32
            target = self._target(symbol)
        elif kind in (9, 41, 42):  # R_X86_64_GOTPCREL, GOTPCRELX, REX_GOTPCRELX
            target = self._cell(symbol)
        else:
            raise ImageError(f"image: expected a relative relocation, got type {kind}")
        struct.pack_into("<i", self._code, place, target + addend - place)


# Loads and stores, by R_AARCH64_LDST*_ABS_LO12_NC: how far the offset in the page is shifted; the
# last is R_AARCH64_LD64_GOT_LO12_NC.
_SCALED = {278: 0, 284: 1, 285: 2, 286: 3, 299: 4, 312: 3}


class _AArch64(_Linker):
    """Addresses are put together from a page of 4 KiB (adrp) and what lies within it. Images are
    mapped at the start of a page, so that pages within one are known before."""

    stub = b"\x50\x00\x00\x58\x00\x02\x1f\xd6"  # ldr x16, [pc + 8]; br x16

    def _apply(self, place: int, kind: int, symbol: _Symbol, addend: int) -> None:
        if kind in (311, 312):  # R_AARCH64_ADR_GOT_PAGE, LD64_GOT_LO12_NC
            target = self._cell(symbol) + addend
        else:
            target = self._target(symbol) + addend
        if kind in (275, 311):  # R_AARCH64_ADR_PREL_PG_HI21
            pages = (target >> 12) - (place >> 12)
            self._fill(place, _signed(pages, 21) & 3, 2, 29)
            self._fill(place, _signed(pages, 21) >> 2, 19, 5)
        elif kind == 277:  # R_AARCH64_ADD_ABS_LO12_NC
            self._fill(place, target & 0xFFF, 12, 10)
        elif kind in _SCALED:
            shift = _SCALED[kind]
            if target & ((1 << shift) - 1):
                raise ImageError(f"image: expected an address in steps of {1 << shift}")
            self._fill(place, (target & 0xFFF) >> shift, 12, 10)
        elif kind in (282, 283):  # R_AARCH64_JUMP26, CALL26
            self._fill(place, _signed((target - place) >> 2, 26), 26, 0)
        elif kind == 261:  # R_AARCH64_PREL32
            struct.pack_into("<i", self._code, place, target - place)
        else:
            raise ImageError(f"image: expected a relative relocation, got type {kind}")

    def _fill(self, place: int, value: int, bits: int, at: int) -> None:
        """Puts a value in some bits of an instruction."""
        (word,) = struct.unpack_from("<I", self._code, place)
        word = word & ~(((1 << bits) - 1) << at) | value << at
        struct.pack_into("<I", self._code, place, word)


def _signed(value: int, bits: int) -> int:
    """The number in so many bits, the highest of them its sign."""
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ImageError(f"image: expected a distance of {bits} bits, got {value}")
    return value & ((1 << bits) - 1)


_LINKERS: dict[int, type[_Linker]] = {62: _X86, 183: _AArch64}  # by the machine's number in ELF
