"""Calls of operators and compiled functions: which overload fits, and what is converted.

Overloads are tried in order, first as the arguments are, then with the conversions that eager code
makes silently (a tensor of one element to a number, an int to a float), then with bool to int.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from weft.jit import schemas
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.conversions import (
    LEVELS,
    WIDENED,
    Convert,
    converter,
    default_value,
)
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import FrontendError, fail
from weft.jit.frontend.types.signatures import Parameter
from weft.jit.frontend.values import Arg, Call, Simple, Spread, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.record import NamedTuple
from weft.jit.ir.source import SourceRange
from weft.jit.python_functions import function_kind


class Mismatch(NamedTuple):
    """Why arguments do not fit."""

    reason: str
    range: SourceRange | None = None


def candidates(name: str) -> Sequence[Any]:
    """The operators of a name such as aten::add, in the order in which they are tried."""
    return schemas.candidates(name)


def match(
    c: Compiler, parameters: Sequence[Parameter], call: Call, level: int
) -> tuple[list[Convert], dict[str, ty.Type]] | Mismatch:
    """How each parameter gets its value, and the bindings of type variables."""
    bindings: dict[str, ty.Type] = {}
    given, rest = list(call.args), dict(call.kwargs)
    found: list[Convert] = []
    for index, parameter in enumerate(parameters):
        if parameter.rest:
            found.extend(map(_as_it_is, given))
            given = []
            continue
        if given and not parameter.kwarg_only:
            if parameter.var_list and _takes_all(c, parameters, index, given):
                arg, given = Arg(_packed(c, given), given[0].range), []
            else:
                arg = given.pop(0)
            if parameter.name in rest and not parameter.nameless:
                return Mismatch(f"argument '{parameter.name}' is given twice", arg.range)
        elif parameter.name == "self" and "input" in rest:  # its name in functions
            arg = rest.pop("input")
        elif parameter.name in rest and not parameter.nameless:
            arg = rest.pop(parameter.name)
        elif parameter.has_default:
            found.append(_default(parameter))
            continue
        else:
            return Mismatch(f"argument '{parameter.name}' is missing")
        try:
            convert = converter(c, arg, parameter, level, bindings)
        except FrontendError as error:
            return Mismatch(f"argument '{parameter.name}': {error.message}", arg.range)
        if convert is None:
            wanted = ty.substitute(parameter.type, bindings).annotation
            actual = c.type_of(arg.value, arg.range).annotation
            return Mismatch(
                f"argument '{parameter.name}': expected a value of type {wanted}, got {actual}",
                arg.range,
            )
        found.append(convert)
    if given:
        total = sum(not p.kwarg_only for p in parameters)
        return Mismatch(
            f"expected at most {total} positional arguments, got {len(call.args)}", given[0].range
        )
    if rest:
        name = next(iter(rest))
        return Mismatch(f"there is no argument '{name}'", rest[name].range)
    return found, bindings


def _packed(c: Compiler, given: Sequence[Arg]) -> Sugared:
    """Several ints, lists of ints with a star among them, as one list."""
    if not any(isinstance(arg.value, Spread) for arg in given):
        return TupleLiteral([arg.value for arg in given])
    whole: Sugared | None = None
    for arg in given:
        if isinstance(arg.value, Spread):
            part: Sugared = Simple(arg.value.v)
        else:
            item = c.convert(arg.value, ty.INT, arg.range, "size")
            made = c.emit("prim::ListConstruct", (item,), ty.ListType(ty.INT), range=arg.range)
            part = Simple(made)
        whole = part if whole is None else c.binary(ast.Add, whole, part, arg.range)
    assert whole is not None
    return whole


def _takes_all(
    c: Compiler, parameters: Sequence[Parameter], index: int, given: Sequence[Arg]
) -> bool:
    last = index + 1 == len(parameters) or parameters[index + 1].kwarg_only
    if not last and len(given) == 1:
        return False
    if last and any(isinstance(arg.value, Spread) for arg in given):
        return True
    try:
        types = [c.type_of(arg.value, arg.range) for arg in given]
    except FrontendError:
        return False
    return last and all(t in (ty.INT, ty.NUMBER, ty.TENSOR) for t in types)


def _as_it_is(arg: Arg) -> Convert:
    return lambda c, range: arg.value.value(c, arg.range)


def _default(parameter: Parameter) -> Convert:
    return lambda c, range: default_value(
        c, parameter.default, parameter.type, range, parameter.length
    )


# Operators ------------------------------------------------------------------------------------


@verb("call_operator")
def call_operator(
    c: Compiler, name: str, call: Call, overloads: Sequence[Any] | None = None
) -> Sugared:
    """A call of the operator `name` (aten::add); FrontendError lists the overloads if none fits."""
    operators = candidates(name) if overloads is None else overloads
    result = try_operator(c, operators, call)
    if not isinstance(result, list):
        return result
    shown = name.partition("::")[2] or name
    if not operators:
        fail(f"{shown}: expected an operator of the language, got a name that is none", call.range)
    got = describe_arguments(c, call)
    if len(operators) == 1:
        where = result[0].range or call.range
        fail(f"{shown}: {result[0].reason}; it takes {operators[0].text}", where)
    listed = "\n".join(f"  {op.text}: {why.reason}" for op, why in zip(operators, result))
    fail(f"{shown}: expected arguments that fit one of these, got ({got}):\n{listed}", call.range)


def try_operator(c: Compiler, operators: Sequence[Any], call: Call) -> Sugared | list[Mismatch]:
    """The call of the first overload that fits, or why none does."""
    why: list[Mismatch] = []
    for level in LEVELS:
        why = []
        for operator in operators:
            found = match(c, parameters_of(operator), call, level)
            if isinstance(found, Mismatch):
                why.append(found)
                continue
            converts, bindings = found
            inputs = [convert(c, call.range) for convert in converts]
            return emit_operator(c, operator, inputs, bindings, call.range)
    return why


def emit_operator(
    c: Compiler,
    operator: Any,
    inputs: Sequence[Value],
    bindings: dict[str, ty.Type],
    range: SourceRange,
) -> Sugared:
    """The node of an operator whose inputs are ready."""
    returns = operator.schema.returns
    types = [ty.substitute(r.type, bindings) if bindings else r.type for r in returns]
    node = c.node(operator.kind, inputs, types, range=range)
    if not types:
        return c.none()
    if len(types) == 1:
        return Simple(node.output)
    fields = tuple(r.name for r in returns)
    return TupleLiteral([Simple(v) for v in node.outputs], fields if all(fields) else ())


_parameters: dict[str, list[Parameter]] = {}


def parameters_of(operator: Any) -> list[Parameter]:
    """The parameters of an operator."""
    known = _parameters.get(operator.kind)
    if known is None:
        schema = operator.schema
        known = [_parameter(arg) for arg in schema.args]
        if schema.varargs:
            known[-1] = known[-1]._replace(rest=True)
        _parameters[operator.kind] = known
    return known


def _parameter(arg: Any) -> Parameter:
    inner = ty.non_none(arg.type) if isinstance(arg.type, ty.OptionalType) else arg.type
    length = getattr(arg, "length", None)
    is_open = isinstance(inner, ty.ListType) and inner.elem is ty.INT
    var_list = is_open and length is None
    made = Parameter(arg.name, arg.type, arg.default, arg.has_default, arg.kwarg_only, length)
    return made._replace(var_list=var_list, read=True)


def describe_arguments(c: Compiler, call: Call) -> str:
    """The types of the arguments of a call, for messages."""
    named = [("", arg) for arg in call.args] + [
        (f"{name}=", arg) for name, arg in call.kwargs.items()
    ]
    return ", ".join(prefix + _describe(c, arg) for prefix, arg in named)


def _describe(c: Compiler, arg: Arg) -> str:
    try:
        return c.type_of(arg.value, arg.range).annotation
    except FrontendError:
        return arg.value.describe()


# Functions ------------------------------------------------------------------------------------


def convert_arguments(
    c: Compiler, name: str, parameters: Sequence[Parameter], call: Call
) -> list[Value]:
    """The values for the parameters of a compiled function; FrontendError where they do not fit."""
    result = match(c, parameters, call, WIDENED)
    if isinstance(result, Mismatch):
        shown = ", ".join(f"{p.name}: {p.type.annotation}" for p in parameters)
        fail(f"{name}: {result.reason}; it takes ({shown})", result.range or call.range)
    return [convert(c, call.range) for convert in result[0]]


class BuiltinFunction(Sugared):
    """An operator, called by name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def describe(self) -> str:
        return f"the function {self.name.partition('::')[2]}"

    def call(self, c: Compiler, call: Call) -> Sugared:
        return c.call_operator(self.name, call)

    def key(self) -> Any:
        return ("builtin", self.name)


def operator_name(obj: Any) -> str | None:
    """The operators that a Python callable stands for, as "aten::relu", or None."""
    name = function_kind(obj)
    return name if name is not None and candidates(name) else None
