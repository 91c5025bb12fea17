"""weft.jit.fork: a call that runs beside the program."""

from __future__ import annotations

import ast
import copy
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import convert_arguments
from weft.jit.frontend.language.functions import FunctionValue
from weft.jit.frontend.language.local_functions import LocalFunction
from weft.jit.frontend.language.overloads import PythonFunction
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import FrontendError, fail
from weft.jit.frontend.types.parameters import Compiled
from weft.jit.frontend.values import Arg, Call, Known, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value


@verb("fork")
def fork(c: Compiler, called: Sugared, call: Call) -> Sugared:
    """A future of called(*args, **kwargs)."""
    if isinstance(called, PythonFunction):
        called = called.resolved(c, call)
    if isinstance(called, FunctionValue):
        compiled = called.compiled
        values = convert_arguments(c, compiled.name, compiled.parameters, call)
        returns = compiled.known_return(call.range)
    else:
        compiled, values = _closure(c, called, call)
        returns = compiled.returns or ty.NONE
    attrs = {"function": compiled.function}
    return Simple(c.emit("prim::fork", values, ty.FutureType(returns), attrs, call.range))


def _closure(c: Compiler, called: Sugared, call: Call) -> tuple[Compiled, list[Value]]:
    """A function of its own around the call of a method, an operator, a module or a local function:
    the values that it needs are its arguments, of a local one the variables that it reads, as they
    are now."""
    name = called.name if isinstance(called, LocalFunction) else "forked"
    compiled = Compiled(f"{c.name}.{name}", [], None)
    inner = Compiler(compiled.function.graph, c.code, c.resolver, compiled.name)
    inner.annotations.generic = c.annotations.generic
    values: list[Value] = []

    def passed(name: str, held: Sugared) -> Simple:
        value = held.value(c, call.range)
        values.append(value)
        compiled.function.arg_names.append(name)
        return Simple(inner.graph.add_input(value.type, name))

    inside: Any = copy.copy(called)
    if isinstance(called, LocalFunction):
        inside.scope = inner.scope
        for name in sorted({n.id for n in ast.walk(called.node) if isinstance(n, ast.Name)}):
            held = c.scope.find(name)
            if isinstance(held, Sugared):
                try:
                    inner.scope.set(name, passed(name, held))
                except FrontendError:  # a function, say: it is the same in there
                    inner.scope.set(name, held)
    elif isinstance(called, Known):
        fail(f"fork: expected a function, got {called.describe()}", call.range)
    elif hasattr(called, "v"):
        inside.v = passed("self", Simple(called.v)).v
    given = [Arg(passed(f"arg{i}", a.value), a.range) for i, a in enumerate(call.args)]
    keywords = {k: Arg(passed(f"key_{k}", a.value), a.range) for k, a in call.kwargs.items()}
    result = inside.call(inner, Call(call.range, given, keywords)).value(inner, call.range)
    inner.graph.block.set_returns([result])
    compiled.returns = result.type
    return compiled, values
