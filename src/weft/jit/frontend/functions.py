"""Python functions to functions of the IR, each compiled once."""

from __future__ import annotations

import ast
import functools
import importlib
import types as python_types
import weakref
from typing import Any

import weft
from weft.jit.frontend.annotations import Annotations
from weft.jit.frontend.calls import BuiltinFunction, convert_arguments, operator_name
from weft.jit.frontend.control_flow import then
from weft.jit.frontend.conversions import Parameter
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.environment import FALLS, RESULT, Flow
from weft.jit.frontend.errors import FrontendError, compiling, fail
from weft.jit.frontend.resolver import Resolver, resolver_of_function
from weft.jit.frontend.signatures import (
    defaults_of,
    parameter_of,
    signature_of,
    type_or_tensor,
)
from weft.jit.frontend.source import Code, code_of, definition, unwrapped
from weft.jit.frontend.sugared import Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.function import Function
from weft.jit.ir.graph import Graph, Value
from weft.jit.ir.source import SourceRange

_MAX_CALL_DEPTH = 64
_LONG = 100  # lines of source


class Compiled:
    """A function on its way to the IR, or there. `returns` is None until it is known."""

    def __init__(self, name: str, parameters: list[Parameter], returns: ty.Type | None) -> None:
        self.name = name
        self.parameters = parameters
        self.returns = returns
        self.function = Function(name, Graph(), [p.name for p in parameters])
        self.function.defaults = {p.name: p.default for p in parameters if p.has_default}
        self.function.lengths = {p.name: p.length for p in parameters if p.length is not None}
        self.error: FrontendError | None = None


