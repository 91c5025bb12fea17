"""The tables of a program: strings, types, classes, constants, places; each entry once."""

from __future__ import annotations

import enum
import itertools
import struct
from collections.abc import Iterable
from typing import Any

from weft import _C
from weft.jit.ir import Source, SourceRange, type_of_constant
from weft.jit.ir import types as ty

# As csrc/runtime/type.h numbers them.
_PLAIN = (
    "Tensor", "int", "float", "bool", "complex", "str", "NoneType", "Device", "dtype", "Layout",
    "MemoryFormat", "Generator", "Scalar", "Any", "AnyList", "AnyTuple", "AnyDict",
)  # fmt: skip
_LIST, _DICT, _TUPLE, _OPTIONAL, _UNION, _FUTURE, _CLASS, _ENUM, _INTERFACE = range(
    len(_PLAIN), len(_PLAIN) + 9
)
_KINDS: dict[type, int] = {
    ty.ListType: _LIST, ty.DictType: _DICT, ty.TupleType: _TUPLE, ty.OptionalType: _OPTIONAL,
    ty.UnionType: _UNION, ty.FutureType: _FUTURE, ty.ClassType: _CLASS, ty.EnumType: _ENUM,
    ty.InterfaceType: _INTERFACE,
}  # fmt: skip
# As csrc/runtime/program_reader.cpp numbers the kinds of constants.
(
    _C_NONE, _C_BOOL, _C_INT, _C_FLOAT, _C_COMPLEX, _C_STR, _C_DEVICE, _C_DTYPE, _C_INPUT, _C_LIST,
    _C_TUPLE, _C_DICT, _C_ENUM,
) = range(13)  # fmt: skip
# As csrc/runtime/value.h numbers the tags of lists.
INT_LIST, FLOAT_LIST, BOOL_LIST, TENSOR_LIST, OPTIONAL_TENSOR_LIST, LIST = range(12, 18)


def list_tag(element: ty.Type) -> int:
    """What a list of such elements is stored as (Type::list_tag in csrc/runtime/type.cpp)."""
    plain: dict[ty.Type, int] = {
        ty.INT: INT_LIST,
        ty.FLOAT: FLOAT_LIST,
        ty.BOOL: BOOL_LIST,
        ty.TENSOR: TENSOR_LIST,
    }
    if isinstance(element, ty.OptionalType) and element.elem == ty.TENSOR:
        return OPTIONAL_TENSOR_LIST
    return plain.get(element, LIST)


_WORDS = [struct.Struct(f"<{count}I").pack for count in range(8)]


class Writer:
    """Bytes under way."""

    def __init__(self) -> None:
        self.bytes = bytearray()

    def u8(self, *values: int) -> None:
        """Bytes."""
        self.bytes += bytes(values)

    def u32(self, *values: int) -> None:
        """Words of 32 bits."""
        count = len(values)
        if count < len(_WORDS):
            self.bytes += _WORDS[count](*values)
        else:
            self.bytes += struct.pack(f"<{count}I", *values)


