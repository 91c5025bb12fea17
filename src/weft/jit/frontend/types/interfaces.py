"""@interface: a type of everything that has certain methods."""

from __future__ import annotations

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.types.class_methods import ReadyMethod
from weft.jit.frontend.values import Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


@verb(("get_attr", ty.InterfaceType))
def interface_method(c: Compiler, v: Value, name: str, range: SourceRange) -> Sugared:
    """v.name for a value of an interface."""
    assert isinstance(v.type, ty.InterfaceType)
    if name not in v.type.methods:
        have = ", ".join(v.type.methods) or "none"
        fail(f"{v.type.name}: expected one of its methods ({have}), got {name!r}", range)
    return ReadyMethod(v, name)


@verb(("has_attr", ty.InterfaceType))
def has_interface_method(type: ty.InterfaceType, name: str) -> bool:
    """Whether the interface has the method."""
    return name in type.methods
