"""Methods of classes: how they are compiled and called."""

from __future__ import annotations

import ast
from types import FunctionType
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import convert_arguments
from weft.jit.frontend.language.functions import begin, compile_body
from weft.jit.frontend.language.generic import (
    call_template,
    choose_overload,
    overload_parameters,
    overloads_of,
    template_of,
)
from weft.jit.frontend.library.dataclass_methods import written_method
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.code import Code, code_of, definition, unwrapped
from weft.jit.frontend.source.errors import compiling, fail
from weft.jit.frontend.source.resolver import Resolver, resolver_of_function
from weft.jit.frontend.types.annotations import GENERIC, Annotations
from weft.jit.frontend.types.classes import ClassInfo, info_of
from weft.jit.frontend.types.names import is_library
from weft.jit.frontend.types.signatures import (
    Compiled,
    Declared,
    Parameter,
    defaults_of,
    parameter_of,
    signature_of,
)
from weft.jit.frontend.values import Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.record import NamedTuple


class ReadyMethod(Sugared):
    """A method without a Python function: it came as text, or compiled, or is an interface's."""

    def __init__(self, v: Value, name: str) -> None:
        self.v, self.name = v, name

    def describe(self) -> str:
        return f"the method {self.name} of {self.v.type.annotation}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        if isinstance(self.v.type, ty.InterfaceType):
            schema = self.v.type.methods[self.name]
            given = schema.args
        else:
            assert isinstance(self.v.type, ty.ClassType)
            schema = self.v.type.methods[self.name].schema
            given = schema.args[1:]
        parameters = [Parameter(a.name, a.type, a.default, a.has_default) for a in given]
        values = convert_arguments(c, self.name, parameters, call)
        attrs = {"name": self.name}
        return Simple(
            c.emit("prim::CallMethod", (self.v, *values), schema.returns, attrs, call.range)
        )


class Method(Sugared):
    """A method of an object, compiled when it is called. `name` is the one it is kept under."""

    def __init__(self, v: Value, name: str, function: Any) -> None:
        self.v, self.name = v, name
        self.function = getattr(function, "_jit_form", function)

    def describe(self) -> str:
        return f"the method {self.function.__qualname__}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        info = info_of(self.v.type)
        template = open_template(self.function)
        with compiling(self.function.__qualname__, c.name, call.range):
            if template is not None:
                return call_template(c, template, call, Simple(self.v))
            name = self.name
            if overloads_of(self.function):
                name = self._overload(c, call)
            compiled = info.compiled.get(name)
            if compiled is None or compiled.error is not None:
                compiled = compile_as_method(info, name, self.function)
        return invoke(c, self.v, compiled, name, call)

    def _overload(self, c: Compiler, call: Call) -> str:
        info = info_of(self.v.type)
        found = [
            overload_parameters(each, self.function, True) for each in overloads_of(self.function)
        ]
        qualname = self.function.__qualname__
        chosen = choose_overload(c, qualname, [p for p, _ in found], call)
        for index, each in enumerate(found):
            name = f"{self.name}__{index}"
            known = info.compiled.get(name)
            if known is None or known.error is not None:
                compile_as_method(info, name, self.function, each)
        return f"{self.name}__{chosen}"

    def key(self) -> Any:
        return ("method", self.v, self.name)


def invoke(c: Compiler, v: Value, compiled: Compiled, name: str, call: Call) -> Sugared:
    """The call of a compiled method."""
    values = convert_arguments(c, name, compiled.parameters[1:], call)
    returns = compiled.known_return(call.range)
    return Simple(c.emit("prim::CallMethod", (v, *values), returns, {"name": name}, call.range))


_open: dict[Any, Any] = {}


def open_template(function: Any) -> Any:
    """The template of a method of weft's own classes whose annotations are open; else None."""
    if not is_library(function):
        return None
    if function not in _open:
        made = template_of(function, is_method=True)
        is_open = made.signature.varargs is not None or any(
            each.type is None or each.type is GENERIC for each in made.signature.parameters
        )
        _open[function] = made if is_open else None
    return _open[function]