class Tables:
    """Tables that grow while a program is made. `inputs` are the constants that are no bytes
    (tensors): they go beside the program."""

    def __init__(self) -> None:
        self.inputs: list[Any] = []
        self.classes: list[ty.ClassType] = []
        self._strings: dict[str, int] = {}
        self._types: dict[Any, int] = {}
        self._type_list: list[ty.Type] = []
        self._type_bytes: list[bytes] = []
        self._tuples: dict[tuple[str, tuple[str, ...]], int] = {}
        self._enums: dict[ty.EnumType, int] = {}
        self._class_index: dict[int, int] = {}
        self._sources: dict[int, tuple[int, Source]] = {}
        self._ranges: dict[tuple[int, int, int, int], int] = {}
        self._known_ranges: dict[SourceRange, int] = {}
        self._constants: dict[Any, int] = {}
        self._constant_bytes: list[bytes] = []
        self._held: list[Any] = []  # constants known by identity must stay alive

    def string(self, text: str) -> int:
        """The place of a string."""
        return self._strings.setdefault(text, len(self._strings))

    @property
    def strings(self) -> Iterable[str]:
        """All strings."""
        return self._strings

    # Types

    def type(self, t: ty.Type) -> int:
        """The place of a type; its parts come before it."""
        key = id(t) if isinstance(t, (ty.ClassType, ty.InterfaceType)) else (str(t), t)
        if key not in self._types:
            data = self._encode_type(t)
            self._types[key] = len(self._type_bytes)
            self._type_bytes.append(data)
            self._type_list.append(t)
        return self._types[key]

    def _encode_type(self, t: ty.Type) -> bytes:
        out = Writer()
        children = [self.type(child) for child in t.children]
        kind = _KINDS.get(type(t))
        out.u8(_PLAIN.index(str(t)) if kind is None else kind)
        out.u32(len(children), *children)
        if isinstance(t, ty.TupleType):
            out.u32(self._tuple(t))
        elif isinstance(t, ty.ClassType):
            out.u32(self.class_(t))
        elif isinstance(t, ty.EnumType):
            out.u32(self._enum(t))
        elif isinstance(t, ty.InterfaceType):
            out.u32(self.string(t.name), len(t.methods), *map(self.string, t.methods))
        return bytes(out.bytes)

    def _tuple(self, t: ty.TupleType) -> int:
        """The place of a named tuple's definition, plus one; 0 for a plain tuple."""
        if t.name is None:
            return 0
        return self._tuples.setdefault((t.name, t.fields), len(self._tuples)) + 1

    def _enum(self, t: ty.EnumType) -> int:
        return self._enums.setdefault(t, len(self._enums))

    def class_(self, t: ty.ClassType) -> int:
        """The place of a class. What it is made of is encoded at the end."""
        if id(t) not in self._class_index:
            self._class_index[id(t)] = len(self.classes)
            self.classes.append(t)
        return self._class_index[id(t)]

    def complete(self) -> None:
        """Takes in the types of all attributes, and the classes those bring."""
        done = 0
        while done < len(self.classes):
            for attribute in self.classes[done].attributes.values():
                self.type(attribute.type)
            done += 1

    # Constants

    def constant(self, value: Any, t: ty.Type | None = None) -> int:
        """The place of a constant."""
        t = t if t is not None else type_of_constant(value)
        if isinstance(t, ty.OptionalType) and value is not None:
            t = t.elem
        key = self._key(value, t)
        if key not in self._constants:
            data = self._encode_constant(value, t)
            self._constants[key] = len(self._constant_bytes)
            self._constant_bytes.append(data)
        return self._constants[key]

    def _key(self, value: Any, t: ty.Type) -> Any:
        if isinstance(value, float):
            return (float, struct.pack("<d", value))
        if value is None or isinstance(value, (bool, int, str)):
            return (type(value), value)
        self._held.append(value)
        return (id(value), str(t))

    def _encode_constant(self, value: Any, t: ty.Type | None) -> bytes:
        out = Writer()
        if value is None:
            out.u8(_C_NONE)
        elif isinstance(value, ty.EnumValue | enum.Enum):  # which may be an int too
            own = value.type if isinstance(value, ty.EnumValue) else ty.non_none(t or ty.NONE)
            assert isinstance(own, ty.EnumType)
            members = [name for name, _ in own.members]
            out.u8(_C_ENUM)
            out.u32(self._enum(own), members.index(value.name))
        elif isinstance(value, bool):
            out.u8(_C_BOOL, value)
        elif isinstance(value, int):
            out.bytes += struct.pack("<Bq", _C_INT, value)
        elif isinstance(value, float):
            out.bytes += struct.pack("<Bd", _C_FLOAT, value)
        elif isinstance(value, complex):
            out.bytes += struct.pack("<Bdd", _C_COMPLEX, value.real, value.imag)
        elif isinstance(value, str):
            if t == ty.DEVICE:
                out.u8(_C_DEVICE)
            else:
                out.u8(_C_STR)
            out.u32(self.string(value))
        elif isinstance(value, (list, tuple, dict)):
            self._encode_items(out, value, t)
        elif t == ty.DTYPE:
            out.u8(_C_DTYPE)
            out.u32(self.string(str(value).removeprefix("torch.").removeprefix("weft.")))
        elif t == ty.DEVICE:
            out.u8(_C_DEVICE)
            out.u32(self.string(str(value)))
        elif t == ty.LAYOUT:
            out.bytes += struct.pack("<Bq", _C_INT, 0)
        elif t == ty.MEMORY_FORMAT:
            out.bytes += struct.pack("<Bq", _C_INT, _C._memory_formats.index(value))
        else:
            out.u8(_C_INPUT)
            out.u32(len(self.inputs))
            self.inputs.append(value)
        return bytes(out.bytes)

    def _encode_items(self, out: Writer, value: Any, t: ty.Type | None) -> None:
        parts: list[tuple[Any, ty.Type | None]]
        if isinstance(value, dict):
            key, item = (t.key, t.value) if isinstance(t, ty.DictType) else (None, None)
            parts = [pair for k, v in value.items() for pair in ((k, key), (v, item))]
            out.u8(_C_DICT)
            out.u32(LIST if item is None else list_tag(item))
        elif isinstance(value, tuple) and not isinstance(t, ty.ListType):
            types = t.elems if isinstance(t, ty.TupleType) else (None,) * len(value)
            parts = list(zip(value, types, strict=True))
            out.u8(_C_TUPLE)
            out.u32(self._tuple(t) if isinstance(t, ty.TupleType) else 0)
        else:
            t = t if isinstance(t, ty.ListType) else type_of_constant(value)
            assert isinstance(t, ty.ListType)
            parts = [(item, t.elem) for item in value]
            out.u8(_C_LIST)
            out.u32(list_tag(t.elem))
        out.u32(len(parts))
        for item, element in parts:
            element = element if element is not None else type_of_constant(item)
            if isinstance(element, ty.OptionalType) and item is not None:
                element = element.elem
            out.bytes += self._encode_constant(item, element)

    # Places

    def place(self, where: SourceRange | None) -> int:
        """The place of a source range; 0 is no place. Offsets are of bytes; that of a call comes
        before what it calls."""
        if where is None:
            return 0
        known = self._known_ranges.get(where)
        if known is None:
            known = self._known_ranges[where] = self._place(where)
        return known

    def _place(self, where: SourceRange) -> int:
        source, start, end = where.source, where.start, where.end
        index, _ = self._sources.setdefault(id(source), (len(self._sources), source))
        if source.text is not None and not source.text.isascii():
            start, end = (len(source.text[:at].encode()) for at in (start, end))
        key = (index, start, end, self.place(where.caller))
        return self._ranges.setdefault(key, len(self._ranges) + 1)

    # Bytes

    def write_strings(self, out: Writer) -> None:
        """The strings; everything else must have been written before."""
        out.u32(len(self._strings))
        pack = _WORDS[1]
        parts: list[bytes] = []
        for text in self._strings:
            data = text.encode("utf-8", "surrogatepass")
            parts += (pack(len(data)), data)
        out.bytes += b"".join(parts)

    def sections(self) -> Writer:
        """Definitions, types, classes, sources, places, constants, in the order of the reader."""
        self.complete()
        out = Writer()
        enums = Writer()
        # The values of an enumeration may be strings, so before the strings are written.
        enums.u32(len(self._enums))
        for t in self._enums:
            enums.u32(self.string(t.name), len(t.members))
            for name, value in t.members:
                enums.u32(self.string(name))
                enums.bytes += self._encode_constant(value, None)
        out.u32(len(self._tuples))
        for name, fields in self._tuples:
            out.u32(self.string(name), len(fields), *map(self.string, fields))
        out.bytes += enums.bytes
        out.u32(len(self.classes), *(self.string(t.name) for t in self.classes))
        out.u32(len(self._type_bytes))
        out.bytes += b"".join(self._type_bytes)
        for cls in self.classes:
            self._write_class(out, cls)
        self._write_sources(out)
        out.u32(len(self._constant_bytes))
        out.bytes += b"".join(self._constant_bytes)
        return out

    def _write_class(self, out: Writer, t: ty.ClassType) -> None:
        out.u8(t.is_module)
        out.u32(len(t.attributes))
        for name, attribute in t.attributes.items():
            out.u32(self.string(name), self.type(attribute.type))
        out.u32(len(t.methods), *map(self.string, t.methods))

    def _write_sources(self, out: Writer) -> None:
        out.u32(len(self._sources))
        for _, source in self._sources.values():
            out.u32(self.string(source.filename), source.first_line, source.indent)
            out.u8(source.text is not None)
            out.u32(self.string(source.text or ""))
        out.u32(len(self._ranges), *itertools.chain.from_iterable(self._ranges))
