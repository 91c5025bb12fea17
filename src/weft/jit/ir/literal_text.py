"""Reads the text of attributes and constants, as `literals.text_of` writes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from weft.jit.ir import types as ty
from weft.jit.ir.fresh_stack import literal_eval
from weft.jit.ir.literals import CALLED, NAMED
from weft.jit.ir.reader import Cursor
from weft.jit.ir.type_text import NAME, Classes, read_type

if TYPE_CHECKING:
    from weft.jit.ir.graph import Function

_NUMBER = re.compile(r"-?(?:inf\b|nan\b|\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_FUNCTION = re.compile(r"@[\w.<>]+")
_WORDS = {"None": None, "True": True, "False": False}


class LiteralReader:
    """Reads values at a cursor; classes and functions are looked up by name."""

    def __init__(self, classes: Classes, functions: dict[str, Function]) -> None:
        self.classes = classes
        self.functions = functions

    def read(self, cursor: Cursor) -> Any:
        """The value that stands at the cursor. IRSyntaxError if there is none."""
        number = cursor.match(_NUMBER)
        if number is not None:
            return float(number) if set(number) & set(".ein") else int(number)
        string = cursor.match(_STRING)
        if string is not None:
            return literal_eval(string)
        if cursor.accept("["):
            return self._items(cursor, "]")
        if cursor.accept("("):
            return tuple(self._items(cursor, ")"))
        if cursor.accept("{"):
            return self._dict(cursor)
        if cursor.text.startswith("<", cursor.position):
            raise cursor.error("a value that has a text (tensors and Python objects have none)")
        return self._named(cursor)

    def _items(self, cursor: Cursor, end: str) -> list[Any]:
        items = []
        while not cursor.accept(end):
            items.append(self.read(cursor))
            if not cursor.accept(","):
                cursor.expect(end)
                break
        return items

    def _dict(self, cursor: Cursor) -> dict[Any, Any]:
        items: dict[Any, Any] = {}
        while not cursor.accept("}"):
            key = self.read(cursor)
            cursor.expect(":")
            items[key] = self.read(cursor)
            if not cursor.accept(","):
                cursor.expect("}")
                break
        return items

    def _named(self, cursor: Cursor) -> Any:
        """A function, a word, a call such as device("cpu"), a dtype, a member of an enum."""
        start = cursor.position
        function = cursor.match(_FUNCTION)
        if function is not None:
            if function[1:] in self.functions:
                return self.functions[function[1:]]
            cursor.position = start
            raise cursor.error("the name of a known function")
        name = cursor.need(NAME, "a value")
        if name in _WORDS:
            return _WORDS[name]
        if cursor.accept("("):
            return self._call(cursor, name)
        first, _, last = name.rpartition(".")
        enum = self.classes.get(first)
        if isinstance(enum, ty.EnumType) and last in dict(enum.members):
            return ty.EnumValue(enum, last)
        reader = NAMED.get(name.split(".")[0])
        if reader is None:
            cursor.position = start
            raise cursor.error("a value")
        return reader(name)

    def _call(self, cursor: Cursor, name: str) -> Any:
        if name == "type":
            result = read_type(cursor, self.classes)
            cursor.expect(")")
            return result
        arguments = self._items(cursor, ")")
        if name not in CALLED:
            raise cursor.error(f"before this one of {', '.join(sorted(CALLED))}, not {name},")
        try:
            return CALLED[name](*arguments)
        except (TypeError, ValueError, RuntimeError) as error:
            raise cursor.error(f"before this {name} of other arguments ({error}),") from error
