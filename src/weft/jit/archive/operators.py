"""The operators that the code of archives calls, with TorchScript's conventions.

Dtypes, layouts and memory formats are ints there. What weft composes in Python has a function of
the operator's own signature in `functions`.
"""

from __future__ import annotations

from typing import Any

import weft
from weft.jit.archive import functions
from weft.jit.frontend.calls import call_operator, candidates, parameters_of, try_operator
from weft.jit.frontend.conversions import type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import UnknownOperator
from weft.jit.frontend.objects import sugar
from weft.jit.frontend.sugared import UNKNOWN, Arg, Call, Simple, Sugared
from weft.jit.frontend.written import call_written
from weft.jit.ir import types as ty

_BY_NUMBER: dict[ty.Type, Any] = {
    ty.DTYPE: functions.NUMBERED_DTYPES,
    ty.LAYOUT: {0: weft.strided},
    ty.MEMORY_FORMAT: {
        0: weft.contiguous_format,
        1: weft.preserve_format,
        2: weft.channels_last,
    },
}


class Operator(Sugared):
    """An operator of a namespace by its name, as it was in archives of a version."""

    def __init__(self, space: str, name: str, version: int) -> None:
        self.space, self.name, self.version = space, name, version

    def describe(self) -> str:
        return f"the operator {self.space}::{self.name}"

    def call(self, e: Emitter, call: Call) -> Sugared:
        kind = f"{self.space}::{self.name}"
        overloads = candidates(kind)
        if _is_of_tensor(e, call):
            overloads = [each for each in overloads if _takes_tensor(each)]
        last, composed = functions.FORMER.get(kind, (0, None))
        if self.version > last:
            known = kind in functions.COMPOSED or not overloads
            composed = functions.find(kind) if known else None
        if composed is not None:
            return sugar(e, composed, call.range, self.name).call(e, call)
        if not overloads:
            raise UnknownOperator(
                f"{kind}: expected an operator of weft, got one it has not", call.range
            )
        found = try_operator(e, overloads, call)
        for operator in overloads if isinstance(found, list) else ():
            changed = _with_objects(e, operator, call)
            if changed is not None and isinstance(found, list):
                found = try_operator(e, [operator], changed)
        if isinstance(found, list):
            found = call_operator(e, kind, call)  # which tells why none fits
        return _as_number(e, found, call)

    def key(self) -> Any:
        return ("operator", self.space, self.name, self.version)


def _is_of_tensor(e: Emitter, call: Call) -> bool:
    first = call.args[0] if call.args else None
    return first is not None and type_of(e, first.value, first.range) is ty.TENSOR


def _takes_tensor(operator: Any) -> bool:
    """Whether its first parameter may be a tensor, which no archive means as a number."""
    parameters = parameters_of(operator)
    first = ty.non_none(parameters[0].type) if parameters else None
    return first not in (ty.INT, ty.FLOAT, ty.BOOL, ty.COMPLEX, ty.NUMBER)


def _with_objects(e: Emitter, operator: Any, call: Call) -> Call | None:
    """The call with dtypes and the like in the place of their numbers; None if there is none."""
    args, kwargs, changed = list(call.args), dict(call.kwargs), False
    for index, parameter in enumerate(parameters_of(operator)):
        wanted = ty.non_none(parameter.type)
        if wanted not in _BY_NUMBER:
            continue
        place: Any = index if index < len(args) else parameter.name
        held: Any = args if index < len(args) else kwargs
        if held is args or place in kwargs:
            made = _object(e, held[place], wanted)
            changed = changed or made is not held[place]
            held[place] = made
    return Call(call.range, args, kwargs, call.hint) if changed else None


def _object(e: Emitter, arg: Arg, wanted: ty.Type) -> Arg:
    given = type_of(e, arg.value, arg.range)
    if ty.non_none(given) is not ty.INT:
        return arg
    number = arg.value.static(e)
    if number is UNKNOWN and wanted is ty.DTYPE:
        convert = functions.dtype_of if given is ty.INT else functions.optional_dtype_of
        return Arg(call_written(e, convert, arg.range, arg.value), arg.range)
    known = _BY_NUMBER[wanted].get(number)
    return arg if known is None else Arg(Simple(e.constant(known)), arg.range)


def _as_number(e: Emitter, result: Sugared, call: Call) -> Sugared:
    if isinstance(result, Simple) and result.v.type is ty.DTYPE:
        return call_written(e, functions.number_of, call.range, result)
    return result
