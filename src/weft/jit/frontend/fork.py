"""weft.jit.fork: a call that runs beside the program."""

from __future__ import annotations

from weft.jit.frontend.calls import convert_arguments
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.environment import Scope
from weft.jit.frontend.errors import fail
from weft.jit.frontend.functions import Compiled, FunctionValue, PythonFunction, known_return
from weft.jit.frontend.sugared import Arg, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


def fork(
    e: Emitter, called: Sugared, range: SourceRange, args: list[Arg], kwargs: dict[str, Arg]
) -> Sugared:
    """A future of called(*args, **kwargs)."""
    if isinstance(called, PythonFunction):
        called = called.resolved(e, range, args, kwargs)
    if isinstance(called, FunctionValue):
        compiled = called.compiled
        values = convert_arguments(e, compiled.name, compiled.parameters, range, args, kwargs)
        returns = known_return(e, compiled, range)
    else:
        compiled, values = _closure(e, called, range, args, kwargs)
        returns = compiled.returns or ty.NONE
    attrs = {"function": compiled.function}
    return Simple(e.emit("prim::fork", values, ty.FutureType(returns), attrs, range))


def _closure(
    e: Emitter, called: Sugared, range: SourceRange, args: list[Arg], kwargs: dict[str, Arg]
) -> tuple[Compiled, list[Value]]:
    """A function of its own around the call of a method, an operator or a module: the values that
    it needs are its arguments."""
    from weft.jit.frontend.conversions import type_of

    named = [(f"arg{i}", arg) for i, arg in enumerate(args)]
    named += [(f"key_{name}", arg) for name, arg in kwargs.items()]
    owner = getattr(called, "v", None)
    if owner is not None:
        named.insert(0, ("self", Arg(Simple(owner), range)))
    compiled = Compiled(f"{e.name}.forked", [], None)
    inner = Emitter(compiled.function.graph, e.code, e.resolver, f"{e.name}.forked")
    inner.annotations.generic = e.annotations.generic
    inner.scope = Scope()
    values, replaced = [], {}
    for name, arg in named:
        type_of(e, arg.value, range)
        value = arg.value.value(e, range)
        values.append(value)
        replaced[name] = Simple(inner.graph.add_input(value.type, name))
        compiled.function.arg_names.append(name)
    inside = called
    if owner is not None:
        inside = rebound(called, replaced["self"].v)
    elif isinstance(called, Simple):
        fail(f"fork: expected a function, got {called.describe()}", range)
    given = [Arg(replaced[f"arg{i}"], range) for i in _range(len(args))]
    keywords = {name: Arg(replaced[f"key_{name}"], range) for name in kwargs}
    result = inside.call(inner, range, given, keywords).value(inner, range)
    inner.graph.block.set_returns([result])
    compiled.returns = result.type
    return compiled, values


_range = range


def rebound(called: Sugared, owner: Value) -> Sugared:
    """The same method of another value."""
    import copy

    other = copy.copy(called)
    other.v = owner  # type: ignore[attr-defined]
    return other
