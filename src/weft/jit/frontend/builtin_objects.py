"""print, getattr, type, device, grad: builtins about objects and effects."""

from __future__ import annotations

import builtins as python

import weft
from weft.jit.frontend import written
from weft.jit.frontend.builtins import Handler, handles, static_argument
from weft.jit.frontend.calls import apply_operator, call_operator
from weft.jit.frontend.conversions import coerce, type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import FrontendError, fail
from weft.jit.frontend.subscripts import Slice
from weft.jit.frontend.sugared import Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.frontend.written import call_written
from weft.jit.ir import types as ty


@handles(python.print)
def _print(e: Emitter, call: Call) -> Sugared:
    from weft.jit.frontend.exceptions import shown, text_of

    values = [shown(e, arg.value, call.range) for arg in call.args]
    for name in call.kwargs:
        if name not in ("sep", "end", "flush"):
            fail(f"print: expected sep, end or flush, got {name}", call.range)
    separator, end = (_option(e, call.kwargs.get(name)) for name in ("sep", "end"))
    if separator is not None or end is not None:
        texts = [Simple(text_of(e, value, call.range)) for value in values]
        made = Simple(e.emit("prim::ListConstruct", [t.v for t in texts], ty.ListType(ty.STR)))
        values = [
            apply_operator(e, "aten::join", call.range, separator or Simple(e.constant(" ")), made)
        ]
    if end is None:
        e.node(
            "prim::Print", [value.value(e, call.range) for value in values], (), range=call.range
        )
        return e.none()
    text = apply_operator(e, "aten::add", call.range, values[0], end)
    return apply_operator(e, "prim::write", call.range, text)


def _option(e: Emitter, given: Arg | None) -> Sugared | None:
    """sep or end of print; None where it is the usual one."""
    if given is None or type_of(e, given.value, given.range) is ty.NONE:
        return None
    return Simple(coerce(e, given.value, ty.STR, given.range, "print"))


