"""The operators that the code of archives calls, with TorchScript's conventions.

Dtypes, layouts and memory formats are ints there. What weft composes in Python has a function of
the operator's own signature in `functions`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from weft import _C
from weft._ops.schema import parse
from weft.jit.archive import attention, exported, images, quantized_layers, traced, vision  # noqa: F401, which register
from weft.jit.archive.former import FORMER
from weft.jit.archive.functions import COMPOSED, NUMBER_FIRST
from weft.jit.archive.numbers import (
    NUMBER_OF_LAYOUT,
    NUMBERED_DTYPES,
    as_dtype,
    as_number,
    may_be_number,
    optional_dtype_of,
)
from weft.jit.archive.same import find, parameter_name
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import candidates, parameters_of, try_operator
from weft.jit.frontend.language.generic import choose_overload, overload_parameters
from weft.jit.frontend.language.objects import CustomOperator, set_named_operators
from weft.jit.frontend.source.errors import FrontendError, UnknownOperator
from weft.jit.frontend.values import UNKNOWN, Arg, Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.library import _operator as library
from weft.library._infer import infer_schema

NEWEST = 10  # version of archives
_BY_NUMBER: dict[ty.Type, Any] = {
    ty.DTYPE: NUMBERED_DTYPES,
    ty.LAYOUT: {0: _C.strided},
    ty.MEMORY_FORMAT: dict(enumerate(_C._memory_formats)),
}


class Operator(Sugared):
    """An operator as it was in archives of a version. `missing` gives the text of the error for one
    that weft has not."""

    def __init__(self, kind: str, version: int, missing: Callable[[str], str]) -> None:
        self.kind, self.version, self.missing = kind, version, missing

    def describe(self) -> str:
        return f"the operator {self.kind}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        """Its call. Where weft has not the operator, or none of its overloads, the statement
        raises."""
        try:
            return self._call(c, call)
        except UnknownOperator:
            raise
        except FrontendError as error:
            raise UnknownOperator(error.message, call.range) from error

    def _call(self, c: Compiler, call: Call) -> Sugared:
        if self.kind == "aten::sort" and call.args and not _is_of_tensor(c, call):
            held, *rest = call.args  # objects of a list may have an order of their own
            return held.value.attr(c, call.range, "sort").call(c, call._replace(args=rest))
        call = _with_number(c, self.kind, call)
        last, former = FORMER.get(self.kind, (0, None))
        if former is not None and self.version <= last:
            return c.sugar(former, call.range, self.kind).call(c, call)
        function = NUMBER_FIRST.get(self.kind)
        if function is not None and _is_of_tensor(c, call, 1) and not _is_of_tensor(c, call):
            return c.sugar(function, call.range, self.kind).call(c, call)
        overloads = _of_types(c, self.kind, call)
        found = _try(c, overloads, call)
        if found is not None:
            return found
        if self.kind in COMPOSED:
            return _call_composed(c, self.kind, call)
        custom = library.find(self.kind)
        if custom is not None:
            return CustomOperator(custom.overload, self.kind).call(c, call)
        if overloads:
            return c.call_operator(self.kind, call)  # which tells why none fits
        function = find(self.kind)
        if function is None:
            raise UnknownOperator(self.missing(self.kind), call.range)
        if "dtype" in call.kwargs:
            dtype = _object(c, call.kwargs["dtype"], ty.DTYPE)
            call = call._replace(kwargs={**call.kwargs, "dtype": dtype})
        return _as_number(c, c.sugar(function, call.range, self.kind).call(c, call), call)

    def key(self) -> Any:
        return ("operator", self.kind, self.version)


# Where a constant tensor without dimensions is a number to PyTorch's optimizer: traces have the
# numbers of a program so, and they decide dtypes otherwise than tensors.
_TAKE_NUMBERS = frozenset(f"aten::{name}" for name in ("add", "sub", "mul", "div", "true_divide"))


def _with_number(c: Compiler, kind: str, call: Call) -> Call:
    """The call with a number for such a constant as the second operand."""
    if kind not in _TAKE_NUMBERS or len(call.args) < 2 or "rounding_mode" in call.kwargs:
        return call
    held = call.args[1].value.static(c)
    if not may_be_number(held) or held.dtype == _C.bool or not _is_of_tensor(c, call):
        return call
    args = list(call.args)
    args[1] = Arg(Simple(c.constant(held.item())), args[1].range)
    return call._replace(args=args)


def functions_of(kind: str) -> list[tuple[Callable[..., Any], str]]:
    """The functions that do an operator which is not of the table, each with its schema, in which
    parameters have PyTorch's names."""
    written = find(kind)
    functions = COMPOSED.get(kind, [] if written is None else [written])
    return [(each, _text_of(each, kind)) for each in functions]


