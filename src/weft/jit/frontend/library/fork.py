"""weft.jit.fork: a call that runs beside the program."""

from __future__ import annotations

import ast
import copy
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.environment import Scope
from weft.jit.frontend.language.calls import convert_arguments
from weft.jit.frontend.language.functions import FunctionValue
from weft.jit.frontend.language.local_functions import LocalFunction
from weft.jit.frontend.language.overloads import PythonFunction
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import FrontendError, fail
from weft.jit.frontend.types.parameters import Compiled
from weft.jit.frontend.values import Arg, Call, Simple, Sugared
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
    """A function of its own around the call of a method, an operator or a module: the values that
    it needs are its arguments."""
    named = [(f"arg{i}", arg) for i, arg in enumerate(call.args)]
    named += [(f"key_{name}", arg) for name, arg in call.kwargs.items()]
    if isinstance(called, LocalFunction):
        return _local(c, called, call)
    owner = getattr(called, "v", None)
    if owner is not None:
        named.insert(0, ("self", Arg(Simple(owner), call.range)))
    compiled = Compiled(f"{c.name}.forked", [], None)
    inner = Compiler(compiled.function.graph, c.code, c.resolver, f"{c.name}.forked")
    inner.annotations.generic = c.annotations.generic
    inner.scope = Scope()
    values, replaced = [], {}
    for name, arg in named:
        c.type_of(arg.value, call.range)
        value = arg.value.value(c, call.range)
        values.append(value)
        replaced[name] = Simple(inner.graph.add_input(value.type, name))
        compiled.function.arg_names.append(name)
    inside = called
    if owner is not None:
        inside = rebound(called, replaced["self"].v)
    elif isinstance(called, Simple):
        fail(f"fork: expected a function, got {called.describe()}", call.range)
    given = [Arg(replaced[f"arg{i}"], call.range) for i in _range(len(call.args))]
    keywords = {name: Arg(replaced[f"key_{name}"], call.range) for name in call.kwargs}
    result = inside.call(inner, Call(call.range, given, keywords)).value(inner, call.range)
    inner.graph.block.set_returns([result])
    compiled.returns = result.type
    return compiled, values


def _local(c: Compiler, called: LocalFunction, call: Call) -> tuple[Compiled, list[Value]]:
    """A function of its own around a call of a local one: the variables that it reads are its
    arguments, as they are now."""
    compiled = Compiled(f"{c.name}.{called.name}", [], None)
    inner = Compiler(compiled.function.graph, c.code, c.resolver, compiled.name)
    inner.annotations.generic = c.annotations.generic
    values: list[Value] = []

    def passed(name: str, held: Sugared) -> Sugared:
        try:
            value = held.value(c, call.range)
        except FrontendError:  # a function, say: it is the same in there
            return held
        values.append(value)
        compiled.function.arg_names.append(name)
        return Simple(inner.graph.add_input(value.type, name))

    for name in sorted({n.id for n in ast.walk(called.node) if isinstance(n, ast.Name)}):
        held = c.scope.find(name)
        if isinstance(held, Sugared):
            inner.scope.set(name, passed(name, held))
    given = [Arg(passed(f"arg{i}", a.value), a.range) for i, a in enumerate(call.args)]
    keywords = {k: Arg(passed(f"key_{k}", a.value), a.range) for k, a in call.kwargs.items()}
    inside = copy.copy(called)
    inside.scope = inner.scope
    result = inside.call(inner, Call(call.range, given, keywords)).value(inner, call.range)
    inner.graph.block.set_returns([result])
    compiled.returns = result.type
    return compiled, values


_range = range


def rebound(called: Sugared, owner: Value) -> Sugared:
    """The same method of another value."""
    other: Any = copy.copy(called)
    other.v = owner
    return other
