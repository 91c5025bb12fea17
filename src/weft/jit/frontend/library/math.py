"""Functions of `math` that no operator computes as Python does by itself: written in the language,
or of lists, for which Python takes whatever can be looped over."""

from __future__ import annotations

import math
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import convert_arguments
from weft.jit.frontend.library import prelude_math
from weft.jit.frontend.library.containers import Handler
from weft.jit.frontend.registry import builtin
from weft.jit.frontend.types.parameters import Parameter
from weft.jit.frontend.values import Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty


def _of_numbers(function: Any, count: int) -> Handler:
    """A function of the language whose arguments are numbers."""

    def handler(c: Compiler, call: Call) -> Sugared:
        name = f"math.{function.__name__}"
        call.expect_no_keywords(name)
        call.expect_count(name, count, count)
        parameters = [Parameter(f"x{i}", ty.FLOAT) for i in range(count)]
        values = convert_arguments(c, name, parameters, call)
        return c.call(function, call.range, *map(Simple, values))

    return handler


def _floats(c: Compiler, arg: Arg) -> Sugared:
    """A list of floats, of numbers of any kind."""
    wanted = ty.ListType(ty.FLOAT)
    if isinstance(arg.value, TupleLiteral | Simple):
        actual = c.type_of(arg.value, arg.range)
        if actual == wanted or isinstance(actual, ty.TupleType):
            return Simple(c.convert(arg.value, wanted, arg.range, "math"))
    listed = c.as_list(arg.value, arg.range)
    if c.type_of(listed, arg.range) == wanted:
        return listed
    return c.call(prelude_math.floats, arg.range, listed)


def _of_lists(function: Any, kind: str, count: int) -> Handler:
    """A function of the numbers in lists."""

    def handler(c: Compiler, call: Call) -> Sugared:
        name = f"math.{function.__name__}"
        call.expect_no_keywords(name)
        call.expect_count(name, count, count)
        return c.apply(kind, call.range, *(_floats(c, arg) for arg in call.args))

    return handler


builtin(math.gamma)(_of_numbers(prelude_math.gamma, 1))
builtin(math.lgamma)(_of_numbers(prelude_math.lgamma, 1))
builtin(math.pow)(_of_numbers(prelude_math.power, 2))
builtin(math.fsum)(_of_lists(math.fsum, "aten::fsum", 1))
builtin(math.dist)(_of_lists(math.dist, "aten::mathdist", 2))


@builtin(math.hypot)
def _hypot(c: Compiler, call: Call) -> Sugared:
    """Of two numbers mostly; Python takes any number of them."""
    call.expect_no_keywords("math.hypot")
    if len(call.args) == 2:
        return c.call_operator("aten::hypot", call)
    numbers = Arg(TupleLiteral([arg.value for arg in call.args]), call.range)
    return c.call(prelude_math.length, call.range, _floats(c, numbers))


@builtin(math.perm)
def _perm(c: Compiler, call: Call) -> Sugared:
    """Of one number, or of None as the second, the factorial."""
    call.expect_no_keywords("math.perm")
    call.expect_count("math.perm", 1, 2)
    if len(call.args) == 1:
        return c.call_operator("aten::factorial", call)
    if ty.NONE in ty.members_of(c.type_of(call.args[1].value, call.range)):
        return c.call(prelude_math.permutations, call.range, *(a.value for a in call.args))
    return c.call_operator("aten::perm", call)
