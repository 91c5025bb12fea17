"""Types of arguments of operators that are written in Python: what the extension refuses.

The table's operators read their arguments by their schemas. Those that PyTorch has as operators and
weft writes in Python have annotations instead, and the extension asks here once for each function
which classes of Python none of its arguments may be of. What it does not know, as an array or a
number that a trace records, is left to the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

CO_VARARGS = 4  # of inspect, whose import costs a third of weft's
# One integer for all dimensions, or one for each: PyTorch's int[]. The annotation is what is read.
Ints: TypeAlias = Any
OptionalInts: TypeAlias = Any
IntsOrText: TypeAlias = Any

# The bits of Kind in csrc/bindings/torch_function.cpp.
_BOOL, _INT, _FLOAT, _COMPLEX, _TEXT, _NONE, _SEQUENCE, _ELEMENTS = (1 << i for i in range(8))
_ALL = _ELEMENTS - 1
_INTS = _ALL & ~(_INT | _SEQUENCE) | _ELEMENTS  # bools and floats are refused inside, too
_REFUSED = {
    "Tensor": _ALL,
    "bool": _ALL & ~_BOOL,
    "int": _ALL & ~_INT,
    "float": _ALL & ~(_BOOL | _INT | _FLOAT),
    "str": _ALL & ~_TEXT,
    "_Ints": _INTS,
    "_OptionalInts": _INTS & ~_NONE,
    "_IntsOrText": _INTS & ~_TEXT,
    "Sequence[Tensor]": _ALL & ~_SEQUENCE,
    "None": _ALL & ~_NONE,
}
_SPELLED = {
    "_Ints": "int or tuple of ints",
    "_OptionalInts": "int or tuple of ints or None",
    "_IntsOrText": "int or tuple of ints or str",
}


def _own(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def refused_kinds(function: Any) -> tuple[tuple[str, ...], bytes]:
    """The names of an operator's parameters, and for each the bits of what it may not be; nothing
    for functions that are Python's in PyTorch.

    >>> def scale(input: Tensor, by: float | None): ...
    >>> scale._weft_operator = True
    >>> refused_kinds(scale)
    (('input', 'by'), b'\\x7fX')
    """
    if not function._weft_operator:
        return (), b""
    code, types = _own(function).__code__, function.__annotations__
    takes_more = bool(code.co_flags & CO_VARARGS)  # by position, where the others' names follow
    count = code.co_argcount + (0 if takes_more else code.co_kwonlyargcount)
    names = code.co_varnames[:count]
    return names, bytes(_mask(types.get(name, "Any")) for name in names)


def _mask(annotation: Any) -> int:
    mask = _ALL | _ELEMENTS
    for part in str(annotation).split(" | "):
        mask &= _REFUSED.get(part, 0)
    return mask


def refuse(function: Callable[..., Any], name: str, value: Any) -> NoReturn:
    """Raises the TypeError of an argument of another type."""
    wanted = str(function.__annotations__[name])
    wanted = _SPELLED.get(wanted, wanted.replace(" | ", " or "))
    got = type(value).__name__
    if isinstance(value, (tuple, list)) and "tuple of ints" in wanted:
        got += " with " + next((type(e).__name__ for e in value if type(e) is not int), "int")
    raise TypeError(f"{function.__name__}: expected argument {name!r} of type {wanted}, got {got}")
