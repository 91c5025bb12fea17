"""print, getattr, type, device, grad: builtins about objects and effects."""

from __future__ import annotations

import builtins as python

from weft import _C
from weft._C import Generator, Size
from weft._functions.branches import cond
from weft._functions.matrices import einsum
from weft._tensor import tensor
from weft.autograd._run import backward, grad
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.strings import shown, text_of
from weft.jit.frontend.library import prelude
from weft.jit.frontend.library.containers import Handler
from weft.jit.frontend.library.special_calls import static_argument
from weft.jit.frontend.registry import builtin
from weft.jit.frontend.source.errors import FrontendError, fail
from weft.jit.frontend.types.classes import python_class_of
from weft.jit.frontend.values import Arg, Call, Simple, Slice, Sugared, TupleLiteral
from weft.jit.ir import types as ty


@builtin(python.print)
def _print(c: Compiler, call: Call) -> Sugared:
    values = [shown(c, arg.value, call.range) for arg in call.args]
    for name in call.kwargs:
        if name not in ("sep", "end", "flush"):
            fail(f"print: expected sep, end or flush, got {name}", call.range)
    separator, end = (_option(c, call.kwargs.get(name)) for name in ("sep", "end"))
    if separator is not None or end is not None:
        texts = [Simple(text_of(c, value, call.range)) for value in values]
        made = Simple(c.emit("prim::ListConstruct", [t.v for t in texts], ty.ListType(ty.STR)))
        values = [c.apply("aten::join", call.range, separator or Simple(c.constant(" ")), made)]
    if end is None:
        c.node(
            "prim::Print", [value.value(c, call.range) for value in values], (), range=call.range
        )
        return c.none()
    text = c.apply("aten::add", call.range, values[0], end)
    return c.apply("prim::write", call.range, text)


def _option(c: Compiler, given: Arg | None) -> Sugared | None:
    """sep or end of print; None where it is the usual one."""
    if given is None or c.type_of(given.value, given.range) is ty.NONE:
        return None
    return Simple(c.convert(given.value, ty.STR, given.range, "print"))


@builtin(python.hasattr, takes=2)
def _hasattr(c: Compiler, call: Call) -> Sugared:
    name = static_argument(c, call.args[1], "hasattr", str)
    return Simple(c.constant(call.args[0].value.has_attr(c, name)))


@builtin(python.getattr, takes=(2, 3))
def _getattr(c: Compiler, call: Call) -> Sugared:
    name = static_argument(c, call.args[1], "getattr", str)
    owner = call.args[0].value
    if len(call.args) == 3 and not owner.has_attr(c, name):
        return call.args[2].value
    return owner.attr(c, call.range, name)


@builtin(python.setattr, takes=3)
def _setattr(c: Compiler, call: Call) -> Sugared:
    name = static_argument(c, call.args[1], "setattr", str)
    call.args[0].value.set_attr(c, call.range, name, call.args[2].value)
    return c.none()


@builtin(python.id)
def _id(c: Compiler, call: Call) -> Sugared:
    return c.call_operator("prim::id", call)


@builtin(python.divmod)
def _divmod(c: Compiler, call: Call) -> Sugared:
    return c.call_operator("aten::divmod", call)


@builtin(python.isinstance)
def _isinstance(c: Compiler, call: Call) -> Sugared:
    fail("isinstance: expected it to be called by its name, got it as a value", call.range)


@builtin(python.type, takes=1)
def _type(c: Compiler, call: Call) -> Sugared:
    """The class of an object of the program."""
    value = call.args[0].value
    cls = python_class_of(value.v.type) if isinstance(value, Simple) else None
    if cls is None:
        got = c.type_of(value, call.range).annotation
        fail(f"type: expected an object of a class, got {got}", call.range, "isinstance(x, T)")
    return c.sugar(cls, call.range, cls.__name__)


@builtin(python.callable, takes=1)
def _callable(c: Compiler, call: Call) -> Sugared:
    value = call.args[0].value
    is_object = isinstance(value, Simple) and not value.has_attr(c, "__call__")
    return Simple(c.constant(not is_object))


@builtin(Size, takes=1)
def _size(c: Compiler, call: Call) -> Sugared:
    return Simple(c.convert(call.args[0].value, ty.ListType(ty.INT), call.range, "Size"))


