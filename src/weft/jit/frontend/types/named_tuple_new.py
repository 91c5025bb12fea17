"""NamedTuple classes with a __new__ of their own."""

from __future__ import annotations

from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.types.tuples import NamedTupleClass, TupleFunction
from weft.jit.frontend.values import Call, Sugared
from weft.jit.ir.source import SourceRange


class TupleClass(NamedTupleClass):
    """A NamedTuple class as programs name it: a call does what its __new__ does."""

    def call(self, c: Compiler, call: Call) -> Sugared:
        return New(self.cls).call(c, call.behind(self)._replace(hint=None))

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        return New(self.cls) if name == "__new__" else super().attr(c, range, name)


class New(Sugared):
    """Cls.__new__(cls, ...): what is written in the body of Cls or of its bases."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls

    def describe(self) -> str:
        return f"the function {self.cls.__name__}.__new__"

    def call(self, c: Compiler, call: Call) -> Sugared:
        made = call.args[0].value if call.args else None
        if not isinstance(made, NamedTupleClass):
            fail("__new__: expected a NamedTuple class as first argument, got none", call.range)
        writer = next(base for base in self.cls.__mro__ if "__new__" in vars(base))
        rest = call._replace(args=call.args[1:], hint=None)
        if "_fields" in vars(writer):  # namedtuple made both
            return NamedTupleClass.call(made, c, rest)
        before, c.owner = c.owner, Super(writer)
        try:
            written = TupleFunction(writer, vars(writer)["__new__"].__func__, made)
            return written.call(c, rest)
        finally:
            c.owner = before


class Super(Sugared):
    """super() inside of __new__."""

    def __init__(self, after: type) -> None:
        self.after = after

    def describe(self) -> str:
        return "super()"

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        if name != "__new__":
            fail(f"super(): expected __new__ inside of __new__, got {name!r}", range)
        return New(self.after.__mro__[1])
