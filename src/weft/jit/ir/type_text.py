"""Reads the IR text of a type. The grammar is in docs/jit_ir.md."""

from __future__ import annotations

import re

from weft.jit.ir import type_classes as ty
from weft.jit.ir.named_types import NamedType
from weft.jit.ir.reader import Cursor

NAME = re.compile(r"[^\W\d][\w.]*")
_LIST = re.compile(r"\[\d*\]")
_VARIABLE = re.compile(r"[a-z]\d*|[a-z]Va[rl]")
_SCHEMA_NAMES: dict[str, ty.Type] = {"ScalarType": ty.DTYPE, "number": ty.NUMBER}
_GENERICS = {"Dict": 2, "Future": 1, "Union": None}  # and how many parts they have

Classes = dict[str, NamedType]


def parse_type(text: str, classes: Classes | None = None) -> ty.Type:
    """The type of an IR text; `classes` gives the classes, enums and interfaces by name.

    Lengths of schemas ("int[2]") and their names of dtypes ("ScalarType") are read too, and single
    lower-case letters, `t1` and `tVar` become type variables. IRSyntaxError for anything else.

    >>> parse_type("Dict(str, Tensor?)").annotation
    'Dict[str, Optional[Tensor]]'
    """
    cursor = Cursor(text)
    result = read_type(cursor, classes or {})
    if not cursor.at_end():
        raise cursor.error("the end of the type")
    return result


def read_type(cursor: Cursor, classes: Classes) -> ty.Type:
    """A type with its marks: `[]` and `?`, as many as there are."""
    result = _read_base(cursor, classes)
    while True:
        if cursor.match(_LIST):
            result = ty.ListType(result)
        elif cursor.accept("?"):
            result = ty.optional_of(result)
        else:
            return result


def _read_base(cursor: Cursor, classes: Classes) -> ty.Type:
    if cursor.accept("("):
        return ty.TupleType(_read_types(cursor, classes))
    cursor.blanks()
    start = cursor.position
    name = cursor.need(NAME, "a type")
    if name in classes:
        return classes[name]
    if name in ty.BASE_TYPES:
        return ty.BASE_TYPES[name]
    if name in _SCHEMA_NAMES:
        return _SCHEMA_NAMES[name]
    if cursor.accept("("):
        if name in _GENERICS:
            return _generic(cursor, name, _read_types(cursor, classes))
        return _read_named_tuple(cursor, classes, name)
    if _VARIABLE.fullmatch(name):
        return ty.TypeVar(name)
    cursor.position = start
    raise cursor.error("the name of a known type")


def _generic(cursor: Cursor, name: str, parts: tuple[ty.Type, ...]) -> ty.Type:
    if _GENERICS[name] not in (None, len(parts)) or not parts:
        raise cursor.error(f"before this {_GENERICS[name] or 'some'} types in {name}(...)")
    if name == "Dict":
        return ty.DictType(*parts)
    return ty.FutureType(*parts) if name == "Future" else ty.union_of(parts)


def _read_types(cursor: Cursor, classes: Classes) -> tuple[ty.Type, ...]:
    """Types up to the closing bracket; the opening one has been read."""
    parts: list[ty.Type] = []
    while not cursor.accept(")"):
        parts.append(read_type(cursor, classes))
        if not cursor.accept(","):
            cursor.expect(")")
            break
    return tuple(parts)


def _read_named_tuple(cursor: Cursor, classes: Classes, name: str) -> ty.Type:
    fields: list[str] = []
    elems: list[ty.Type] = []
    while not cursor.accept(")"):
        fields.append(cursor.need(NAME, "the name of a field"))
        cursor.expect(":")
        elems.append(read_type(cursor, classes))
        if not cursor.accept(","):
            cursor.expect(")")
            break
    return ty.TupleType(tuple(elems), name, tuple(fields))