@handles(python.hasattr)
def _hasattr(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("hasattr")
    call.expect_count("hasattr", 2, 2)
    name = static_argument(e, call.args[1], "hasattr", str)
    return Simple(e.constant(call.args[0].value.has_attr(e, name)))


@handles(python.getattr)
def _getattr(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("getattr")
    call.expect_count("getattr", 2, 3)
    name = static_argument(e, call.args[1], "getattr", str)
    owner = call.args[0].value
    if len(call.args) == 3 and not owner.has_attr(e, name):
        return call.args[2].value
    return owner.attr(e, call.range, name)


@handles(python.setattr)
def _setattr(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("setattr")
    call.expect_count("setattr", 3, 3)
    name = static_argument(e, call.args[1], "setattr", str)
    call.args[0].value.set_attr(e, call.range, name, call.args[2].value)
    return e.none()


@handles(python.id)
def _id(e: Emitter, call: Call) -> Sugared:
    return call_operator(e, "prim::id", call)


@handles(python.divmod)
def _divmod(e: Emitter, call: Call) -> Sugared:
    return call_operator(e, "aten::divmod", call)


@handles(python.isinstance)
def _isinstance(e: Emitter, call: Call) -> Sugared:
    fail("isinstance: expected it to be called by its name, got it as a value", call.range)


@handles(python.type)
def _type(e: Emitter, call: Call) -> Sugared:
    """The class of an object of the program."""
    from weft.jit.frontend.classes import class_value, python_class_of

    call.expect_no_keywords("type")
    call.expect_count("type", 1, 1)
    value = call.args[0].value
    cls = python_class_of(value.v.type) if isinstance(value, Simple) else None
    if cls is None:
        got = type_of(e, value, call.range).annotation
        fail(f"type: expected an object of a class, got {got}", call.range, "isinstance(x, T)")
    return class_value(cls, cls.__name__)


@handles(python.callable)
def _callable(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("callable")
    call.expect_count("callable", 1, 1)
    value = call.args[0].value
    is_object = isinstance(value, Simple) and not value.has_attr(e, "__call__")
    return Simple(e.constant(not is_object))


@handles(weft.Size)
def _size(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("Size")
    call.expect_count("Size", 1, 1)
    return Simple(coerce(e, call.args[0].value, ty.ListType(ty.INT), call.range, "Size"))


@handles(weft.device)
def _device(e: Emitter, call: Call) -> Sugared:
    if len(call.args) == 1 and type_of(e, call.args[0].value, call.range) is ty.DEVICE:
        return call.args[0].value
    kwargs = dict(call.kwargs)
    given = [*call.args, *(kwargs.pop(name) for name in ("type", "index") if name in kwargs)]
    return call_operator(e, "aten::device", Call(call.range, given, kwargs))


@handles(weft.Generator)
def _generator(e: Emitter, call: Call) -> Sugared:
    return call_operator(e, "aten::Generator", call)


@handles(weft._C._get_tracing_state)
def _tracing_state(e: Emitter, call: Call) -> Sugared:
    call.expect_nothing("_get_tracing_state")
    return e.none()


@handles(python.slice)
def _slice(e: Emitter, call: Call) -> Sugared:
    """slice(stop), slice(start, stop, step): what stands between [ and ]."""
    call.expect_no_keywords("slice")
    call.expect_count("slice", 1, 3)
    parts = [None if arg.value.static(e) is None else arg.value for arg in call.args]
    start = [None] if len(parts) == 1 else []
    return Slice([*start, *parts, None][:3])


@handles(weft.is_tensor)
def _is_tensor(e: Emitter, call: Call) -> Sugared:
    call.expect_no_keywords("is_tensor")
    call.expect_count("is_tensor", 1, 1)
    try:
        found = type_of(e, call.args[0].value, call.range) is ty.TENSOR
    except FrontendError:
        found = False
    return Simple(e.constant(found))


def _autograd(kind: str, names: tuple[str, ...]) -> Handler:
    def handler(e: Emitter, call: Call) -> Sugared:
        given = {**dict(zip(names, call.args)), **call.kwargs}
        call.expect_count(kind.partition("::")[2], 0, len(names))
        for name, arg in given.items():
            is_tensor = isinstance(arg.value, Simple) and arg.value.v.type is ty.TENSOR
            if is_tensor and name in names[:3] and name != "retain_graph":
                given[name] = Arg(TupleLiteral([arg.value]), arg.range)
        return call_operator(e, kind, Call(call.range, kwargs=given))

    return handler


handles(weft.autograd.grad)(
    _autograd("aten::grad", ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph"))
)


handles(weft.autograd.backward)(
    _autograd("autograd::backward", ("tensors", "grad_tensors", "retain_graph", "create_graph"))
)


@handles(weft.einsum)
def _einsum_call(e: Emitter, call: Call) -> Sugared:
    """einsum(equation, a, b), einsum(equation, [a, b]) or einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    call.expect_no_keywords("einsum")
    call.expect_count("einsum", 2, 64)
    if type_of(e, call.args[0].value, call.args[0].range) is ty.TENSOR:
        call = _with_equation(e, call)
    equation = coerce(e, call.args[0].value, ty.STR, call.args[0].range, "equation")
    rest: Sugared = TupleLiteral([arg.value for arg in call.args[1:]])
    only = call.args[1].value
    if len(call.args) == 2 and type_of(e, only, call.args[1].range) is not ty.TENSOR:
        rest = only
    operands = coerce(e, rest, ty.ListType(ty.TENSOR), call.range, "operands")
    return apply_operator(e, "aten::einsum", call.range, Simple(equation), Simple(operands))


def _with_equation(e: Emitter, call: Call) -> Call:
    """einsum(a, [0, 1], b, [1, 2], [0, 2]) as einsum("AB,BC->AC", [a, b])."""
    count = len(call.args) // 2
    labels = [TupleLiteral([arg.value for arg in call.args[1 : 2 * count : 2]])]
    labels.append(TupleLiteral([arg.value for arg in call.args[2 * count :]]))
    wanted = ty.ListType(ty.ListType(ty.INT))
    given = [Simple(coerce(e, each, wanted, call.range, "einsum")) for each in labels]
    equation = call_written(e, written.einsum_equation, call.range, *given)
    operands = TupleLiteral([arg.value for arg in call.args[: 2 * count : 2]])
    return Call.of(call.range, equation, operands)
