"""What functions, classes and methods of Python mean in a program."""

from __future__ import annotations

import functools
import types as python_types
from typing import Any

from weft.autograd.function import Function
from weft.jit.cache.walk import is_module
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import BuiltinFunction, operator_name
from weft.jit.frontend.language.functions import FunctionValue
from weft.jit.frontend.language.generic import GenericFunction
from weft.jit.frontend.language.ignored import (
    AutogradFunction,
    CustomOperator,
    ignored_value,
    is_custom,
)
from weft.jit.frontend.language.overloads import PythonFunction
from weft.jit.frontend.language.python_objects import PythonObject
from weft.jit.frontend.library.special_functions import builtin_of
from weft.jit.frontend.registry import verb
from weft.jit.frontend.types.names import is_library
from weft.jit.frontend.types.parameters import Compiled
from weft.jit.frontend.values import Arg, Call, Sugared
from weft.jit.ir.source import SourceRange


@verb("callable")
def callable_value(c: Compiler, obj: Any, range: SourceRange, what: str) -> Sugared | None:
    """What something that is no value means; None where it has no meaning of its own."""
    if isinstance(obj, type) and issubclass(obj, BaseException):
        return verb["exception_class"](obj)
    special = builtin_of(obj)
    if special is not None:
        return special
    if is_module(obj):
        return verb["closed_over"](c, obj, range, what)
    if isinstance(obj, type):
        return verb["class_value"](obj, what)
    if isinstance(obj, python_types.MethodType):
        return bound_method(c, obj, range, what)
    if isinstance(obj, functools.partial):
        return Partial(obj, what)
    if callable(obj):
        return function_value(c, obj, range, what)
    return None


class Partial(PythonObject):
    """functools.partial of something that can be called."""

    def call(self, c: Compiler, call: Call) -> Sugared:
        def given(value: Any) -> Arg:
            return Arg(c.sugar(value, call.range, self.what), call.range)

        first = [given(value) for value in self.obj.args]
        named = {name: given(value) for name, value in self.obj.keywords.items()}
        called = c.sugar(self.obj.func, call.range, self.what)
        return called.call(
            c, Call(call.range, [*first, *call.args], {**named, **call.kwargs}, call.hint)
        )


class NamedOperator(PythonObject):
    """An operator of weft by its name, as weft.ops.aten.add, or an overload of it."""

    def call(self, c: Compiler, call: Call) -> Sugared:
        return c.call_operator(self.obj._weft_kind, call)


def function_value(c: Compiler, obj: Any, range: SourceRange, what: str) -> Sugared | None:
    """What a callable Python object means, or None."""
    if hasattr(type(obj), "_weft_kind"):
        return NamedOperator(obj, what)
    if is_custom(obj):
        return CustomOperator(obj, what)
    compiled = getattr(obj, "_weft_compiled", None)
    if isinstance(compiled, Compiled):
        return FunctionValue(compiled)
    ignored = ignored_value(obj)
    if ignored is not None:
        return ignored
    name = operator_name(obj)
    if name is not None:
        return BuiltinFunction(name)
    if not hasattr(obj, "__code__"):
        wrapped = getattr(obj, "__wrapped__", None)
        return None if wrapped is None else function_value(c, wrapped, range, what)
    if is_library(obj):
        return GenericFunction(obj)
    return PythonFunction(obj)


def bound_method(c: Compiler, obj: Any, range: SourceRange, what: str) -> Sugared:
    """A method of a Python object found while compiling."""
    owner = obj.__self__
    is_class = isinstance(owner, type)
    if is_class and obj.__name__ == "apply" and issubclass(owner, Function):
        return AutogradFunction(owner)
    return c.sugar(owner, range, what).attr(c, range, obj.__name__)
