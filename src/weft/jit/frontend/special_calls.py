"""Calls whose arguments are no expressions of the language: types, super(), fork."""

from __future__ import annotations

import ast
import typing
from typing import Any

from weft.jit.frontend.conversions import coerce
from weft.jit.frontend.displays import spread
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.expressions import argument, expr
from weft.jit.frontend.sugared import Arg, Call, Simple, Sugared
from weft.jit.ir import types as ty


def special_call(
    e: Emitter, called: Sugared, node: ast.Call, hint: ty.Type | None
) -> Sugared | None:
    """The call where its arguments need their syntax, otherwise None."""
    from weft.jit.frontend.builtins import SpecialFunction
    from weft.jit.frontend.python_objects import PythonObject

    obj: Any = None
    if isinstance(called, SpecialFunction | PythonObject):
        obj = called.obj
    mark = getattr(obj, "__weft_jit__", None) if obj is not None else None
    if obj is typing.cast:
        mark = "annotate"
    if obj is isinstance or mark == "isinstance":
        from weft.jit.frontend.isinstance_test import isinstance_call

        found = isinstance_call(e, node)
        assert found is not None
        return Simple(found.materialize(e))
    if obj is super:
        from weft.jit.frontend.class_attributes import super_of

        return super_of(e, node)
    handler = _MARKED.get(mark) if isinstance(mark, str) else None
    return None if handler is None else handler(e, node, hint)


def _two(e: Emitter, node: ast.Call, name: str) -> None:
    if len(node.args) != 2 or node.keywords:
        fail(f"{name}: expected a type and a value, got {len(node.args)} arguments", e.range(node))


def _annotate(e: Emitter, node: ast.Call, hint: ty.Type | None) -> Sugared:
    """weft.jit.annotate(T, x): x as a value of type T."""
    _two(e, node, "annotate")
    wanted = _type(e, node.args[0])
    held = expr(e, node.args[1], wanted)
    return Simple(coerce(e, held, wanted, e.range(node.args[1]), "annotate"))


def _unchecked_cast(e: Emitter, node: ast.Call, hint: ty.Type | None) -> Sugared:
    _two(e, node, "cast")
    wanted = _type(e, node.args[0])
    return Simple(e.cast(expr(e, node.args[1]).value(e, e.range(node)), wanted))


def _uninitialized(e: Emitter, node: ast.Call, hint: ty.Type | None) -> Sugared:
    """uninitialized(T) of archives: a value that nobody reads."""
    if len(node.args) != 1 or node.keywords:
        fail(f"uninitialized: expected a type, got {len(node.args)} arguments", e.range(node))
    return Simple(e.uninitialized(_type(e, node.args[0])))


def _attribute(e: Emitter, node: ast.Call, hint: ty.Type | None) -> Sugared:
    """weft.jit.Attribute(value, type)."""
    if len(node.args) != 2:
        fail(f"Attribute: expected a value and a type, got {len(node.args)}", e.range(node))
    wanted = _type(e, node.args[1])
    return Simple(coerce(e, expr(e, node.args[0], wanted), wanted, e.range(node), "Attribute"))


def _type(e: Emitter, node: ast.expr) -> ty.Type:
    found = e.annotations.read(node)
    if not isinstance(found, ty.Type):
        fail("expected a type of the language", e.range(node))
    return found


def _fork(e: Emitter, node: ast.Call, hint: ty.Type | None) -> Sugared:
    """weft.jit.fork(f, ...): a future of f(...)."""
    from weft.jit.frontend.fork import fork

    if not node.args:
        fail("fork: expected a function, got no arguments", e.range(node))
    called = expr(e, node.args[0])
    args = []
    for item in node.args[1:]:
        if isinstance(item, ast.Starred):
            args += [Arg(each, e.range(item)) for each in spread(e, [item])]
        else:
            args.append(Arg(argument(e, item), e.range(item)))
    kwargs = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            fail("fork: expected arguments one by one, got **", e.range(node))
        kwargs[keyword.arg] = Arg(argument(e, keyword.value), e.range(keyword.value))
    return fork(e, called, Call(e.range(node), args, kwargs))


def _wait(e: Emitter, node: ast.Call, hint: ty.Type | None) -> Sugared:
    """weft.jit.wait(future)."""
    if len(node.args) != 1 or node.keywords:
        fail(f"wait: expected a future, got {len(node.args)} arguments", e.range(node))
    future = expr(e, node.args[0]).value(e, e.range(node))
    if not isinstance(future.type, ty.FutureType):
        fail(f"wait: expected a Future, got {future.type.annotation}", e.range(node))
    return Simple(e.emit("aten::wait", (future,), future.type.elem, range=e.range(node)))


def _constant(value: bool) -> Any:
    def handler(e: Emitter, node: ast.Call, hint: ty.Type | None) -> Sugared:
        if node.args or node.keywords:
            fail("expected no arguments, got some", e.range(node))
        return Simple(e.constant(value))

    return handler


def _checkpoint(e: Emitter, node: ast.Call, hint: ty.Type | None) -> Sugared:
    fail(
        "checkpoint: expected a function of the language, got checkpoint, which runs Python again "
        "in backward",
        e.range(node),
        "f(x) if weft.jit.is_scripting() else checkpoint(f, x), or a method with the call marked "
        "@weft.jit.ignore",
    )


_MARKED = {
    "checkpoint": _checkpoint,
    "is_scripting": _constant(True),
    "is_tracing": _constant(False),
    "annotate": _annotate,
    "cast": _unchecked_cast,
    "uninitialized": _uninitialized,
    "Attribute": _attribute,
    "fork": _fork,
    "wait": _wait,
}
