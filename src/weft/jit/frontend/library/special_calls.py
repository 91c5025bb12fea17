"""Calls whose arguments are no expressions of the language (types, super(), fork), and weft's own
special functions."""

from __future__ import annotations

import ast
import copy
import typing
import warnings
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import BuiltinFunction, convert_arguments
from weft.jit.frontend.language.expressions import star_argument
from weft.jit.frontend.language.functions import FunctionValue
from weft.jit.frontend.language.generic import PythonFunction
from weft.jit.frontend.language.isinstance_test import isinstance_call
from weft.jit.frontend.language.python_objects import PythonObject
from weft.jit.frontend.language.statements import LocalFunction
from weft.jit.frontend.registry import find_builtin, verb
from weft.jit.frontend.source.errors import FrontendError, fail
from weft.jit.frontend.types.signatures import Compiled
from weft.jit.frontend.values import UNKNOWN, Arg, Call, Known, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.literals import own
from weft.jit.ir.source import SourceRange


@verb("special_call")
def special_call(
    c: Compiler, called: Sugared, node: ast.Call, hint: ty.Type | None
) -> Sugared | None:
    """The call where its arguments need their syntax, otherwise None."""
    obj: Any = None
    if isinstance(called, SpecialFunction | PythonObject):
        obj = called.obj
    mark = getattr(obj, "__weft_jit__", None) if obj is not None else None
    if obj is typing.cast:
        mark = "annotate"
    if obj is isinstance or mark == "isinstance":
        found = isinstance_call(c, node)
        assert found is not None
        return Simple(found.materialize(c))
    if obj is super:
        return verb["super_of"](c, node)
    handler = _MARKED.get(mark) if isinstance(mark, str) else None
    return None if handler is None else handler(c, node, hint)


def _two(c: Compiler, node: ast.Call, name: str) -> None:
    if len(node.args) != 2 or node.keywords:
        fail(f"{name}: expected a type and a value, got {len(node.args)} arguments", c.range(node))


def _annotate(c: Compiler, node: ast.Call, hint: ty.Type | None) -> Sugared:
    """weft.jit.annotate(T, x): x as a value of type T."""
    _two(c, node, "annotate")
    wanted = _type(c, node.args[0])
    held = c.expr(node.args[1], wanted)
    return Simple(c.convert(held, wanted, c.range(node.args[1]), "annotate"), wanted)


def _unchecked_cast(c: Compiler, node: ast.Call, hint: ty.Type | None) -> Sugared:
    _two(c, node, "cast")
    wanted, range = _type(c, node.args[0]), c.range(node)
    given = c.expr(node.args[1]).value(c, range)
    if ty.is_subtype(given.type, wanted):
        return Simple(c.cast(given, wanted))
    if not _may_be(given.type, wanted):
        fail(
            f"unchecked_cast: expected a value that may be {wanted.annotation}, got "
            f"{given.type.annotation}",
            range,
        )
    # Codegen adds the check: text that is saved again has only the cast.
    checked = {"checked": True}
    return Simple(c.emit("prim::unchecked_cast", (given,), wanted, checked, range))


def _may_be(given: ty.Type, wanted: ty.Type) -> bool:
    """Whether a value of one type may be of another, as can be told when the program runs."""
    if given is ty.NONE or ty.is_subtype(ty.non_none(given), wanted):
        return True  # of None in a branch that never runs
    members = ty.members_of(given)
    fits = any(ty.is_subtype(m, wanted) or ty.is_subtype(wanted, m) for m in members)
    return fits and not _has_future(wanted)


def _has_future(type: ty.Type) -> bool:
    """Whether futures, which do not tell what they will hold, are among its parts."""
    return isinstance(type, ty.FutureType) or any(map(_has_future, type.children))


def _uninitialized(c: Compiler, node: ast.Call, hint: ty.Type | None) -> Sugared:
    """uninitialized(T) of archives: a value that nobody should read, but code may lie."""
    if len(node.args) != 1 or node.keywords:
        fail(f"uninitialized: expected a type, got {len(node.args)} arguments", c.range(node))
    wanted = _type(c, node.args[0])
    unread = {"unread": True}
    return Simple(c.emit("prim::unchecked_cast", (_default(c, wanted),), wanted, unread))


_DEFAULTS: dict[ty.Type, Any] = {
    ty.INT: 0,
    ty.NUMBER: 0,
    ty.FLOAT: 0.0,
    ty.BOOL: False,
    ty.COMPLEX: 0j,
    ty.STR: "",
    ty.DEVICE: _C.device("cpu"),
    ty.DTYPE: _C.float32,
    ty.LAYOUT: _C.strided,
    ty.MEMORY_FORMAT: _C.contiguous_format,
}


