"""Schemas as text: split into arguments and results, types left as they are written.

Quicker and laxer than `weft._ops.schema.parse`, for the types of the builtins too.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class BuiltinArg(NamedTuple):
    """An argument: `type` without alias marks, `alias` ("a!", "a -> *") and default as written."""

    name: str
    type: str
    default: str | None
    kwarg_only: bool
    alias: str

    @property
    def is_written(self) -> bool:
        """Whether the operator changes it: `t[](a!) self`."""
        return "!" in self.alias


def split_schema(text: str) -> tuple[tuple[BuiltinArg, ...], tuple[str, ...], bool]:
    """Arguments, result types, and whether the arguments end in `...`.

    >>> args, returns, varargs = split_schema("pop.t(t[](a!) self, int idx=-1) -> t(*)")
    >>> [(arg.name, arg.type, arg.alias, arg.default) for arg in args], returns, varargs
    ([('self', 't[]', 'a!', None), ('idx', 'int', '', '-1')], ('t(*)',), False)
    """
    inner, after = _bracketed(text, text.index("("))
    result = text[after:].strip()
    if not result.startswith("->"):
        raise ValueError(f"schema: expected '->' after the arguments, got {text!r}")
    args: list[BuiltinArg] = []
    kwarg_only = varargs = False
    for part in _split_commas(inner):
        if part == "*":
            kwarg_only = True
        elif part == "...":
            varargs = True
        else:
            args.append(_argument(part, kwarg_only))
    result = result[2:].strip()
    if result.startswith("(") and _bracketed(result, 0)[1] == len(result):
        returns = tuple(_split_commas(result[1:-1]))
    else:
        returns = (result,)
    return tuple(args), returns, varargs


def _argument(text: str, kwarg_only: bool) -> BuiltinArg:
    declaration, equals, default = text.partition("=")
    type_, _, name = declaration.rpartition(" ")
    plain, alias = strip_alias(type_)
    return BuiltinArg(name, plain, default if equals else None, kwarg_only, alias)


def strip_alias(type_: str) -> tuple[str, str]:
    """A type without its first alias mark, and the mark: "t[](a!)" gives ("t[]", "a!").

    >>> strip_alias("Dict(str, t)(a!)"), strip_alias("t(*)?"), strip_alias("((str, t)[])")
    (('Dict(str, t)', 'a!'), ('t?', '*'), ('((str, t)[])', ''))
    """
    match = re.search(r"(?<!Future)\((\*|[a-z]!?(?: -> \*)?|[a-z]\|[a-z])\)", type_)
    if match is None:
        return type_, ""
    return type_[: match.start()] + type_[match.end() :], match.group(1)


def _bracketed(text: str, start: int) -> tuple[str, int]:
    """What is inside the brackets that open at `start`, and the place after them."""
    depth, quote = 0, ""
    for at in range(start, len(text)):
        char = text[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
            if depth == 0:
                return text[start + 1 : at], at + 1
    raise ValueError(f"schema: expected balanced brackets, got {text!r}")


def _split_commas(text: str) -> list[str]:
    """The parts between commas outside of brackets and quotes."""
    parts, depth, quote, last = [], 0, "", 0
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[last:at].strip())
            last = at + 1
    parts.append(text[last:].strip())
    return [part for part in parts if part]