def _text_of(function: Callable[..., Any], kind: str) -> str:
    name = kind.partition("::")[2]
    rows = candidates(f"aten::{function.__name__}")
    if not hasattr(function, "__code__") and rows:
        return f"{name}({rows[0].text.partition('(')[2]}"  # of the table under another name
    try:
        schema = parse(infer_schema(function, mutates_args=(), op_name=name))
    except ValueError:  # of types that schemas have not: names are what is needed
        schema = parse(f"{name}({_plain_parameters(function)}) -> Tensor")
    args = tuple(arg._replace(name=parameter_name(kind, arg.name)) for arg in schema.args)
    return str(schema._replace(args=args))


def _plain_parameters(function: Callable[..., Any]) -> str:
    texts = []
    for each in inspect.signature(function).parameters.values():
        if each.kind is each.KEYWORD_ONLY and "*" not in texts:
            texts.append("*")
        texts.append(f"Tensor? {each.name}" + ("" if each.default is each.empty else "=None"))
    return ", ".join(texts)


def is_known(kind: str) -> bool:
    """Whether weft has the operator of that name."""
    return (
        kind in COMPOSED
        or library.find(kind) is not None
        or bool(candidates(kind))
        or find(kind) is not None
    )


def _call_composed(c: Compiler, kind: str, call: Call) -> Sugared:
    functions = COMPOSED[kind]
    chosen = 0
    if len(functions) > 1:
        parameters = [overload_parameters(each, each)[0] for each in functions]
        chosen = choose_overload(c, kind, parameters, call)
    return c.sugar(functions[chosen], call.range, kind).call(c, call)


def _of_types(c: Compiler, kind: str, call: Call) -> Sequence[Any]:
    overloads = candidates(kind)
    if _is_of_tensor(c, call):
        return [each for each in overloads if _takes_tensor(each)]
    return overloads


def _try(c: Compiler, overloads: Sequence[Any], call: Call) -> Sugared | None:
    """The call of an operator of the table; None where none fits."""
    found = try_operator(c, overloads, call)
    for operator in overloads:
        if not isinstance(found, list):
            break
        changed = _with_objects(c, operator, call)
        if changed is not None:
            found = try_operator(c, [operator], changed)
    return None if isinstance(found, list) else _as_number(c, found, call)


def _is_of_tensor(c: Compiler, call: Call, place: int = 0) -> bool:
    arg = call.args[place] if place < len(call.args) else None
    return arg is not None and c.type_of(arg.value, arg.range) is ty.TENSOR


def _takes_tensor(operator: Any) -> bool:
    """Whether its first parameter may be a tensor, which no archive means as a number."""
    parameters = parameters_of(operator)
    first = ty.non_none(parameters[0].type) if parameters else None
    return first not in (ty.INT, ty.FLOAT, ty.BOOL, ty.COMPLEX, ty.NUMBER)


def _with_objects(c: Compiler, operator: Any, call: Call) -> Call | None:
    """The call with dtypes and the like in the place of their numbers; None if there is none, or
    if there are more arguments by position than the operator takes."""
    args, kwargs, changed = list(call.args), dict(call.kwargs), False
    parameters = parameters_of(operator)
    if len(args) > sum(not each.kwarg_only for each in parameters):
        return None
    for index, parameter in enumerate(parameters):
        wanted = ty.non_none(parameter.type)
        if wanted not in _BY_NUMBER:
            continue
        place: Any = index if index < len(args) else parameter.name
        held: Any = args if index < len(args) else kwargs
        if held is args or place in kwargs:
            made = _object(c, held[place], wanted)
            changed = changed or made is not held[place]
            held[place] = made
    return Call(call.range, args, kwargs, call.hint) if changed else None


def _object(c: Compiler, arg: Arg, wanted: ty.Type) -> Arg:
    given = c.type_of(arg.value, arg.range)
    if ty.non_none(given) is not ty.INT:
        return arg
    number = arg.value.static(c)
    if number is UNKNOWN and wanted is ty.DTYPE:
        if given is ty.INT:
            return Arg(as_dtype(c, Call.of(arg.range, arg.value)), arg.range)
        return Arg(c.call(optional_dtype_of, arg.range, arg.value), arg.range)
    if number is UNKNOWN and wanted is ty.LAYOUT and isinstance(arg.value, Simple):
        made = arg.value.v.node
        if made is not None and made.kind == NUMBER_OF_LAYOUT:
            return Arg(Simple(made.inputs[0]), arg.range)
    known = _BY_NUMBER[wanted].get(number)
    return arg if known is None else Arg(Simple(c.constant(known)), arg.range)


def _as_number(c: Compiler, result: Sugared, call: Call) -> Sugared:
    """A dtype is a number there, and so is a layout."""
    if isinstance(result, Simple) and result.v.type in (ty.DTYPE, ty.LAYOUT):
        return as_number(c, result, call.range)
    return result


set_named_operators(lambda kind: Operator(kind, NEWEST, "{} is no operator of weft".format))
