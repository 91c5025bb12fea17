"""weft.jit.fork: a call that runs beside the program."""

from __future__ import annotations

import ast
import copy
from typing import Any

from weft.jit.frontend.calls import convert_arguments
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.environment import Scope
from weft.jit.frontend.errors import FrontendError, fail
from weft.jit.frontend.functions import Compiled, FunctionValue, PythonFunction, known_return
from weft.jit.frontend.local_functions import LocalFunction
from weft.jit.frontend.sugared import Arg, Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value


def fork(e: Emitter, called: Sugared, call: Call) -> Sugared:
    """A future of called(*args, **kwargs)."""
    if isinstance(called, PythonFunction):
        called = called.resolved(e, call)
    if isinstance(called, FunctionValue):
        compiled = called.compiled
        values = convert_arguments(e, compiled.name, compiled.parameters, call)
        returns = known_return(e, compiled, call.range)
    else:
        compiled, values = _closure(e, called, call)
        returns = compiled.returns or ty.NONE
    attrs = {"function": compiled.function}
    return Simple(e.emit("prim::fork", values, ty.FutureType(returns), attrs, call.range))


def _closure(e: Emitter, called: Sugared, call: Call) -> tuple[Compiled, list[Value]]:
    """A function of its own around the call of a method, an operator or a module: the values that
    it needs are its arguments."""
    from weft.jit.frontend.conversions import type_of

    named = [(f"arg{i}", arg) for i, arg in enumerate(call.args)]
    named += [(f"key_{name}", arg) for name, arg in call.kwargs.items()]
    if isinstance(called, LocalFunction):
        return _local(e, called, call)
    owner = getattr(called, "v", None)
    if owner is not None:
        named.insert(0, ("self", Arg(Simple(owner), call.range)))
    compiled = Compiled(f"{e.name}.forked", [], None)
    inner = Emitter(compiled.function.graph, e.code, e.resolver, f"{e.name}.forked")
    inner.annotations.generic = e.annotations.generic
    inner.scope = Scope()
    values, replaced = [], {}
    for name, arg in named:
        type_of(e, arg.value, call.range)
        value = arg.value.value(e, call.range)
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


def _local(e: Emitter, called: LocalFunction, call: Call) -> tuple[Compiled, list[Value]]:
    """A function of its own around a call of a local one: the variables that it reads are its
    arguments, as they are now."""
    compiled = Compiled(f"{e.name}.{called.name}", [], None)
    inner = Emitter(compiled.function.graph, e.code, e.resolver, compiled.name)
    inner.annotations.generic = e.annotations.generic
    values: list[Value] = []

    def passed(name: str, held: Sugared) -> Sugared:
        try:
            value = held.value(e, call.range)
        except FrontendError:  # a function, say: it is the same in there
            return held
        values.append(value)
        compiled.function.arg_names.append(name)
        return Simple(inner.graph.add_input(value.type, name))

    for name in sorted({n.id for n in ast.walk(called.node) if isinstance(n, ast.Name)}):
        held = e.scope.find(name)
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
