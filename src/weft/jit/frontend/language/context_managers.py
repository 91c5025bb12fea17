"""with: grad modes, and objects with __enter__ and __exit__."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable
from typing import Any

from weft.amp import autocast, is_autocast_enabled
from weft.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.environment import FALLS, Scope
from weft.jit.frontend.language.control_flow import EXITS
from weft.jit.frontend.library import prelude
from weft.jit.frontend.registry import builtin, statement, verb
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import Arg, Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Function, Graph, Value
from weft.jit.ir.source import SourceRange
from weft.profiler.regions import record_function

# Class -> the mode it sets inside; None: it is the first argument.
MANAGERS: dict[Any, bool | None] = {
    no_grad: False,
    enable_grad: True,
    set_grad_enabled: None,
    inference_mode: False,
}


class ContextManager(Sugared):
    """What a with statement enters. `enter(range)` gives what `as` names, or None; `leave` is the
    kind of the node at the end, if there is one."""

    def __init__(
        self, what: str, enter: Callable[[SourceRange], Sugared | None], leave: str = ""
    ) -> None:
        self.what, self.enter, self.leave = what, enter, leave


class ManagerClass(Sugared):
    """no_grad, enable_grad, set_grad_enabled, inference_mode."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls

    def describe(self) -> str:
        return f"the context manager {self.cls.__name__}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        mode = MANAGERS[self.cls]
        given = list(call.args) + list(call.kwargs.values())
        if len(given) > 1 or (mode is None and not given):
            fail(f"{self.cls.__name__}: expected one bool, got {len(given)} arguments", call.range)
        flag = c.constant(mode)
        if given:
            flag = c.convert(given[0].value, ty.BOOL, given[0].range, "mode")
            if mode is not None:
                flag = c.apply("aten::__not__", call.range, Simple(flag)).value(c, call.range)
        return ContextManager(
            "a grad mode", lambda range: _enter_mode(c, flag, range), "prim::ExitGradMode"
        )


class AutocastClass(Sugared):
    """weft.autocast, and weft.cuda.amp.autocast, which has no device_type."""

    what = "the context manager autocast"

    def __init__(self, cls: Any) -> None:
        self.cls = cls

    def call(self, c: Compiler, call: Call) -> Sugared:
        if self.cls is not autocast:
            call = call.behind(Simple(c.constant("cuda")))
        wanted = _with_mode(c, prelude.autocast_dtype, call)
        dtype = c.convert(wanted, ty.optional_of(ty.DTYPE), call.range, "autocast")

        def enter(range: SourceRange) -> None:
            c.node("prim::EnterAutocast", (dtype,), (), range=range)  # None where it is off

        return ContextManager("autocast", enter, "prim::ExitAutocast")


def _enter_mode(c: Compiler, mode: Value, range: SourceRange) -> None:
    """The mode stands in the node: one known at run time takes an If."""
    known = c.static_of(mode)
    if isinstance(known, bool):
        c.node("prim::EnterGradMode", (), (), {"mode": known}, range)
        return
    node = c.node("prim::If", (mode,), (), range=range)
    for wanted in (True, False):
        with c.within(node.add_block(), Scope(c.scope)):
            c.node("prim::EnterGradMode", (), (), {"mode": wanted}, range)


@verb("decorated_mode")
def decorated_mode(held: Any) -> list[bool | autocast]:
    """What a mode that decorates a function means; nothing where it is for another device."""
    if isinstance(held, autocast):
        return [held] if held.device == "cpu" else []
    known = MANAGERS.get(type(held))
    given = getattr(held, "mode", True)
    is_inference = isinstance(held, inference_mode)
    return [given if known is None else known if given else is_inference]


