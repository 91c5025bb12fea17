"""with: grad modes, and objects with __enter__ and __exit__."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable
from typing import Any

import weft
from weft.autograd import profiler
from weft.jit.frontend import written
from weft.jit.frontend.builtins import handles
from weft.jit.frontend.control_flow import EXITS
from weft.jit.frontend.conversions import coerce
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.environment import FALLS, Scope
from weft.jit.frontend.errors import fail
from weft.jit.frontend.expressions import expr
from weft.jit.frontend.sugared import Arg, Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

# Class -> the mode it sets inside; None: it is the first argument.
MANAGERS: dict[Any, bool | None] = {
    weft.no_grad: False,
    weft.enable_grad: True,
    weft.set_grad_enabled: None,
    weft.inference_mode: False,
}


class ManagerClass(Sugared):
    """no_grad, enable_grad, set_grad_enabled, inference_mode."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls

    def describe(self) -> str:
        return f"the context manager {self.cls.__name__}"

    def call(self, e: Emitter, call: Call) -> Sugared:
        mode = MANAGERS[self.cls]
        given = list(call.args) + list(call.kwargs.values())
        if mode is None and len(given) == 1:
            return GradMode(coerce(e, given[0].value, ty.BOOL, given[0].range, "mode"))
        if mode is None or len(given) > 1:
            fail(f"{self.cls.__name__}: expected one bool, got {len(given)} arguments", call.range)
        if given:
            flag = coerce(e, given[0].value, ty.BOOL, given[0].range, "mode")

            from weft.jit.frontend.calls import apply_operator

            made = apply_operator(e, "aten::__not__", call.range, Simple(flag))
            return GradMode(made.value(e, call.range))
        return GradMode(e.constant(mode))


class GradMode(Sugared):
    """What `with no_grad():` enters."""

    def __init__(self, mode: Value) -> None:
        self.mode = mode

    def describe(self) -> str:
        return "a grad mode"


