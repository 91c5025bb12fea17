"""@ignore, @unused: Python functions that are not compiled."""

from __future__ import annotations

from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import convert_arguments
from weft.jit.frontend.language.python_objects import PythonObject
from weft.jit.frontend.source.code import code_of, definition
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.source.resolver import resolver_of_function
from weft.jit.frontend.types.annotations import Annotations
from weft.jit.frontend.types.parameters import Parameter
from weft.jit.frontend.types.signatures import (
    defaults_of,
    parameter_of,
    signature_of,
    type_or_tensor,
)
from weft.jit.frontend.values import Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value

IGNORE, UNUSED, EXPORT, COPY = "ignore", "unused", "export", "copy"
MODE = "_weft_jit_mode"


def mode_of(function: Any) -> str | None:
    """How a function was marked: by @ignore, @unused, @export, or not at all."""
    return getattr(function, MODE, None)


def is_custom(obj: Any) -> bool:
    """Whether an object stands for an operator that a program defined."""
    return getattr(type(obj), "_weft_custom_operator", None) is not None


def ignored_value(function: Any, owner: Value | None = None) -> Sugared | None:
    """What a marked function means; None for a function that is compiled. `owner` is its self."""
    mode = mode_of(function)
    if mode not in (IGNORE, UNUSED):
        return None
    return IgnoredFunction(function, mode == UNUSED, owner)


class IgnoredFunction(Sugared):
    """A function that stays Python (@ignore), or whose call raises (@unused)."""

    def __init__(self, function: Any, raises: bool, owner: Value | None) -> None:
        self.function = getattr(function, "__func__", function)
        self.raises = raises
        self.owner = owner

    def describe(self) -> str:
        return f"the function {self.function.__qualname__}, which is not compiled"

    def call(self, c: Compiler, call: Call) -> Sugared:
        parameters, returns = self._signature()
        name = self.function.__qualname__
        values = convert_arguments(c, name, parameters, call)
        if self.raises:
            text = f"{name} is marked @unused: it cannot be called in a compiled program"
            c.raise_error(RuntimeError, c.constant(text), call.range)
            return Simple(c.uninitialized(returns))
        if self.owner is not None:
            values = [self.owner, *values]
        attrs = {"callable": self.function}
        return Simple(c.emit("prim::CallPython", values, returns, attrs, call.range))

    def key(self) -> Any:
        return ("ignored", self.function, self.owner)

    def _signature(self) -> tuple[list[Parameter], ty.Type]:
        code = code_of(self.function)
        node: Any = definition(code, self.function.__name__)
        annotations = Annotations(code, resolver_of_function(self.function))
        is_method = self.owner is not None
        signature = signature_of(node, code, annotations, defaults_of(self.function), is_method)
        declared = signature.parameters[1:] if is_method else signature.parameters
        parameters = [parameter_of(each, type_or_tensor(each, code), code) for each in declared]
        return parameters, signature.returns or ty.TENSOR


class CustomOperator(PythonObject):
    """An operator that the program defined (weft.library): called in Python by all its
    arguments."""

    def describe(self) -> str:
        return f"the operator {self.obj}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        operator = self.obj._weft_custom_operator
        parameters = [
            Parameter(a.name, a.type, a.default, a.has_default, a.kwarg_only, a.length)
            for a in operator.program_schema.args
        ]
        values = convert_arguments(c, operator.qualname, parameters, call)
        attrs = {"callable": operator.flat}
        return Simple(c.emit("prim::CallPython", values, operator.program_type, attrs, call.range))

    def key(self) -> Any:
        return ("custom operator", self.obj._weft_custom_operator)


class AutogradFunction(Sugared):
    """F.apply of an autograd function: called in Python, which records its backward."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls

    def describe(self) -> str:
        return f"the autograd function {self.cls.__qualname__}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        if call.kwargs:
            fail(f"{self.cls.__qualname__}: expected no keyword arguments, got some", call.range)
        values = [arg.value.value(c, arg.range) for arg in call.args]
        attrs = {"callable": self.cls.apply}
        return Simple(c.emit("prim::CallPython", values, self._returns(), attrs, call.range))

    def key(self) -> Any:
        return ("autograd function", self.cls)

    def _returns(self) -> ty.Type:
        """What forward declares; one tensor if nothing."""
        forward = self.cls.forward
        code = code_of(forward)
        node: Any = definition(code, forward.__name__)
        reader = Annotations(code, resolver_of_function(forward))
        declared = None if node.returns is None else reader.read(node.returns)
        return declared if isinstance(declared, ty.Type) else ty.TENSOR
