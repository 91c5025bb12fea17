"""What a trace calls that is no operator: programs, gradients, custom autograd functions, and
functions of weft that decide by sizes or values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Tensor
from weft.jit.execution import LOCK
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.generic import template_of
from weft.jit.frontend.source.errors import FrontendError
from weft.jit.frontend.types.class_values import NamedTupleClass
from weft.jit.frontend.values import Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Node, Value
from weft.jit.tracing import structures
from weft.jit.tracing.arguments import argument, convert
from weft.jit.tracing.numbers import TracedFloat, TracedInt, plain
from weft.jit.tracing.overrides import OVERRIDES

if TYPE_CHECKING:
    from weft.jit.tracing.recorder import Recorder

Tensor = Tensor
_INPUTS = (Tensor, TracedInt, TracedFloat)


@OVERRIDES("program")
def _program(rec: Recorder, run: Any, *args: Any, **kwargs: Any) -> Any:
    """A compiled function or method stays a call: what it decides, it decides in every call."""
    if run._source is None:
        raise RuntimeError(f"trace: expected a program made by weft.jit, got {run!r}")
    function = run._source()
    with rec.paused():
        result = run(*structures.plain_numbers(args), **structures.plain_numbers(kwargs))
    given = {**dict(zip(function.arg_names, args)), **kwargs}
    values = []
    for name, formal in zip(function.arg_names, function.graph.inputs):
        item = given[name] if name in given else function.defaults[name]
        values.append(convert(rec, formal.type, item))
    rec.follow_modes()
    type = function.return_type
    node = rec.emit("prim::CallFunction", values, [type], {"function": function})
    return structures.bind(rec, node.output, result)


@OVERRIDES("run_backward")
def _run_backward(
    rec: Recorder, roots: Any, gradients: Any, targets: Any, retain: bool, create: bool,
    accumulate: bool, unused: bool,
) -> Any:  # fmt: skip
    """weft.autograd.backward and grad."""
    if accumulate and targets:
        raise RuntimeError("trace: expected autograd.backward without inputs, got some")
    if not all(isinstance(each, Tensor) for each in (*roots, *targets)):
        raise RuntimeError("trace: expected gradients of tensors, got those of edges of the graph")
    tensors, optionals = ty.ListType(ty.TENSOR), ty.ListType(ty.OptionalType(ty.TENSOR))
    values = [convert(rec, tensors, roots)]
    if not accumulate:
        values.append(convert(rec, tensors, targets))
    values += [convert(rec, optionals, gradients), rec.constant(retain), rec.constant(create)]
    if not accumulate:
        values.append(rec.constant(unused))
    with rec.paused():
        result = _C._autograd.run_backward(
            roots, gradients, targets, retain, create, accumulate, unused
        )
    return rec.builtin("autograd::backward" if accumulate else "aten::grad", values, result)


@OVERRIDES("apply")
def _apply(rec: Recorder, function: Any, *args: Any) -> Any:
    """A weft.autograd.Function: the program calls Python for it, with the tensors and numbers of
    the trace."""
    positions = [i for i, item in enumerate(args) if isinstance(item, _INPUTS)]
    fixed = [None if i in positions else structures.plain_numbers(a) for i, a in enumerate(args)]
    if any(structures.has_numbers(a) for i, a in enumerate(args) if i not in positions):
        rec.leak("number")
    values = [_value(rec, args[i]) for i in positions]

    def call(*inputs: Any) -> Any:
        given = list(fixed)
        for place, item in zip(positions, inputs):
            given[place] = item
        return function.apply(*given)

    call.__name__ = call.__qualname__ = function.__name__
    with rec.paused():
        result = call(*(plain(args[i]) for i in positions))
    rec.follow_modes()
    type = _type_of_result(function, result)
    node = rec.emit("prim::CallPython", values, [type], {"callable": call})
    return structures.bind(rec, node.output, result)


@OVERRIDES("custom_operator")
def _custom_operator(rec: Recorder, operator: Any, given: list[Any]) -> Any:
    """An operator that a program defined stays a call of it."""
    schema = operator.program_schema
    values = [argument(rec, arg, item) for arg, item in zip(schema.args, given)]
    with rec.paused():
        result = operator.run(structures.plain_numbers(given))
    rec.follow_modes()
    attrs = {"callable": operator.flat}
    node = rec.emit("prim::CallPython", values, [operator.program_type], attrs)
    return structures.bind(rec, node.output, result)


def _value(rec: Recorder, item: Any) -> Any:
    return rec.tensor(item) if isinstance(item, Tensor) else rec.number(item)


@OVERRIDES("weft.manual_seed")
def _manual_seed(rec: Recorder, seed: Any) -> None:
    value = convert(rec, ty.INT, seed)
    with rec.paused():
        _C.manual_seed(plain(seed))
    rec.emit("aten::manual_seed", [value], [])


def _type_of_result(function: Any, result: Any) -> ty.Type:
    if isinstance(result, Tensor):
        return ty.TENSOR
    if isinstance(result, tuple) and all(isinstance(item, Tensor) for item in result):
        return ty.TupleType((ty.TENSOR,) * len(result))
    raise RuntimeError(
        f"trace: expected {function.__name__} to return tensors, got {type(result).__name__}"
    )


@OVERRIDES("library")
def _library(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the language cannot say is traced as it runs; decisions are checked, and warned of."""
    rec.follow_modes()
    try:
        with LOCK:
            value = _call(rec, function, args, kwargs)
    except FrontendError as error:
        return _as_it_runs(rec, function, args, kwargs, error)
    with rec.paused():
        result = function(*structures.plain_numbers(args), **structures.plain_numbers(kwargs))
    return structures.bind(rec, value, result)


