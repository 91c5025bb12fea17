"""@interface: a type of everything that has certain methods."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import weft
from weft.jit.frontend.annotations import Annotations
from weft.jit.frontend.calls import convert_arguments
from weft.jit.frontend.conversions import Parameter
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.resolver import resolver_of_function
from weft.jit.frontend.signatures import defaults_of, signature_of, type_or_tensor
from weft.jit.frontend.source import code_of, definition
from weft.jit.frontend.sugared import Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.fresh_stack import Later
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

if TYPE_CHECKING:
    import inspect
else:
    inspect = Later("inspect")

_types: dict[type, ty.InterfaceType] = {}


def is_interface(cls: type) -> bool:
    """Whether a class was marked @interface."""
    return "__weft_interface__" in vars(cls)


def interface_type(cls: type) -> ty.InterfaceType:
    """The type of an interface class."""
    from weft.jit.frontend.classes import is_library_layer, unique_name
    from weft.jit.frontend.functions import qualified_name

    known = _types.get(cls)
    if known is not None:
        return known
    made = ty.InterfaceType(unique_name(qualified_name(cls)))
    made.is_module = issubclass(cls, weft.nn.Module)
    _types[cls] = made
    for base in reversed(cls.__mro__):
        if base is object or is_library_layer(base):
            continue
        for name, member in vars(base).items():
            if inspect.isfunction(member):
                made.methods[name] = _schema(member)
    return made


def _schema(function: Any) -> ty.FunctionSchema:
    code = code_of(function)
    node = definition(code, function.__name__)
    annotations = Annotations(code, resolver_of_function(function))
    if not isinstance(node, ast.FunctionDef):
        fail(f"{function.__qualname__}: expected a method", code.range(node))
    signature = signature_of(node, code, annotations, defaults_of(function), True)
    if signature.returns is None:
        fail(
            f"{function.__qualname__}: expected a return annotation in an interface, got none",
            code.range(node),
            f"def {node.name}(...) -> Tensor",
        )
    args = tuple(
        ty.Argument(
            each.name,
            type_or_tensor(each, code),
            each.default if each.has_default else None,
            each.has_default,
        )
        for each in signature.parameters[1:]
    )
    return ty.FunctionSchema(node.name, args, signature.returns)


class InterfaceMethod(Sugared):
    """A method called through an interface."""

    def __init__(self, v: Value, name: str) -> None:
        self.v, self.name = v, name

    def describe(self) -> str:
        return f"the method {self.name} of {self.v.type.annotation}"

    def call(self, e: Emitter, call: Call) -> Sugared:
        assert isinstance(self.v.type, ty.InterfaceType)
        schema = self.v.type.methods[self.name]
        parameters = [Parameter(a.name, a.type, a.default, a.has_default) for a in schema.args]
        values = convert_arguments(e, self.name, parameters, call)
        attrs = {"name": self.name}
        return Simple(
            e.emit("prim::CallMethod", (self.v, *values), schema.returns, attrs, call.range)
        )


def interface_method(e: Emitter, range: SourceRange, v: Value, name: str) -> Sugared:
    """v.name for a value of an interface."""
    assert isinstance(v.type, ty.InterfaceType)
    if name not in v.type.methods:
        have = ", ".join(v.type.methods) or "none"
        fail(f"{v.type.name}: expected one of its methods ({have}), got {name!r}", range)
    return InterfaceMethod(v, name)