class FunctionValue(Sugared):
    """A compiled function, or one being compiled."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled

    def describe(self) -> str:
        return f"the function {self.compiled.name.rpartition('.')[2]}"

    def call(self, e: Emitter, call: Call) -> Sugared:
        compiled = self.compiled
        short = compiled.name.rpartition(".")[2]
        values = convert_arguments(e, short, compiled.parameters, call)
        returns = known_return(e, compiled, call.range)
        attrs = {"function": compiled.function}
        return Simple(e.emit("prim::CallFunction", values, returns, attrs, call.range))

    def key(self) -> Any:
        return ("function", id(self.compiled))


def known_return(e: Emitter, compiled: Compiled, range: SourceRange) -> ty.Type:
    """The return type of a function; one that is still being compiled must declare it."""
    if compiled.returns is None:
        from weft.jit.frontend.errors import NotSupportedError
        from weft.jit.frontend.refused import REFUSED_FORMS

        refusal = REFUSED_FORMS["recursion"]
        raise NotSupportedError(
            f"expected syntax of the language, got {refusal.what}", range, refusal.instead
        )
    return compiled.returns


# Python functions -----------------------------------------------------------------------------

_compiled: weakref.WeakKeyDictionary[Any, Compiled] = weakref.WeakKeyDictionary()


def qualified_name(obj: Any) -> str:
    """The name of a function or class in the IR: "__torch__.package.module.name"."""
    module = getattr(obj, "__module__", None) or "__main__"
    name = str(getattr(obj, "__qualname__", "") or getattr(obj, "__name__", "object"))
    name = name.replace(".<locals>", "").replace("<lambda>", "_lambda")
    # Definitions of archives have the names that they had.
    return (
        f"{module}.{name}" if module.split(".")[0] == "__torch__" else f"__torch__.{module}.{name}"
    )


def compile_function(
    function: Any, extra: dict[str, Any] | None = None, caller: str = "", range: Any = None
) -> Compiled:
    """The IR of a Python function, compiled at its first use."""
    known = _compiled.get(function)
    if known is not None:
        if known.error is not None:
            del _compiled[function]
        else:
            return known
    inner = unwrapped(function)  # what a decorator wraps; grad modes are entered
    code = code_of(inner)
    node = definition(code, inner.__name__, inner)
    resolver = resolver_of_function(inner, extra or {})
    if not isinstance(node, ast.FunctionDef | ast.Lambda):
        fail(f"{function.__qualname__}: expected a function, got a class", code.range(node))
    name = qualified_name(function)
    with compiling(function.__qualname__, caller, range):
        return compile_definition(
            node,
            code,
            resolver,
            name,
            defaults_of(inner),
            lambda c: _remember(function, c),
            function,
        )


def _remember(function: Any, compiled: Compiled) -> None:
    _compiled[function] = compiled


def forget(function: Any) -> None:
    """Compiles the function anew when it is next used."""
    _compiled.pop(function, None)


def compile_definition(
    node: ast.FunctionDef | ast.Lambda,
    code: Code,
    resolver: Resolver,
    name: str,
    defaults: dict[str, Any],
    started: Any = None,
    function: Any = None,
) -> Compiled:
    """The IR of a definition. `started` is called with it before its body is compiled; `function`
    is the Python function, for what decorates it."""
    annotations = Annotations(code, resolver)
    signature = signature_of(node, code, annotations, defaults)
    parameters = [
        parameter_of(each, type_or_tensor(each, code), code) for each in signature.parameters
    ]
    compiled = Compiled(name, parameters, signature.returns)
    if started is not None:
        started(compiled)
    graph = compiled.function.graph
    e = Emitter(graph, code, resolver, name.rpartition(".")[2], declared=signature.returns)
    for parameter in parameters:
        e.scope.set(parameter.name, Simple(graph.add_input(parameter.type, parameter.name)))
    compile_body(e, node, compiled, function)
    compiled.function.doc = (
        (ast.get_docstring(node) or "") if isinstance(node, ast.FunctionDef) else ""
    )
    return compiled


def compile_body(
    e: Emitter, node: ast.FunctionDef | ast.Lambda, compiled: Compiled, function: Any = None
) -> None:
    """Compiles the statements of a definition and sets what its graph returns."""
    if e.code.source.line_count > _LONG:
        _import_everything()
    range = e.range(node)
    modes = decorated_modes(function)
    try:
        exits = [_enter_decorated(e, mode, range) for mode in modes]
        held = body_result(e, node)
        for leave in reversed(exits):
            e.node(leave, (), (), range=range)
        value = _returned(e, held, range)
    except RecursionError:
        error = FrontendError(f"{e.name}: expected less deeply nested source", e.range(node))
        compiled.error = error
        raise error from None
    except FrontendError as error:
        compiled.error = error
        raise
    e.graph.block.set_returns([value])
    compiled.returns = value.type


def decorated_modes(function: Any) -> list[bool | weft.autocast]:
    """The modes that decorate a Python function, the outermost first: whether gradients are
    recorded, and autocast."""
    modes: list[bool | weft.autocast] = []
    while function is not None:
        is_python = isinstance(function, python_types.FunctionType)
        held = vars(function).get("_weft_mode") if is_python else None
        if held is not None:
            from weft.jit.frontend.context_managers import decorated_mode

            modes += decorated_mode(held)
        function = getattr(function, "__wrapped__", None)
    return modes


def _enter_decorated(e: Emitter, mode: bool | weft.autocast, range: SourceRange) -> str:
    from weft.jit.frontend.context_managers import enter_decorated

    return enter_decorated(e, mode, range)


@functools.cache
def _import_everything() -> None:
    """Imports what is otherwise imported when it is first met. Far down in a long function Python
    3.11 may refuse to compile a module (see fresh_stack), where it has not done so before."""
    import pkgutil

    from weft.jit import frontend

    for module in pkgutil.iter_modules(frontend.__path__):
        importlib.import_module(f"{frontend.__name__}.{module.name}")


def _returned(e: Emitter, held: Sugared, range: SourceRange) -> Value:
    value = held.value(e, range)
    declared = e.returns.declared
    if declared is not None and value.type != declared:
        return e.emit("prim::unchecked_cast", (value,), declared)
    return value


def body_result(e: Emitter, node: ast.FunctionDef | ast.Lambda) -> Sugared:
    """What the body of a definition returns."""
    from weft.jit.frontend.expressions import expr
    from weft.jit.frontend.statements import set_result, statements

    range = e.range(node)
    if isinstance(node, ast.Lambda):
        return expr(e, node.body, e.returns.declared)
    _refuse_generators(e, node)
    ways = statements(e, node.body)

    def implicit() -> frozenset[str]:
        declared = e.returns.declared
        if declared is not None and not ty.is_subtype(ty.NONE, declared):
            fail(
                f"{e.name}: expected a return on every path, since it returns "
                f"{declared.annotation}, got a path without",
                range,
                "a return or raise at the end",
            )
        set_result(e, e.none(), range)
        return frozenset((Flow.RETURN,))

    if Flow.FALL in ways:
        ways = then(e, ways, implicit, range) if ways != FALLS else implicit()
    found = e.scope.find(RESULT)
    if isinstance(found, Sugared):
        return found
    return Simple(e.uninitialized(e.returns.declared or ty.NONE))  # it always raises


def _refuse_generators(e: Emitter, node: ast.FunctionDef) -> None:
    """yield makes a function another thing, wherever it stands."""
    if not any(word in e.code.text for word in ("yield", "await")):
        return
    from weft.jit.frontend.scaffold import refuse

    waiting: list[ast.AST] = list(node.body)
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Yield | ast.YieldFrom | ast.Await):
            refuse(e.code, each)
        if not isinstance(each, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(each))


# Values ---------------------------------------------------------------------------------------


def function_value(e: Emitter, obj: Any, range: SourceRange, what: str) -> Sugared | None:
    """What a callable Python object means, or None."""
    from weft.jit.frontend.ignored import ignored_value

    compiled = getattr(obj, "_weft_compiled", None)
    if isinstance(compiled, Compiled):
        return FunctionValue(compiled)
    ignored = ignored_value(e, obj, range)
    if ignored is not None:
        return ignored
    name = operator_name(obj)
    if name is not None:
        return BuiltinFunction(name)
    if not hasattr(obj, "__code__"):
        wrapped = getattr(obj, "__wrapped__", None)
        return None if wrapped is None else function_value(e, wrapped, range, what)
    if is_library(obj):
        from weft.jit.frontend.generic import GenericFunction

        return GenericFunction(obj)
    return PythonFunction(obj)


def is_library(obj: Any) -> bool:
    """Whether a function is one of weft's own, whose annotations may be open."""
    module = getattr(obj, "__module__", "") or ""
    return module == "weft" or module.startswith("weft.")


