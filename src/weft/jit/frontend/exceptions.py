"""raise and assert."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from weft import _C
from weft.jit.frontend.calls import apply_operator, call_operator
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.expressions import expr
from weft.jit.frontend.sugared import Arg, Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


class ExceptionClass(Sugared):
    """A class of exceptions."""

    def __init__(self, cls: type[BaseException]) -> None:
        self.cls = cls

    def describe(self) -> str:
        return f"the exception class {self.cls.__name__}"

    def call(self, e: Emitter, call: Call) -> Sugared:
        if call.kwargs:
            fail(f"{self.cls.__name__}: expected no keyword arguments, got one", call.range)
        return Exception_(self.cls, call.args)

    def key(self) -> Any:
        return ("exception", self.cls)


class Exception_(Sugared):
    """An exception that was made, and can only be raised."""

    def __init__(self, cls: type[BaseException], args: Sequence[Arg]) -> None:
        self.cls = cls
        self.args = args

    def describe(self) -> str:
        return f"an exception {self.cls.__name__}"

    def message(self, e: Emitter, range: SourceRange) -> Value:
        """Its text, as str() of the exception."""
        if not self.args:
            return e.constant("")
        if len(self.args) == 1:
            return text_of(e, self.args[0].value, range)
        pieces = ", ".join("{}" for _ in self.args)
        template = Arg(Simple(e.constant(f"({pieces})")), range)
        args = [Arg(shown(e, arg.value, range, "__repr__"), arg.range) for arg in self.args]
        return call_operator(e, "aten::format", Call(range, [template, *args])).value(e, range)


def shown(e: Emitter, value: Sugared, range: SourceRange, method: str = "__str__") -> Sugared:
    """A value to be put into a text: what its class says of itself, or the value."""
    if isinstance(value, Simple) and isinstance(value.v.type, ty.ClassType):
        for name in dict.fromkeys((method, "__repr__")):
            if value.has_attr(e, name):
                return value.attr(e, range, name).call(e, Call(range))
    type = value.v.type if isinstance(value, Simple) else None
    if isinstance(type, ty.ListType | ty.DictType) and _tells(e, type.children[-1]):
        from weft.jit.frontend import written

        function = written.list_text if isinstance(type, ty.ListType) else written.dict_text
        return written.call_written(e, function, range, value)
    return value


def _tells(e: Emitter, type: ty.Type) -> bool:
    """Whether values of the type are objects whose class has a __repr__, or lists of them."""
    if isinstance(type, ty.ListType | ty.DictType):
        return _tells(e, type.children[-1])
    return isinstance(type, ty.ClassType) and Simple(e.uninitialized(type)).has_attr(e, "__repr__")


def text_of(e: Emitter, value: Sugared, range: SourceRange) -> Value:
    """str(value)."""
    made = shown(e, value, range).value(e, range)
    if made.type is ty.STR:
        return made
    return apply_operator(e, "aten::str", range, Simple(made)).value(e, range)


def raise_statement(e: Emitter, node: ast.Raise) -> None:
    """raise E(...), raise E."""
    range = e.range(node)
    if node.exc is None:
        fail("raise: expected an exception, got none", range, "raise RuntimeError(message)")
    raised = expr(e, node.exc)
    if isinstance(raised, ExceptionClass):
        raised = Exception_(raised.cls, ())
    if not isinstance(raised, Exception_):
        fail(f"raise: expected an exception, got {raised.describe()}", range)
    emit_raise(e, raised.cls, raised.message(e, range), range)


def emit_raise(e: Emitter, cls: type[BaseException], message: Value, range: SourceRange) -> None:
    """The node that raises."""
    name = cls.__name__
    if cls.__module__ != "builtins":
        name = f"{cls.__module__}.{cls.__qualname__}"
        _C._jit_types[name] = cls  # raised as itself where this process knows it
    e.node("prim::RaiseException", (message,), (), {"exception": name}, range)


def raise_assertion(e: Emitter, message: ast.expr | None, range: SourceRange) -> None:
    """What a failed assert does."""
    text = e.constant("") if message is None else text_of(e, expr(e, message), range)
    emit_raise(e, AssertionError, text, range)
