"""The variables of a printed function."""

from __future__ import annotations

import keyword
import re

from weft.jit.ir.value import Value

# Names that mean something in the code of archives.
_RESERVED = frozenset(
    (
        *keyword.kwlist,
        *("torch", "ops", "CONSTANTS", "__torch__", "annotate", "unchecked_cast", "uninitialized"),
        *("fork", "inf", "nan", "Tensor", "Device", "NoneType", "Generator", "number", "Future"),
        *("List", "Dict", "Tuple", "Optional", "Union", "Any", "Final", "bool", "complex"),
        *("float", "getattr", "int", "isinstance", "print", "range", "str", "list", "tuple"),
        *("dict", "self", "match", "case", "device", "is_scripting", "hasattr", "len", "Stream"),
    )
)
_NUMBER = re.compile(r"\.\d+$")  # by which the IR tells values of one name apart
_TEMPORARY = re.compile(r"(_\d+)*")


def is_name(text: str) -> bool:
    """Whether an attribute can be read by a dot and its name: "in" and "0" cannot."""
    return text.isidentifier() and not keyword.iskeyword(text)


class Variables:
    """Gives each value a variable: by the name it has in the source, or `_0`, `_1`, ..."""

    def __init__(self) -> None:
        self._texts: dict[Value, str] = {}
        self._taken: set[str] = set(_RESERVED)
        self._temporaries = 0

    def __contains__(self, value: Value) -> bool:
        return value in self._texts

    def of(self, value: Value) -> str:
        """The text by which a value is read."""
        return self._texts[value]

    def set(self, value: Value, text: str) -> None:
        """A value is read by a text that is there already."""
        self._texts[value] = text
        self._taken.add(text)

    def define(self, value: Value) -> str:
        """A new variable for a value."""
        base = _NUMBER.sub("", value.name)
        base = re.sub(r"\W", "_", base, flags=re.ASCII)
        if not base or base[0].isdigit() or _TEMPORARY.fullmatch(base):
            text = self.temporary()
        else:
            text = self._unused(base)
        self._texts[value] = text
        return text

    def temporary(self) -> str:
        """A new variable for a value without a name."""
        while (text := f"_{self._temporaries}") in self._taken:
            self._temporaries += 1
        self._taken.add(text)
        return text

    def _unused(self, base: str) -> str:
        text, number = base, 0
        while text in self._taken:
            text, number = f"{base}{number}", number + 1
        self._taken.add(text)
        return text
