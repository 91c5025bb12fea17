"""Functions of weft that decide by sizes or values: a trace calls their programs."""

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
from weft.jit.ir.graph import Node, Value
from weft.jit.tracing import structures
from weft.jit.tracing.faces import FACES
from weft.jit.tracing.numbers import TracedFloat, TracedInt

if TYPE_CHECKING:
    from weft.jit.tracing.recorder import Recorder


@FACES("library")
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
        rec.places.warn(
            f"{function.__name__} decides by sizes or values, and the trace raises where it would "
            f"decide otherwise, for it could not be compiled: {reason}"
        )
    return result


def _call(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Value:
    template = template_of(function._weft_unwrapped)
    c = Compiler(rec.graph, template.code, template.resolver, template.name, generic=True)
    range = rec.places.here()
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
    return c.sugar(given, rec.places.here(), "an argument")


def _named_tuple(rec: Recorder, c: Compiler, given: Any) -> Sugared:
    """A NamedTuple, whose fields are what they are: its __new__ is not asked again."""
    range = rec.places.here()
    fields = [Arg(_sugared(rec, c, item), range) for item in given]
    return NamedTupleClass(type(given)).call(c, Call(range, fields))
