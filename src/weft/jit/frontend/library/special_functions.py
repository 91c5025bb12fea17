"""Functions that the compiler knows by their Python objects."""

from __future__ import annotations

import typing
import warnings
from collections.abc import Callable
from typing import Any

from weft._C import Tensor
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import BuiltinFunction
from weft.jit.frontend.registry import find_builtin
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import UNKNOWN, Arg, Call, Sugared
from weft.jit.ir.source import SourceRange

Rule = Callable[..., Sugared]


class SpecialFunction(Sugared):
    """A function the compiler knows: len, range, isinstance, weft.jit.annotate."""

    def __init__(self, obj: Any, name: str, rule: Callable[..., Sugared]) -> None:
        self.obj, self.name, self.rule = obj, name, rule

    def describe(self) -> str:
        return f"the builtin {self.name}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        return self.rule(c, call)

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        found = find_builtin((self.obj, name))
        return super().attr(c, range, name) if found is None else SpecialFunction(self.obj, *found)

    def key(self) -> Any:
        return ("special", self.name)


def builtin_of(obj: Any) -> Sugared | None:
    """What the compiler knows of a Python object, or None."""
    if obj is typing.cast:
        return SpecialFunction(obj, "cast", _by_name_only)
    if obj is warnings.warn:
        return BuiltinFunction("aten::warn")
    mark = getattr(obj, "__weft_jit__", None)
    if isinstance(mark, str) and not isinstance(obj, Tensor):
        return SpecialFunction(obj, mark, _by_name_only)
    found = find_builtin(obj)
    return None if found is None else SpecialFunction(obj, *found)


def _by_name_only(c: Compiler, call: Call) -> Sugared:
    fail("expected a call by its own name, got it as a value", call.range)


def static_argument(c: Compiler, arg: Arg, name: str, kind: type) -> Any:
    """An argument that must be known while compiling."""
    known = arg.value.static(c)
    if known is UNKNOWN or not isinstance(known, kind):
        fail(f"{name}: expected a {kind.__name__} known while compiling, got another", arg.range)
    return known
