"""Operators that weft composes in Python, for hosts: tools/gen/composed.txt.

A line has where libtorch has the operator (function, method, both) and its schema. Lines below it
that begin with spaces are a body in the language of archives; without one the body is a call of the
operator's name.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from weft._ops.schema import Arg, Schema, base_of, is_list, is_optional, parse

_LISTED = Path(__file__).with_suffix(".txt")
_TYPES = {
    "Scalar": "number", "ScalarType": "dtype", "Layout": "int", "MemoryFormat": "int",
    "Generator": "int",
}  # fmt: skip
# What no composition takes: anything but what these may be is refused.
_ONLY = {
    "Layout": ("{0} is None or {0} == 0", "a strided layout"),
    "MemoryFormat": ("{0} is None or {0} == 1", "torch.preserve_format"),
    "Generator": ("{0} is None", "no generator"),
}


class Composed(NamedTuple):
    """An operator of the list."""

    schema: Schema
    variants: str  # "function", "method", "both"
    body: tuple[str, ...]

    @property
    def function(self) -> str:
        """The name of the function that is compiled."""
        return self.schema.key.replace(".", "__")

    def text(self) -> str:
        """The function as code of an archive."""
        parameters = ", ".join(map(_parameter, self.schema.args))
        checks = [_check(self.schema.name, arg) for arg in self.schema.args if arg.base in _ONLY]
        call = f"torch.{self.schema.name}({', '.join(self._given())})"
        if [each.type for each in self.schema.returns] == ["ScalarType"]:
            call = f"dtype_of({call})"  # archives have numbers
        body = self.body or (f"return {call}",)
        lines = [f"def {self.function}({parameters}):", *checks, *body]
        return "".join(f"{line}\n" if i == 0 else f"  {line}\n" for i, line in enumerate(lines))

    def _given(self) -> list[str]:
        passed = [each for each in self.schema.args if not _is_checked(each)]
        return [f"{a.name}={a.name}" if a.kwarg_only else a.name for a in passed]


def load() -> list[Composed]:
    """The operators in the order of the list."""
    found: list[Composed] = []
    for line in _LISTED.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            found[-1] = found[-1]._replace(body=(*found[-1].body, line[2:]))
        elif line:
            variants, _, text = line.partition(" ")
            found.append(Composed(parse(text), variants, ()))
    return found


def _is_checked(arg: Arg) -> bool:
    return arg.base in _ONLY or arg.name == "pin_memory"


def _check(name: str, arg: Arg) -> str:
    condition, wanted = _ONLY[arg.base]
    return f'assert {condition.format(arg.name)}, "{name}: expected {wanted}, got another one"'


def _parameter(arg: Arg) -> str:
    text = f"{arg.name}: {_type(arg.type)}"
    if not arg.has_default:
        return text
    length = arg.type.partition("[")[2].partition("]")[0]
    repeats = length and arg.default is not None and not isinstance(arg.default, tuple)
    value = [arg.default] * int(length) if repeats else arg.default
    return f"{text}={list(value) if isinstance(value, tuple) else value!r}"


def _type(text: str) -> str:
    if is_optional(text):
        return f"Optional[{_type(text[:-1])}]"
    if is_list(text):
        return f"List[{_type(text[: text.rindex('[')])}]"
    return _TYPES.get(base_of(text), text)
