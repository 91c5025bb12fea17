"""Python functions to functions of the IR, each compiled once."""

from __future__ import annotations

import ast
import types as python_types
from typing import Any

from weft.amp import autocast
from weft.jit import memo
from weft.jit.cache import reads
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.environment import FALLS, RESULT, Flow
from weft.jit.frontend.language.calls import convert_arguments
from weft.jit.frontend.language.control_flow import set_result, then
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.code import Code, code_of, definition, unwrapped
from weft.jit.frontend.source.errors import FrontendError, compiling, fail, refuse
from weft.jit.frontend.source.resolver import Resolver, resolver_of_function
from weft.jit.frontend.types.annotations import Annotations
from weft.jit.frontend.types.names import qualified_name
from weft.jit.frontend.types.signatures import (
    Compiled,
    defaults_of,
    parameter_of,
    signature_of,
    type_or_tensor,
)
from weft.jit.frontend.values import Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


class FunctionValue(Sugared):
    """A compiled function, or one being compiled."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled

    def describe(self) -> str:
        return f"the function {self.compiled.name.rpartition('.')[2]}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        compiled = self.compiled
        short = compiled.name.rpartition(".")[2]
        values = convert_arguments(c, short, compiled.parameters, call)
        returns = compiled.known_return(call.range)
        attrs = {"function": compiled.function}
        return Simple(c.emit("prim::CallFunction", values, returns, attrs, call.range))

    def key(self) -> Any:
        return ("function", id(self.compiled))


# Python functions -----------------------------------------------------------------------------


def compile_function(
    function: Any, extra: dict[str, Any] | None = None, caller: str = "", range: Any = None
) -> Compiled:
    """The IR of a Python function, compiled at its first use."""
    known: Compiled | None = memo.known(function)
    if known is not None:
        if known.error is not None:
            memo.forget(function)
        else:
            reads.compiled_before(function, known.walk)
            return known
    walk = reads.digest_of(function)
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
            lambda c: _remember(function, c, walk),
            function,
        )


def _remember(function: Any, compiled: Compiled, walk: str) -> None:
    compiled.walk = walk
    memo.keep(function, compiled)


def forget(function: Any) -> None:
    """Compiles the function anew when it is next used."""
    memo.forget(function)


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
    c = begin(compiled, code, resolver, name.rpartition(".")[2])
    compile_body(c, node, compiled, function)
    compiled.function.doc = (
        (ast.get_docstring(node) or "") if isinstance(node, ast.FunctionDef) else ""
    )
    return compiled


def begin(
    compiled: Compiled, code: Code, resolver: Resolver, name: str, generic: bool = False
) -> Compiler:
    """A compiler for the body of a function, with its parameters as inputs and names."""
    graph = compiled.function.graph
    c = Compiler(graph, code, resolver, name, generic, compiled.returns)
    for parameter in compiled.parameters:
        c.scope.set(parameter.name, Simple(graph.add_input(parameter.type, parameter.name)))
    return c


def compile_body(
    c: Compiler, node: ast.FunctionDef | ast.Lambda, compiled: Compiled, function: Any = None
) -> None:
    """Compiles the statements of a definition and sets what its graph returns."""
    range = c.range(node)
    modes = decorated_modes(function)
    try:
        leaves = [verb["enter_decorated"](c, mode, range) for mode in modes]
        held = body_result(c, node)
        for leave in reversed(leaves):
            c.node(leave, (), (), range=range)
        value = _returned(c, held, range)
    except RecursionError:
        error = FrontendError(f"{c.name}: expected less deeply nested source", c.range(node))
        compiled.error = error
        raise error from None
    except ty.TooManyParts as too_many:
        compiled.error = FrontendError(f"{c.name}: {too_many}", range)
        raise compiled.error from None
    except FrontendError as error:
        compiled.error = error
        raise
    c.graph.block.set_returns([value])
    compiled.returns = value.type


def decorated_modes(function: Any) -> list[bool | autocast]:
    """The modes that decorate a Python function, the outermost first: whether gradients are
    recorded, and autocast."""
    modes: list[bool | autocast] = []
    while function is not None:
        is_python = isinstance(function, python_types.FunctionType)
        held = vars(function).get("_weft_mode") if is_python else None
        if held is not None:
            modes += verb["decorated_mode"](held)
        function = getattr(function, "__wrapped__", None)
    return modes


def _returned(c: Compiler, held: Sugared, range: SourceRange) -> Value:
    value = held.value(c, range)
    declared = c.declared
    if declared is not None and value.type != declared:
        return c.emit("prim::unchecked_cast", (value,), declared)
    return value


def body_result(c: Compiler, node: ast.FunctionDef | ast.Lambda) -> Sugared:
    """What the body of a definition returns."""
    range = c.range(node)
    if isinstance(node, ast.Lambda):
        return c.expr(node.body, c.declared)
    _refuse_generators(c, node)
    exits = c.statements(node.body)

    def implicit() -> frozenset[str]:
        declared = c.declared
        if declared is not None and not ty.is_subtype(ty.NONE, declared):
            fail(
                f"{c.name}: expected a return on every path, since it returns "
                f"{declared.annotation}, got a path without",
                range,
                "a return or raise at the end",
            )
        set_result(c, c.none(), range)
        return frozenset((Flow.RETURN,))

    if Flow.FALL in exits:
        exits = then(c, exits, implicit, range) if exits != FALLS else implicit()
    found = c.scope.find(RESULT)
    if isinstance(found, Sugared):
        return found
    return Simple(c.uninitialized(c.declared or ty.NONE))  # it always raises


def _refuse_generators(c: Compiler, node: ast.FunctionDef) -> None:
    """yield makes a function another thing, wherever it stands."""
    if not any(word in c.code.text for word in ("yield", "await")):
        return

    waiting: list[ast.AST] = list(node.body)
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Yield | ast.YieldFrom | ast.Await):
            refuse(c.code, each)
        if not isinstance(each, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(each))
