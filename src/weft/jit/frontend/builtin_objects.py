"""print, getattr, type, device, grad: builtins about objects and effects."""

from __future__ import annotations

import builtins as python
from typing import Any

import weft
from weft.jit.frontend.builtins import Handler, call, count, handles, no_keywords, static_argument
from weft.jit.frontend.calls import call_operator
from weft.jit.frontend.conversions import coerce, type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import FrontendError, fail
from weft.jit.frontend.sugared import Arg, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.source import SourceRange


@handles(python.print)
def _print(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    from weft.jit.frontend.exceptions import shown, text_of

    values = [shown(e, arg.value, range) for arg in args]
    for name in kwargs:
        if name not in ("sep", "end", "flush"):
            fail(f"print: expected sep, end or flush, got {name}", range)
    separator, end = (_option(e, kwargs.get(name)) for name in ("sep", "end"))
    if separator is not None or end is not None:
        texts = [Simple(text_of(e, value, range)) for value in values]
        made = Simple(e.emit("prim::ListConstruct", [t.v for t in texts], ty.ListType(ty.STR)))
        values = [call(e, "aten::join", range, separator or Simple(e.constant(" ")), made)]
    if end is None:
        e.node("prim::Print", [value.value(e, range) for value in values], (), range=range)
        return e.none()
    return call(e, "prim::write", range, call(e, "aten::add", range, values[0], end))


def _option(e: Emitter, given: Arg | None) -> Sugared | None:
    """sep or end of print; None where it is the usual one."""
    if given is None or type_of(e, given.value, given.range) is ty.NONE:
        return None
    return Simple(coerce(e, given.value, ty.STR, given.range, "print"))


@handles(python.hasattr)
def _hasattr(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    count("hasattr", range, args, 2, 2)
    name = static_argument(e, args[1], "hasattr", str)
    return Simple(e.constant(args[0].value.has_attr(e, name)))


@handles(python.getattr)
def _getattr(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    count("getattr", range, args, 2, 3)
    name = static_argument(e, args[1], "getattr", str)
    owner = args[0].value
    if len(args) == 3 and not owner.has_attr(e, name):
        return args[2].value
    return owner.attr(e, range, name)


@handles(python.setattr)
def _setattr(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    count("setattr", range, args, 3, 3)
    name = static_argument(e, args[1], "setattr", str)
    args[0].value.set_attr(e, range, name, args[2].value)
    return e.none()


@handles(python.id)
def _id(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    return call_operator(e, "prim::id", range, args, kwargs)


@handles(python.divmod)
def _divmod(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    return call_operator(e, "aten::divmod", range, args, kwargs)


@handles(python.isinstance)
def _isinstance(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    fail("isinstance: expected it to be called by its name, got it as a value", range)


@handles(python.type)
def _type(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    """The class of an object of the program."""
    from weft.jit.frontend.classes import class_value, python_class_of

    count("type", range, args, 1, 1)
    value = args[0].value
    cls = python_class_of(value.v.type) if isinstance(value, Simple) else None
    if cls is None:
        got = type_of(e, value, range).annotation
        fail(f"type: expected an object of a class, got {got}", range, "isinstance(x, T)")
    return class_value(cls, cls.__name__)


@handles(python.callable)
def _callable(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    count("callable", range, args, 1, 1)
    value = args[0].value
    is_object = isinstance(value, Simple) and not value.has_attr(e, "__call__")
    return Simple(e.constant(not is_object))


@handles(weft.Size)
def _size(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    count("Size", range, args, 1, 1)
    return Simple(coerce(e, args[0].value, ty.ListType(ty.INT), range, "Size"))


@handles(weft.device)
def _device(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    if args and len(args) == 1 and type_of(e, args[0].value, range) is ty.DEVICE:
        return args[0].value
    return call_operator(e, "aten::device", range, args, kwargs)


@handles(weft.is_tensor)
def _is_tensor(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    count("is_tensor", range, args, 1, 1)
    try:
        found = type_of(e, args[0].value, range) is ty.TENSOR
    except FrontendError:
        found = False
    return Simple(e.constant(found))


def _autograd(kind: str, names: tuple[str, ...]) -> Handler:
    def handler(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
        given = {**dict(zip(names, args)), **kwargs}
        count(kind.partition("::")[2], range, args, 0, len(names))
        for name, arg in given.items():
            is_tensor = isinstance(arg.value, Simple) and arg.value.v.type is ty.TENSOR
            if is_tensor and name in names[:3] and name != "retain_graph":
                given[name] = Arg(TupleLiteral([arg.value]), arg.range)
        return call_operator(e, kind, range, [], given)

    return handler


handles(weft.autograd.grad)(
    _autograd("aten::grad", ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph"))
)


handles(weft.autograd.backward)(
    _autograd("autograd::backward", ("tensors", "grad_tensors", "retain_graph", "create_graph"))
)


@handles(weft.einsum)
def _einsum_call(e: Emitter, range: SourceRange, args: Any, kwargs: Any, hint: Any) -> Sugared:
    """einsum(equation, a, b) or einsum(equation, [a, b])."""
    no_keywords("einsum", range, kwargs)
    count("einsum", range, args, 2, 64)
    equation = coerce(e, args[0].value, ty.STR, args[0].range, "equation")
    rest = TupleLiteral([arg.value for arg in args[1:]])
    only = args[1].value
    if len(args) == 2 and type_of(e, only, args[1].range) is not ty.TENSOR:
        rest = only
    operands = coerce(e, rest, ty.ListType(ty.TENSOR), range, "operands")
    return call(e, "aten::einsum", range, Simple(equation), Simple(operands))