def _as_it_runs(
    rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], why: FrontendError
) -> Any:
    before = rec.decisions
    result = function._weft_unwrapped(*args, **kwargs)
    if rec.decisions != before:
        reason = why.message.partition("\n")[0]
        rec.locations.warn(
            f"{function.__name__} decides by sizes or values, and the trace raises where it would "
            f"decide otherwise, for it could not be compiled: {reason}"
        )
    return result


def _call(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Value:
    template = template_of(function._weft_unwrapped)
    c = Compiler(rec.graph, template.code, template.resolver, template.name, generic=True)
    range = rec.locations.here()
    given = [Arg(_sugared(rec, c, item), range) for item in args]
    named = {name: Arg(_sugared(rec, c, item), range) for name, item in kwargs.items()}
    before = rec.graph.block.last
    try:
        called = c.sugar(function, range, function.__name__)
        return called.call(c, Call(range, given, named)).value(c, range)
    except FrontendError:
        _drop(rec, before)
        raise


def _drop(rec: Recorder, last: Node | None) -> None:
    """Removes the nodes behind one."""
    block = rec.graph.block
    while block.last is not None and block.last is not last:
        block.last.destroy()


def _sugared(rec: Recorder, c: Compiler, given: Any) -> Sugared:
    """An argument: values of the trace, and constants."""
    if isinstance(given, Tensor):
        return Simple(rec.tensor(given))
    if isinstance(given, (TracedInt, TracedFloat)):
        return Simple(rec.number(given))
    if isinstance(given, _C.device):
        return Simple(rec.device(given))
    if hasattr(given, "_fields"):
        return _named_tuple(rec, c, given)
    if isinstance(given, (list, tuple)):
        return TupleLiteral([_sugared(rec, c, item) for item in given])
    return c.sugar(given, rec.locations.here(), "an argument")


def _named_tuple(rec: Recorder, c: Compiler, given: Any) -> Sugared:
    """A NamedTuple, whose fields are what they are: its __new__ is not asked again."""
    range = rec.locations.here()
    fields = [Arg(_sugared(rec, c, item), range) for item in given]
    return NamedTupleClass(type(given)).call(c, Call(range, fields))