class AutocastClass(Sugared):
    """weft.autocast, and weft.cuda.amp.autocast, which has no device_type."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls

    def describe(self) -> str:
        return "the context manager autocast"

    def call(self, e: Emitter, call: Call) -> Sugared:
        from weft.jit.frontend.calls import apply_operator
        from weft.jit.frontend.generic import GenericFunction

        given = list(call.args)
        if self.cls is not weft.autocast:
            given.insert(0, Arg(Simple(e.constant("cuda")), call.range))
        now = Arg(apply_operator(e, "prim::autocast_now", call.range), call.range)
        called = GenericFunction(written.autocast_dtype)
        wanted = called.call(e, Call(call.range, given, {**call.kwargs, "now": now}))
        return Autocast(coerce(e, wanted, ty.optional_of(ty.DTYPE), call.range, "autocast"))


class Autocast(Sugared):
    """What `with autocast("cpu"):` enters. dtype: None where it is off."""

    def __init__(self, dtype: Value) -> None:
        self.dtype = dtype

    def describe(self) -> str:
        return "autocast"


def _enter_mode(e: Emitter, mode: Value, range: SourceRange) -> None:
    """The mode stands in the node: one known at run time takes an If."""
    known = e.static_of(mode)
    if isinstance(known, bool):
        e.node("prim::EnterGradMode", (), (), {"mode": known}, range)
        return
    node = e.node("prim::If", (mode,), (), range=range)
    for wanted in (True, False):
        with e.within(node.add_block(), Scope(e.scope)):
            e.node("prim::EnterGradMode", (), (), {"mode": wanted}, range)


def decorated_mode(held: Any) -> list[bool | weft.autocast]:
    """What a mode that decorates a function means; nothing where it is for another device."""
    if isinstance(held, weft.autocast):
        return [held] if held.device == "cpu" else []
    known = MANAGERS.get(type(held))
    given = getattr(held, "mode", True)
    is_inference = isinstance(held, weft.inference_mode)
    return [given if known is None else known if given else is_inference]


def enter_decorated(e: Emitter, mode: bool | weft.autocast, range: SourceRange) -> str:
    """Enters a mode that decorates a function; the kind of node that leaves it."""
    if isinstance(mode, weft.autocast):
        dtype = e.constant(mode.fast_dtype if mode.enabled else None)
        e.node("prim::EnterAutocast", (dtype,), (), range=range)
        return "prim::ExitAutocast"
    e.node("prim::EnterGradMode", (), (), {"mode": mode}, range)
    return "prim::ExitGradMode"


class NullContext(Sugared):
    """A context manager that does nothing in a program: record_function, nullcontext."""

    def __init__(self, name: str, entered: Sugared | None = None) -> None:
        self.name, self.entered = name, entered

    def describe(self) -> str:
        return f"the context manager {self.name}"


@handles(profiler.record_function)
def _record_function(e: Emitter, call: Call) -> Sugared:
    """A name for what runs inside, which the profiler of a program does not show."""
    return NullContext("record_function")


@handles(contextlib.nullcontext)
def _null_context(e: Emitter, call: Call) -> Sugared:
    given = [*call.args, *call.kwargs.values()]
    return NullContext("nullcontext", given[0].value if given else Simple(e.none().v))


@handles(weft.is_autocast_enabled)
def _is_autocast_enabled(e: Emitter, call: Call) -> Sugared:
    from weft.jit.frontend.calls import apply_operator
    from weft.jit.frontend.generic import GenericFunction

    now = Arg(apply_operator(e, "prim::autocast_now", call.range), call.range)
    return GenericFunction(written.autocast_on).call(
        e, Call(call.range, call.args, {**call.kwargs, "now": now})
    )


def with_statement(e: Emitter, node: ast.With) -> frozenset[str]:
    """with a as x, b: ..."""
    return _enter(e, node, list(node.items))


def _enter(e: Emitter, node: ast.With, items: list[ast.withitem]) -> frozenset[str]:
    from weft.jit.frontend.assignment import assign
    from weft.jit.frontend.statements import statements

    if not items:
        return statements(e, node.body)
    item, rest = items[0], items[1:]
    range = e.range(item.context_expr)
    manager = expr(e, item.context_expr)
    if isinstance(manager, ManagerClass):
        manager = manager.call(e, Call(range))
    entered, leave = _protocol(e, manager, range)
    if item.optional_vars is not None:
        if entered is None:
            fail(f"with: expected no name behind as, since {manager.describe()} gives none", range)
        assign(e, item.optional_vars, entered, range)
    ways = _enter(e, node, rest)
    if ways & (EXITS | FALLS):
        leave()
    return ways


def _protocol(
    e: Emitter, manager: Sugared, range: SourceRange
) -> tuple[Sugared | None, Callable[[], None]]:
    """What entering gives, and what leaving does."""
    if isinstance(manager, NullContext):
        return manager.entered, lambda: None
    if isinstance(manager, Autocast):
        e.node("prim::EnterAutocast", (manager.dtype,), (), range=range)

        def leave_autocast() -> None:
            e.node("prim::ExitAutocast", (), (), range=range)

        return None, leave_autocast
    if isinstance(manager, GradMode):
        _enter_mode(e, manager.mode, range)

        def restore() -> None:
            e.node("prim::ExitGradMode", (), (), range=range)

        return None, restore
    for name in ("__enter__", "__exit__"):
        if not manager.has_attr(e, name):
            fail(
                f"with: expected an object with __enter__ and __exit__, got {manager.describe()}",
                range,
            )
    entered = manager.attr(e, range, "__enter__").call(e, Call(range))

    def leave() -> None:
        nothing = [Arg(e.none(), range) for _ in (0, 1, 2)]
        manager.attr(e, range, "__exit__").call(e, Call(range, nothing))

    return entered, leave
