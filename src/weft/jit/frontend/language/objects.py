"""What Python objects mean in a program, and functions that are marked for the compiler."""

from __future__ import annotations

import enum
import functools
import types as python_types
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd.function import Function
from weft.jit.cache import reads
from weft.jit.cache.walk import is_module
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import BuiltinFunction, convert_arguments, operator_name
from weft.jit.frontend.language.comparison import contains_value
from weft.jit.frontend.language.conversions import CONSTANTS, constant_value, enum_constant, plain
from weft.jit.frontend.language.functions import FunctionValue
from weft.jit.frontend.language.generic import (
    GenericFunction,
    PythonFunction,
    signature_of_overload,
)
from weft.jit.frontend.language.python_objects import PythonModule, PythonObject
from weft.jit.frontend.library.special_calls import builtin_of
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.code import code_of, definition
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.source.resolver import resolver_of_function
from weft.jit.frontend.types.annotations import Annotations, type_of_value
from weft.jit.frontend.types.names import is_library
from weft.jit.frontend.types.signatures import (
    Compiled,
    Parameter,
    parameter_of,
    type_or_tensor,
)
from weft.jit.frontend.values import UNKNOWN, Arg, Call, Dots, Known, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


@verb("sugar")
def sugar(c: Compiler, obj: Any, range: SourceRange, what: str) -> Sugared:
    """What a Python object means where it is read."""
    reads.read(obj, c.code.source.filename)
    if isinstance(obj, Sugared):
        return obj
    if isinstance(obj, python_types.ModuleType):
        return PythonModule(obj)
    if isinstance(obj, enum.Enum):
        return Simple(enum_constant(c, obj, range))
    if isinstance(obj, CONSTANTS):
        if isinstance(obj, int) and not isinstance(obj, bool) and not -(2**63) <= obj < 2**63:
            fail(f"{what}: expected an int of 64 bits, got {obj}", range)
        return Simple(c.constant(plain(obj)))
    if obj is Ellipsis:  # by its name, as code that fx writes has it
        return Dots()
    if isinstance(obj, Tensor):
        return Simple(c.constant(obj, ty.TENSOR))
    if isinstance(obj, tuple):
        items = [c.sugar(item, range, f"{what}[{i}]") for i, item in enumerate(obj)]
        fields = getattr(type(obj), "_fields", ())
        type_ = type_of_value(obj) if fields else None
        return TupleLiteral(items, tuple(fields), type_)
    if isinstance(obj, list | dict):
        return ConstantContainer(obj, what)
    if type(obj) is _C._OpFunction and (name := operator_name(obj)) is not None:
        return BuiltinFunction(name)
    found = verb["callable"](c, obj, range, what)
    return found if found is not None else PythonObject(obj, what)


# Methods of lists and dicts that change them.
_CHANGES = {"append", "extend", "insert", "remove", "sort", "reverse"}
_CHANGES |= {"pop", "clear", "update", "setdefault", "popitem"}


class ConstantContainer(PythonObject):
    """A list or dict of the Python program. Read as a value it is a copy, so it is not changed."""

    def describe(self) -> str:
        return f"{self.what}, a {type(self.obj).__name__} of the Python program"

    def value(self, c: Compiler, range: SourceRange) -> Value:
        wanted = type_of_value(self.obj)
        if wanted is None:
            return super().value(c, range)
        return constant_value(c, self.obj, wanted, range)

    def changed(self, c: Compiler, range: SourceRange) -> Value:
        fail(f"expected something that can be changed, got {self.describe()}", range, "a copy")

    def item(self, c: Compiler, range: SourceRange, index: Sugared) -> Sugared:
        if index.static(c) is UNKNOWN and type_of_value(self.obj) is not None:
            return c.get_item(Simple(self.value(c, range)), index, range)
        return super().item(c, range, index)

    def contains(self, c: Compiler, range: SourceRange, item: Sugared) -> Sugared:
        if item.static(c) is UNKNOWN:
            return contains_value(c, item, Simple(self.value(c, range)), range)
        return super().contains(c, range, item)

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        if name in _CHANGES:
            self.changed(c, range)
        if type_of_value(self.obj) is not None:
            return Simple(self.value(c, range)).attr(c, range, name)
        return super().attr(c, range, name)


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
    """An operator by its name, as weft.ops.aten.add, or an overload of it."""

    def call(self, c: Compiler, call: Call) -> Sugared:
        return _named_operator(self.obj._weft_kind).call(c, call)


def _of_table(kind: str) -> Sugared:
    return Known(kind, lambda c, call: c.call_operator(kind, call))


_named_operator: Callable[[str], Sugared] = _of_table


def set_named_operators(find: Callable[[str], Sugared]) -> None:
    """Lets `find` give what operators mean by their names: those beyond the table, too."""
    global _named_operator
    _named_operator = find


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
        is_method, code = self.owner is not None, code_of(self.function)
        signature = signature_of_overload(self.function, is_method)
        declared = signature.parameters[is_method:]
        parameters = [parameter_of(each, type_or_tensor(each, code), code) for each in declared]
        return parameters, signature.returns or ty.TENSOR


class CustomOperator(PythonObject):
    """An operator that the program defined (weft.library): called in Python by all its arguments.
    One that weft composes of its own is compiled."""

    def describe(self) -> str:
        return f"the operator {self.obj}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        operator = self.obj._weft_custom_operator
        if operator.compiled is not None:
            return c.sugar(operator.compiled, call.range, operator.qualname).call(c, call)
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