@verb("enter_decorated")
def enter_decorated(c: Compiler, mode: bool | autocast, range: SourceRange) -> str:
    """Enters a mode that decorates a function; the kind of node that leaves it."""
    if isinstance(mode, autocast):
        dtype = c.constant(mode.fast_dtype if mode.enabled else None)
        c.node("prim::EnterAutocast", (dtype,), (), range=range)
        return "prim::ExitAutocast"
    c.node("prim::EnterGradMode", (), (), {"mode": mode}, range)
    return "prim::ExitGradMode"


@builtin(record_function)
def _record_function(c: Compiler, call: Call) -> Sugared:
    """A name for what runs inside, which the profiler of a program does not show."""
    return ContextManager("the context manager record_function", lambda range: None)


@builtin(contextlib.nullcontext)
def _null_context(c: Compiler, call: Call) -> Sugared:
    given = [*call.args, *call.kwargs.values()]
    entered = given[0].value if given else c.none()
    return ContextManager("the context manager nullcontext", lambda range: entered)


@builtin(is_autocast_enabled)
def _is_autocast_enabled(c: Compiler, call: Call) -> Sugared:
    return _with_mode(c, prelude.autocast_on, call)


def _with_mode(c: Compiler, function: Any, call: Call) -> Sugared:
    """A call of a function that is told what autocast lowers to now."""
    now = c.apply("prim::autocast_now", call.range)
    named = {name: arg.value for name, arg in call.kwargs.items()}
    return c.call(function, call.range, *(arg.value for arg in call.args), **named, now=now)


@statement(ast.With)
def _with(c: Compiler, node: ast.With) -> frozenset[str]:
    """with a as x, b: ..."""
    return _enter(c, node, list(node.items))


def _enter(c: Compiler, node: ast.With, items: list[ast.withitem]) -> frozenset[str]:
    if not items:
        return c.statements(node.body)
    item, rest = items[0], items[1:]
    range = c.range(item.context_expr)
    manager = c.expr(item.context_expr)
    if isinstance(manager, ManagerClass):
        manager = manager.call(c, Call(range))
    entered, leave = _protocol(c, manager, range)
    if item.optional_vars is not None:
        if entered is None:
            fail(f"with: expected no name behind as, since {manager.describe()} gives none", range)
        c.assign(item.optional_vars, entered, range)
    exits = _enter(c, node, rest)
    if exits & (EXITS | FALLS):
        leave()
    return exits


def _protocol(
    c: Compiler, manager: Sugared, range: SourceRange
) -> tuple[Sugared | None, Callable[[], None]]:
    """What entering gives, and what leaving does."""
    if isinstance(manager, ContextManager):

        def restore() -> None:
            if manager.leave:
                c.node(manager.leave, (), (), range=range)

        return manager.enter(range), restore
    for name in ("__enter__", "__exit__"):
        if not manager.has_attr(c, name):
            fail(
                f"with: expected an object with __enter__ and __exit__, got {manager.describe()}",
                range,
            )
    value = manager.value(c, range)
    function = _leaving(c, value.type, range)
    c.node("prim::EnterContext", (value,), (), {"function": function}, range)
    entered = manager.attr(c, range, "__enter__").call(c, Call(range))

    def leave() -> None:
        c.node("prim::ExitContext", (), (), range=range)
        _call_exit(c, manager, range)

    return entered, leave


def _call_exit(c: Compiler, manager: Sugared, range: SourceRange) -> None:
    nothing = [Arg(c.none(), range) for _ in (0, 1, 2)]
    manager.attr(c, range, "__exit__").call(c, Call(range, nothing))


def _leaving(c: Compiler, manager: ty.Type, range: SourceRange) -> Function:
    """The function that an exception calls with the manager: as in PyTorch, __exit__ gets no
    exception, and is called for one of __enter__ too."""
    function = Function(f"{c.name}.__exit__", Graph(), ["manager"])
    inner = Compiler(function.graph, c.code, c.resolver, function.name, c.annotations.generic)
    _call_exit(inner, Simple(inner.graph.add_input(manager, "manager")), range)
    inner.graph.block.set_returns([inner.constant(None)])
    return function
