"""Constants in the code of an archive."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.jit.archive.numbers import number_of
from weft.jit.frontend.types.classes import enum_type
from weft.jit.ir import types as ty
from weft.jit.ir.literals import float_text, quote

LAYOUTS = {_C.strided: 0}


def plain(value: Any) -> Any:
    """A constant as TorchScript has it: dtypes, layouts and memory formats are numbers there."""
    if isinstance(value, _C.dtype):
        return number_of(value)
    if isinstance(value, _C.layout):
        return LAYOUTS[value]
    if isinstance(value, _C.memory_format):
        return _C._memory_formats.index(value)
    return value


def is_literal(value: Any) -> bool:
    """Whether a value can stand where archives have literals only: for constants of classes."""
    if type(value) in (list, tuple):
        return all(map(is_literal, value))
    is_finite = type(value) is float and math.isfinite(value)
    return value is None or type(value) in (bool, int, str) or is_finite


def is_default(value: Any) -> bool:
    """Whether a value can stand where archives have the default of an argument."""
    if type(value) is tuple:
        return all(map(is_default, value))
    return isinstance(value, enum.Enum | ty.EnumValue | _C.device | float) or is_literal(value)


class Constants:
    """The texts of constants. `tensors` are named CONSTANTS.c0, CONSTANTS.c1, ... in them."""

    def __init__(self, enum_name: Callable[[ty.Type], str]) -> None:
        self.tensors: list[Any] = []
        self._enum_name = enum_name

    def text(self, value: Any) -> str | None:
        """The text; None for values that archives cannot hold."""
        value = plain(value)
        if value is None or isinstance(value, bool):
            return str(value)
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, list | tuple):
            return self._items(value)
        if isinstance(value, enum.Enum):
            value = ty.EnumValue(enum_type(type(value), None), value.name)
        if isinstance(value, ty.EnumValue):
            return f"{self._enum_name(value.type)}.{value.name}"
        if isinstance(value, _C.device):
            return f"torch.device({quote(str(value))})"
        return next((text(value) for kind, text in _PLAIN.items() if type(value) is kind), None)

    def _tensor(self, value: Any) -> str:
        known = [place for place, each in enumerate(self.tensors) if each is value]
        if not known:
            known.append(len(self.tensors))
            self.tensors.append(value)
        return f"CONSTANTS.c{known[0]}"

    def _items(self, values: list[Any] | tuple[Any, ...]) -> str | None:
        texts = [self.text(each) for each in values]
        if None in texts:
            return None
        listed = ", ".join(map(str, texts))
        if isinstance(values, list):
            return f"[{listed}]"
        return f"({listed}{',' if len(values) == 1 else ''})"


def _complex(value: complex) -> str:
    return f"complex({float_text(value.real)}, {float_text(value.imag)})"


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}


def _string(value: str) -> str:
    """In double quotes; other control characters by their numbers in base 8."""
    return f'"{"".join(map(_character, value))}"'


def _character(c: str) -> str:
    return _ESCAPES.get(c) or (c if c.isprintable() or ord(c) > 126 else f"\\{ord(c):03o}")


_PLAIN: dict[type, Callable[[Any], str]] = {
    int: str,
    float: float_text,
    complex: _complex,
    str: _string,
}