class PythonFunction(Sugared):
    """A Python function that is compiled when it is called."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def describe(self) -> str:
        return f"the function {self.function.__qualname__}"

    def call(self, e: Emitter, call: Call) -> Sugared:
        return self.resolved(e, call).call(e, call)

    def resolved(self, e: Emitter, call: Call) -> Sugared:
        """The compiled function, or the overload that fits the arguments."""
        from weft.jit.frontend.errors import callers
        from weft.jit.frontend.overloads import overloads_of, pick_overload

        if len(callers()) > _MAX_CALL_DEPTH:
            fail("expected a shorter chain of calls between functions", call.range)
        overloads = overloads_of(self.function)
        if overloads:
            return pick_overload(e, self.function, overloads, call)
        extra = getattr(e.resolver, "extra", {})
        return FunctionValue(compile_function(self.function, extra, e.name, call.range))

    def key(self) -> Any:
        return ("python function", self.function)


def bound_method(e: Emitter, obj: Any, range: SourceRange, what: str) -> Sugared:
    """A method of a Python object found while compiling."""
    owner = obj.__self__
    if isinstance(owner, type):  # a class method
        from weft.jit.frontend.classes import class_value
        from weft.jit.frontend.ignored import AutogradFunction

        if obj.__name__ == "apply" and issubclass(owner, weft.autograd.Function):
            return AutogradFunction(owner)

        return class_value(owner, what).attr(e, range, obj.__name__)
    from weft.jit.frontend.objects import sugar

    return sugar(e, owner, range, what).attr(e, range, obj.__name__)
