"""Functions of `math` that no operator computes as Python does by itself: written in the language,
or of lists, for which Python takes whatever can be looped over."""

from __future__ import annotations

import math
from typing import Any

from weft.jit.frontend import written_math
from weft.jit.frontend.builtins import Handler, as_list, handles
from weft.jit.frontend.calls import apply_operator, call_operator, convert_arguments
from weft.jit.frontend.conversions import Parameter, coerce, type_of
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.sugared import Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.frontend.written import call_written
from weft.jit.ir import types as ty


def _of_numbers(function: Any, count: int) -> Handler:
    """A function of the language whose arguments are numbers."""

    def handler(e: Emitter, call: Call) -> Sugared:
        name = f"math.{function.__name__}"
        call.expect_no_keywords(name)
        call.expect_count(name, count, count)
        parameters = [Parameter(f"x{i}", ty.FLOAT) for i in range(count)]
        values = convert_arguments(e, name, parameters, call)
        return call_written(e, function, call.range, *map(Simple, values))

    return handler


def _floats(e: Emitter, arg: Arg) -> Sugared:
    """A list of floats, of numbers of any kind."""
    wanted = ty.ListType(ty.FLOAT)
    if isinstance(arg.value, TupleLiteral | Simple):
        actual = type_of(e, arg.value, arg.range)
        if actual == wanted or isinstance(actual, ty.TupleType):
            return Simple(coerce(e, arg.value, wanted, arg.range, "math"))
    listed = as_list(e, arg.value, arg.range)
    if type_of(e, listed, arg.range) == wanted:
        return listed
    return call_written(e, written_math.floats, arg.range, listed)


def _of_lists(function: Any, kind: str, count: int) -> Handler:
    """A function of the numbers in lists."""

    def handler(e: Emitter, call: Call) -> Sugared:
        name = f"math.{function.__name__}"
        call.expect_no_keywords(name)
        call.expect_count(name, count, count)
        return apply_operator(e, kind, call.range, *(_floats(e, arg) for arg in call.args))

    return handler


handles(math.gamma)(_of_numbers(written_math.gamma, 1))
handles(math.lgamma)(_of_numbers(written_math.lgamma, 1))
handles(math.pow)(_of_numbers(written_math.power, 2))
handles(math.fsum)(_of_lists(math.fsum, "aten::fsum", 1))
handles(math.dist)(_of_lists(math.dist, "aten::mathdist", 2))


@handles(math.hypot)
def _hypot(e: Emitter, call: Call) -> Sugared:
    """Of two numbers mostly; Python takes any number of them."""
    call.expect_no_keywords("math.hypot")
    if len(call.args) == 2:
        return call_operator(e, "aten::hypot", call)
    numbers = Arg(TupleLiteral([arg.value for arg in call.args]), call.range)
    return call_written(e, written_math.length, call.range, _floats(e, numbers))


@handles(math.perm)
def _perm(e: Emitter, call: Call) -> Sugared:
    """Of one number, or of None as the second, the factorial."""
    call.expect_no_keywords("math.perm")
    call.expect_count("math.perm", 1, 2)
    if len(call.args) == 1:
        return call_operator(e, "aten::factorial", call)
    if ty.NONE in ty.members_of(type_of(e, call.args[1].value, call.range)):
        return call_written(e, written_math.permutations, call.range, *(a.value for a in call.args))
    return call_operator(e, "aten::perm", call)