def _default(c: Compiler, type: ty.Type) -> Value:
    """A value of a type; None, which every use of it refuses, for objects."""
    if type in _DEFAULTS:
        return c.constant(_DEFAULTS[type])
    if type is ty.TENSOR:
        return c.constant(own(_C.empty(0)))
    if isinstance(type, ty.ListType):
        return c.emit("prim::ListConstruct", (), type)
    if isinstance(type, ty.DictType):
        return c.emit("prim::DictConstruct", (), type)
    if isinstance(type, ty.TupleType):
        items = []
        for elem in type.elems:
            made = _default(c, elem)
            items.append(c.emit("prim::unchecked_cast", (made,), elem, {"unread": True}))
        return c.emit("prim::TupleConstruct", items, type)
    if isinstance(type, ty.UnionType) and ty.NONE not in type.members:
        return _default(c, type.members[0])
    return c.constant(None)


def _attribute(c: Compiler, node: ast.Call, hint: ty.Type | None) -> Sugared:
    """weft.jit.Attribute(value, type)."""
    if len(node.args) != 2:
        fail(f"Attribute: expected a value and a type, got {len(node.args)}", c.range(node))
    wanted = _type(c, node.args[1])
    return Simple(c.convert(c.expr(node.args[0], wanted), wanted, c.range(node), "Attribute"))


def _type(c: Compiler, node: ast.expr) -> ty.Type:
    found = c.annotations.read(node)
    if not isinstance(found, ty.Type):
        fail("expected a type of the language", c.range(node))
    return found


def _fork(c: Compiler, node: ast.Call, hint: ty.Type | None) -> Sugared:
    """weft.jit.fork(f, ...): a future of f(...)."""
    if not node.args:
        fail("fork: expected a function, got no arguments", c.range(node))
    called = c.expr(node.args[0])
    args = []
    for item in node.args[1:]:
        if isinstance(item, ast.Starred):
            args += [Arg(each, c.range(item)) for each in star_argument(c, item)]
        else:
            args.append(Arg(c.argument(item), c.range(item)))
    kwargs = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            fail("fork: expected arguments one by one, got **", c.range(node))
        kwargs[keyword.arg] = Arg(c.argument(keyword.value), c.range(keyword.value))
    return verb["fork"](c, called, Call(c.range(node), args, kwargs))


def _wait(c: Compiler, node: ast.Call, hint: ty.Type | None) -> Sugared:
    """weft.jit.wait(future)."""
    if len(node.args) != 1 or node.keywords:
        fail(f"wait: expected a future, got {len(node.args)} arguments", c.range(node))
    future = c.expr(node.args[0]).value(c, c.range(node))
    if not isinstance(future.type, ty.FutureType):
        fail(f"wait: expected a Future, got {future.type.annotation}", c.range(node))
    return Simple(c.emit("aten::wait", (future,), future.type.elem, range=c.range(node)))


def _constant(value: bool) -> Any:
    def handler(c: Compiler, node: ast.Call, hint: ty.Type | None) -> Sugared:
        if node.args or node.keywords:
            fail("expected no arguments, got some", c.range(node))
        return Simple(c.constant(value))

    return handler


def _checkpoint(c: Compiler, node: ast.Call, hint: ty.Type | None) -> Sugared:
    fail(
        "checkpoint: expected a function of the language, got checkpoint, which runs Python again "
        "in backward",
        c.range(node),
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


Rule = Callable[..., Sugared]


class SpecialFunction(Sugared):
    """A function the compiler knows: len, range, isinstance, weft.jit.annotate."""

    def __init__(self, obj: Any, name: str, rule: Callable[..., Sugared]) -> None:
        self.obj, self.name, self.rule = obj, name, rule

    def describe(self) -> str:
        return f"the builtin {self.name}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        return self.rule(c, call)

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        found = find_builtin((self.obj, name))
        return super().attr(c, range, name) if found is None else SpecialFunction(self.obj, *found)

    def key(self) -> Any:
        return ("special", self.name)


def builtin_of(obj: Any) -> Sugared | None:
    """What the compiler knows of a Python object, or None."""
    if obj is typing.cast:
        return SpecialFunction(obj, "cast", _by_name_only)
    if obj is warnings.warn:
        return BuiltinFunction("aten::warn")
    mark = getattr(obj, "__weft_jit__", None)
    if isinstance(mark, str) and not isinstance(obj, Tensor):
        return SpecialFunction(obj, mark, _by_name_only)
    found = find_builtin(obj)
    return None if found is None else SpecialFunction(obj, *found)


def _by_name_only(c: Compiler, call: Call) -> Sugared:
    fail("expected a call by its own name, got it as a value", call.range)


def static_argument(c: Compiler, arg: Arg, name: str, kind: type) -> Any:
    """An argument that must be known while compiling."""
    known = arg.value.static(c)
    if known is UNKNOWN or not isinstance(known, kind):
        fail(f"{name}: expected a {kind.__name__} known while compiling, got another", arg.range)
    return known


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
