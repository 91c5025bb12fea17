"""A program as bytes on disk, with the numbers of what it needs of the process (see walk.py)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.jit import python_classes
from weft.jit.cache.walk import NotKept, Walk

_MAGIC = b"weft program 2\n"
_WORD = struct.Struct("<I")


class Damaged(Exception):
    """Bytes that are no entry, or one of other objects."""


def encode(
    walk: Walk, name: str, program: bytes, inputs: Iterable[Any],
    callables: Iterable[Any], types: Mapping[str, Any], classes: Mapping[str, int],
) -> bytes:  # fmt: skip
    """An entry. `types`: Python's classes that the program knows by a name; `classes`: the names of
    those of modules, and their places among the module's classes. NotKept where the walk has not
    met something that the program needs."""
    fields = [_MAGIC, name.encode(), program]
    fields += [_numbers(walk, inputs), _numbers(walk, callables), _numbers(walk, types.values())]
    fields += [bytes_of(classes), _words(classes.values())]
    return _joined([*fields, *(each.encode() for each in types)])


def bytes_of(texts: Iterable[str]) -> bytes:
    """Texts as bytes."""
    return _joined(text.encode("utf-8", "surrogatepass") for text in texts)


def texts_of(data: bytes) -> list[str]:
    """Texts from their bytes; Damaged for others."""
    return list(map(_text, _fields(data)))


def _joined(fields: Iterable[bytes]) -> bytes:
    return b"".join(_WORD.pack(len(field)) + field for field in fields)


def _numbers(walk: Walk, objects: Iterable[Any]) -> bytes:
    found = [walk.number(each) for each in objects]
    if None in found:
        raise NotKept("objects that the walk has not met")
    return _words(each for each in found if each is not None)


def _words(numbers: Iterable[int]) -> bytes:
    return b"".join(map(_WORD.pack, numbers))


class Entry:
    """An entry that was read. `run` is the function of the program. `modules`: the classes of the
    module and of those in it; what the program calls them may be their names in another process.
    Damaged for bytes that are no entry, or one of other objects."""

    def __init__(self, data: bytes, walk: Walk, modules: Sequence[Any]) -> None:
        fields = _fields(data)
        if len(fields) < 8 or fields[0] != _MAGIC:
            raise Damaged
        name, program, inputs, callables, kinds, called, positions, *names = fields[1:]
        known = _named(texts_of(called), _objects(positions, modules, object))
        tensors = _objects(inputs, walk.objects, Tensor)
        types = _named(map(_text, names), _objects(kinds, walk.objects, type))
        try:
            made = _C.JitProgram(program, tensors, _objects(callables, walk.objects, object), known)
            self.run = made.function(_text(name))
        except (RuntimeError, TypeError, ValueError, KeyError, IndexError) as error:
            raise Damaged from error
        _register(types)


def _named(names: Iterable[str], objects: Sequence[Any]) -> dict[str, Any]:
    found = list(names)
    if len(found) != len(objects):
        raise Damaged
    return dict(zip(found, objects))


def _register(types: Mapping[str, type]) -> None:
    """Lets programs give objects of Python's classes."""
    if any(python_classes.find(name) not in (None, cls) for name, cls in types.items()):
        raise Damaged
    for name, cls in types.items():
        python_classes.register(name, cls)


def _fields(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        if at + 4 > len(data):
            raise Damaged
        (size,) = _WORD.unpack_from(data, at)
        found.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    if at != len(data):
        raise Damaged
    return found


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise Damaged from error


def _objects(numbers: bytes, numbered: Sequence[Any], kind: type) -> list[Any]:
    if len(numbers) % 4:
        raise Damaged
    found = [number for (number,) in _WORD.iter_unpack(numbers)]
    if any(number >= len(numbered) for number in found):
        raise Damaged
    objects = [numbered[number] for number in found]
    if not all(isinstance(each, kind) for each in objects):
        raise Damaged
    return objects
