"""The text of a value: str(), repr() and what goes into an f-string."""

from __future__ import annotations

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.library import prelude
from weft.jit.frontend.values import Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


def shown(c: Compiler, value: Sugared, range: SourceRange, method: str = "__str__") -> Sugared:
    """A value to be put into a text: what its class says of itself, or the value."""
    if isinstance(value, Simple) and isinstance(value.v.type, ty.ClassType):
        for name in dict.fromkeys((method, "__repr__")):
            if value.has_attr(c, name):
                return value.attr(c, range, name).call(c, Call(range))
    type = value.v.type if isinstance(value, Simple) else None
    if isinstance(type, ty.ListType | ty.DictType) and _tells(c, type.children[-1]):
        function = prelude.list_text if isinstance(type, ty.ListType) else prelude.dict_text
        return c.call(function, range, value)
    return value


def _tells(c: Compiler, type: ty.Type) -> bool:
    """Whether values of the type are objects whose class has a __repr__, or lists of them."""
    if isinstance(type, ty.ListType | ty.DictType):
        return _tells(c, type.children[-1])
    return isinstance(type, ty.ClassType) and Simple(c.uninitialized(type)).has_attr(c, "__repr__")


def text_of(c: Compiler, value: Sugared, range: SourceRange) -> Value:
    """str(value)."""
    made = shown(c, value, range).value(c, range)
    if made.type is ty.STR:
        return made
    return c.apply("aten::str", range, Simple(made)).value(c, range)


def repr_of(c: Compiler, value: Sugared, range: SourceRange) -> Sugared:
    """repr(value)."""
    told = shown(c, value, range, "__repr__")
    if told is not value:
        return told
    return c.apply("aten::repr", range, value)
