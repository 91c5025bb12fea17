"""Constants: their types, and their text.

What IR alone cannot know (dtypes, devices, tensors) is told by `register`: see weft.jit.literals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft.jit.ir import types as ty
from weft.jit.ir.record import record


@record(frozen=True)
class LiteralKind:
    """A Python class whose objects may be constants. `text` None: shown as `<name>`."""

    python: type
    type: ty.Type
    text: Callable[[Any], str] | None


_KINDS: list[LiteralKind] = []
# Readers of dotted names ("torch.float32") and of calls ("device("cpu")"), by first name.
NAMED: dict[str, Callable[[str], Any]] = {}
CALLED: dict[str, Callable[..., Any]] = {"complex": complex}

_PLAIN: dict[type, ty.Type] = {
    type(None): ty.NONE,
    bool: ty.BOOL,
    int: ty.INT,
    float: ty.FLOAT,
    complex: ty.COMPLEX,
    str: ty.STR,
}


def register(python: type, type: ty.Type, text: Callable[[Any], str] | None) -> None:
    """Objects of the class `python` are constants of the type, printed by `text`."""
    _KINDS.append(LiteralKind(python, type, text))


def _kind_of(value: Any) -> LiteralKind | None:
    return next((kind for kind in _KINDS if isinstance(value, kind.python)), None)


def type_of_constant(value: Any) -> ty.Type:
    """The type of a Python value as a constant. TypeError for what cannot be one.

    >>> type_of_constant([1, 2])
    int[]
    """
    if type(value) in _PLAIN:
        return _PLAIN[type(value)]
    if isinstance(value, ty.EnumValue):
        return value.type
    if isinstance(value, tuple):
        return ty.TupleType(tuple(type_of_constant(item) for item in value))
    if isinstance(value, list) and value:
        types = {type_of_constant(item) for item in value}
        if len(types) == 1:
            return ty.ListType(types.pop())
    kind = _kind_of(value)
    if kind is None:
        raise TypeError(f"constant: expected a value the program can hold, got {value!r}")
    return kind.type


def own(tensor: Any) -> Any:
    """The tensor, as one that programs alone have: it will never require a gradient."""
    if not tensor.requires_grad:
        tensor._weft_own = True
    return tensor


def is_own(tensor: Any) -> bool:
    """Whether programs alone have a constant."""
    return getattr(tensor, "_weft_own", False)


def text_of(value: Any) -> str:
    """The text of an attribute or constant. What cannot be read back stands in angle brackets."""
    if value is None or isinstance(value, bool) or type(value) is int:
        return str(value)
    if type(value) is float:
        return float_text(value)
    if type(value) is complex:
        return f"complex({float_text(value.real)}, {float_text(value.imag)})"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, list):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(text_of, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{text_of(k)}: {text_of(v)}' for k, v in value.items())}}}"
    if isinstance(value, ty.Type):
        return f"type({value})"
    if isinstance(value, ty.EnumValue):
        return str(value)
    kind = _kind_of(value)
    if kind is not None:
        return kind.text(value) if kind.text is not None else f"<{kind.type}>"
    if hasattr(value, "graph") and hasattr(value, "arg_names"):  # a Function
        return f"@{value.name}"
    return f"<{getattr(value, '__qualname__', type(value).__qualname__)}>"


def float_text(value: float) -> str:
    """A float as the IR and archives write it."""
    if math.isnan(value):
        return "nan"
    return repr(value) if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def quote(text: str) -> str:
    """The text as a Python literal in double quotes, on one line."""
    body = repr("'" + text)[2:-1]  # with ' inside, repr uses " unless the text has one too
    if repr("'" + text)[0] == "'":
        body = body[1:].replace("\\'", "'").replace('"', '\\"')
    return f'"{body}"'