@builtin(_C.device)
def _device(c: Compiler, call: Call) -> Sugared:
    if len(call.args) == 1 and c.type_of(call.args[0].value, call.range) is ty.DEVICE:
        return call.args[0].value
    kwargs = dict(call.kwargs)
    given = [*call.args, *(kwargs.pop(name) for name in ("type", "index") if name in kwargs)]
    return c.call_operator("aten::device", Call(call.range, given, kwargs))


@builtin(Generator)
def _generator(c: Compiler, call: Call) -> Sugared:
    return c.call_operator("aten::Generator", call)


@builtin(_C._get_tracing_state, takes=0)
def _tracing_state(c: Compiler, call: Call) -> Sugared:
    return c.none()


@builtin(python.slice, takes=(1, 3))
def _slice(c: Compiler, call: Call) -> Sugared:
    """slice(stop), slice(start, stop, step): what stands between [ and ]."""
    parts = [None if arg.value.static(c) is None else arg.value for arg in call.args]
    start = [None] if len(parts) == 1 else []
    return Slice([*start, *parts, None][:3])


@builtin(tensor.is_tensor, takes=1)
def _is_tensor(c: Compiler, call: Call) -> Sugared:
    try:
        found = c.type_of(call.args[0].value, call.range) is ty.TENSOR
    except FrontendError:
        found = False
    return Simple(c.constant(found))


def _autograd(kind: str, names: tuple[str, ...]) -> Handler:
    def handler(c: Compiler, call: Call) -> Sugared:
        given = {**dict(zip(names, call.args)), **call.kwargs}
        call.expect_count(kind.partition("::")[2], 0, len(names))
        for name, arg in given.items():
            is_tensor = isinstance(arg.value, Simple) and arg.value.v.type is ty.TENSOR
            if is_tensor and name in names[:3] and name != "retain_graph":
                given[name] = Arg(TupleLiteral([arg.value]), arg.range)
        return c.call_operator(kind, Call(call.range, kwargs=given))

    return handler


builtin(grad)(
    _autograd("aten::grad", ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph"))
)


builtin(backward)(
    _autograd("autograd::backward", ("tensors", "grad_tensors", "retain_graph", "create_graph"))
)


@builtin(cond, takes=(3, 4), keywords=("operands",))
def _cond(c: Compiler, call: Call) -> Sugared:
    args = [arg.value for arg in (*call.args, *call.kwargs.values())]
    operands = args[3] if len(args) == 4 else TupleLiteral([])
    return c.call(prelude.branch, call.range, *args[:3], operands)


@builtin(einsum, takes=(2, 64))
def _einsum_call(c: Compiler, call: Call) -> Sugared:
    """einsum(equation, a, b), einsum(equation, [a, b]) or einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    if c.type_of(call.args[0].value, call.args[0].range) is ty.TENSOR:
        call = _with_equation(c, call)
    equation = c.convert(call.args[0].value, ty.STR, call.args[0].range, "equation")
    rest: Sugared = TupleLiteral([arg.value for arg in call.args[1:]])
    only = call.args[1].value
    if len(call.args) == 2 and c.type_of(only, call.args[1].range) is not ty.TENSOR:
        rest = only
    operands = c.convert(rest, ty.ListType(ty.TENSOR), call.range, "operands")
    return c.apply("aten::einsum", call.range, Simple(equation), Simple(operands))


def _with_equation(c: Compiler, call: Call) -> Call:
    """einsum(a, [0, 1], b, [1, 2], [0, 2]) as einsum("AB,BC->AC", [a, b])."""
    count = len(call.args) // 2
    labels = [TupleLiteral([arg.value for arg in call.args[1 : 2 * count : 2]])]
    labels.append(TupleLiteral([arg.value for arg in call.args[2 * count :]]))
    wanted = ty.ListType(ty.ListType(ty.INT))
    given = [Simple(c.convert(each, wanted, call.range, "einsum")) for each in labels]
    equation = c.call(prelude.einsum_equation, call.range, *given)
    operands = TupleLiteral([arg.value for arg in call.args[: 2 * count : 2]])
    return Call.of(call.range, equation, operands)
