"""Schemas of operators: arguments and results, made of the parts into which tools/gen/facts.py took
their text apart."""

from __future__ import annotations

from functools import cache
from typing import Any

from weft import _C
from weft.jit.ir import parse_type
from weft.jit.ir import types as ty
from weft.jit.ir.record import record

# Types that only schemas know. The frontend knows better than they which enums and classes fit.
_SCHEMA_TYPES = {"AnyEnumType": ty.ANY, "AnyClassType": ty.ANY, "AnyClassType?": ty.ANY}


@record(frozen=True)
class Arg:
    """An argument. `length` is the 2 of `int[2]`: one number may stand for the list."""

    name: str
    type: ty.Type
    default: Any
    has_default: bool
    kwarg_only: bool
    length: int | None
    alias: str  # "a!", "a", "a -> *", or empty

    @property
    def is_written(self) -> bool:
        """Whether the operator changes it."""
        return "!" in self.alias


@record(frozen=True)
class Return:
    """A result; `alias` as for arguments, "*" where it may share memory with any item of one."""

    name: str
    type: ty.Type
    alias: str


@record(frozen=True)
class Schema:
    """A parsed schema. With `varargs` the last argument is a tuple of all further ones."""

    kind: str
    args: tuple[Arg, ...]
    returns: tuple[Return, ...]
    varargs: bool

    def arg(self, name: str) -> Arg:
        """The argument of that name; KeyError where there is none."""
        for arg in self.args:
            if arg.name == name:
                return arg
        raise KeyError(f"{self.kind}: expected the name of an argument, got {name!r}")


def parse(kind: str, parts: list[Any]) -> Schema:
    """A schema of the parts that tools/gen/facts.py took it apart into."""
    args, returns, varargs = parts
    parsed = [_arg(*each) for each in args]
    if varargs:
        parsed.append(Arg("args", ty.ANY, None, False, False, None, ""))
    results = tuple(Return(name, type_of_text(type_), alias) for name, type_, alias in returns)
    return Schema(kind, tuple(parsed), results, varargs)


def _arg(
    name: str, type_: str, has_default: bool, default: Any, kwarg_only: bool, alias: str
) -> Arg:
    length = type_.removesuffix("?").removesuffix("]").rpartition("[")[2]
    count = int(length) if length.isdecimal() else None
    parsed = type_of_text(type_)
    return Arg(name, parsed, _default(default, parsed), has_default, kwarg_only, count, alias)


@cache
def type_of_text(text: str) -> ty.Type:
    """The type of a part of a schema."""
    return _SCHEMA_TYPES.get(text) or parse_type(text)


def _default(value: Any, type_: ty.Type) -> Any:
    if value is not None and (type_ is ty.DTYPE or ty.DTYPE in type_.children):
        return next(dtype for dtype in _C._dtypes if dtype._number == value)
    return float(value) if type_ is ty.FLOAT and value is not None else value