@verb("compile_method")
def compile_method(info: ClassInfo, name: str, caller: str, range: Any) -> Compiled:
    """The method of that name, compiled if it is not yet."""
    known = info.compiled.get(name)
    if known is not None and known.error is None:
        return known
    found = info.find(name)
    if isinstance(found, property):
        found = found.fget
    function = getattr(found, "__func__", found)
    if not isinstance(function, FunctionType):
        fail(f"{info.python_class.__name__}: expected a method {name!r}, got none", range)
    with compiling(function.__qualname__, caller, range):
        return compile_as_method(info, name, getattr(function, "_jit_form", function))


class Text(NamedTuple):
    """A method as it is written. `owner` is the class in whose body it stands."""

    node: ast.FunctionDef | ast.Lambda
    code: Code
    resolver: Resolver
    defaults: dict[str, Any]
    owner: type
    library: bool
    qualname: str
    function: Any = None


def compile_as_method(
    info: ClassInfo, name: str, function: Any, overload: tuple[list[Parameter], Any] | None = None
) -> Compiled:
    """Compiles a Python function as a method of a class, under a name."""
    owner = _owner_class(info.python_class, function)
    written = written_method(owner, function)
    decorated, function = function, unwrapped(function)
    code = code_of(function) if written is None else written[1]
    node = definition(code, function.__name__, function) if written is None else written[0]
    if not isinstance(node, ast.FunctionDef | ast.Lambda):
        fail(f"{function.__qualname__}: expected a method", code.range(node))
    text = Text(
        node,
        code,
        resolver_of_function(function, info.extra, info.names()),
        defaults_of(function),
        owner,
        is_library(function),
        function.__qualname__,
        decorated,
    )
    return _compile(info, name, text, overload)


def compile_text_as_method(
    info: ClassInfo, node: ast.FunctionDef, code: Code, resolver: Resolver
) -> Compiled:
    """Compiles a definition that is no Python function as a method of a class."""
    text = Text(node, code, resolver, {}, info.python_class, False, node.name)
    return _compile(info, node.name, text, None)


def _compile(
    info: ClassInfo, name: str, text: Text, overload: tuple[list[Parameter], Any] | None
) -> Compiled:
    node, code = text.node, text.code
    annotations = Annotations(code, text.resolver, text.library)
    annotations.own, annotations.bases = info.type, info.python_class.__mro__[:-1]
    if overload is None:
        signature = signature_of(node, code, annotations, text.defaults, True, text.library)
        if not signature.parameters:
            where = code.range(node)
            fail(f"{text.qualname}: expected self as first argument, got none", where)
        parameters = [_parameter(each, code) for each in signature.parameters[1:]]
        returns = signature.returns
        if name == "__setstate__" and signature.parameters[-1].type is None:
            state = compile_method(info, "__getstate__", text.qualname, code.range(node)).returns
            parameters[-1] = parameters[-1]._replace(type=state or ty.NONE)
    else:
        parameters, returns = overload
    own = Parameter(node.args.args[0].arg if node.args.args else "self", info.type)
    compiled = Compiled(f"{info.type.name}.{name}", [own, *parameters], returns)
    info.compiled[name] = compiled
    info.type.methods[name] = compiled.function
    c = begin(compiled, code, text.resolver, name, text.library)
    c.annotations.own, c.annotations.bases = annotations.own, annotations.bases
    c.owner = text.owner
    try:
        compile_body(c, node, compiled, text.function)
    except BaseException:
        info.type.methods.pop(name, None)
        info.compiled.pop(name, None)
        raise
    if isinstance(node, ast.FunctionDef):
        compiled.function.doc = ast.get_docstring(node) or ""
    return compiled


def _parameter(each: Declared, code: Code) -> Parameter:
    type_ = each.type if isinstance(each.type, ty.Type) else ty.TENSOR
    return parameter_of(each, type_, code)


def _owner_class(cls: type, function: Any) -> type:
    """The class in whose body a method stands."""
    for base in cls.__mro__:
        for found in vars(base).values():
            if getattr(found, "__func__", found) is function:
                return base
            if isinstance(found, property) and function in (found.fget, found.fset):
                return base
    return cls


class ClassMethod(Sugared):
    """A class method: compiled in place of the call, with the class as its first argument."""

    def __init__(self, cls: type, function: Any) -> None:
        self.cls, self.function = cls, function

    def describe(self) -> str:
        return f"the class method {self.function.__qualname__}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        template = template_of(self.function, is_method=True)
        owner = c.sugar(self.cls, call.range, self.cls.__name__)
        with compiling(self.function.__qualname__, c.name, call.range):
            return call_template(c, template, call, owner)
