"""@interface: a type of everything that has certain methods."""

from __future__ import annotations

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import convert_arguments
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.types.parameters import Parameter
from weft.jit.frontend.values import Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


class InterfaceMethod(Sugared):
    """A method called through an interface."""

    def __init__(self, v: Value, name: str) -> None:
        self.v, self.name = v, name

    def describe(self) -> str:
        return f"the method {self.name} of {self.v.type.annotation}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        assert isinstance(self.v.type, ty.InterfaceType)
        schema = self.v.type.methods[self.name]
        parameters = [Parameter(a.name, a.type, a.default, a.has_default) for a in schema.args]
        values = convert_arguments(c, self.name, parameters, call)
        attrs = {"name": self.name}
        return Simple(
            c.emit("prim::CallMethod", (self.v, *values), schema.returns, attrs, call.range)
        )


@verb(("get_attr", ty.InterfaceType))
def interface_method(c: Compiler, v: Value, name: str, range: SourceRange) -> Sugared:
    """v.name for a value of an interface."""
    assert isinstance(v.type, ty.InterfaceType)
    if name not in v.type.methods:
        have = ", ".join(v.type.methods) or "none"
        fail(f"{v.type.name}: expected one of its methods ({have}), got {name!r}", range)
    return InterfaceMethod(v, name)


@verb(("has_attr", ty.InterfaceType))
def has_interface_method(type: ty.InterfaceType, name: str) -> bool:
    """Whether the interface has the method."""
    return name in type.methods
