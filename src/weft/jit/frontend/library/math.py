"""Functions of `math` that no operator computes as Python does by itself: written in the language,
or of lists, for which Python takes whatever can be looped over."""

from __future__ import annotations

import math
from typing import Any

from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import convert_arguments
from weft.jit.frontend.library import prelude_math
from weft.jit.frontend.registry import builtin
from weft.jit.frontend.types.parameters import Parameter
from weft.jit.frontend.values import Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty


def _of_numbers(known: Any, function: Any, count: int) -> None:
    """A function of the language whose arguments are numbers."""

    @builtin(known, name=f"math.{function.__name__}", takes=count)
    def handler(c: Compiler, call: Call) -> Sugared:
        parameters = [Parameter(f"x{i}", ty.FLOAT) for i in range(count)]
        values = convert_arguments(c, f"math.{function.__name__}", parameters, call)
        return c.call(function, call.range, *map(Simple, values))


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


def _of_lists(known: Any, kind: str, count: int) -> None:
    """A function of the numbers in lists."""

    @builtin(known, name=f"math.{known.__name__}", takes=count)
    def handler(c: Compiler, call: Call) -> Sugared:
        return c.apply(kind, call.range, *(_floats(c, arg) for arg in call.args))


_of_numbers(math.gamma, prelude_math.gamma, 1)
_of_numbers(math.lgamma, prelude_math.lgamma, 1)
_of_numbers(math.pow, prelude_math.power, 2)
_of_lists(math.fsum, "aten::fsum", 1)
_of_lists(math.dist, "aten::mathdist", 2)


@builtin(math.hypot)
def _hypot(c: Compiler, call: Call) -> Sugared:
    """Of two numbers mostly; Python takes any number of them."""
    call.expect_no_keywords("math.hypot")
    if len(call.args) == 2:
        return c.call_operator("aten::hypot", call)
    numbers = Arg(TupleLiteral([arg.value for arg in call.args]), call.range)
    return c.call(prelude_math.length, call.range, _floats(c, numbers))


@builtin(math.perm, name="math.perm", takes=(1, 2))
def _perm(c: Compiler, call: Call) -> Sugared:
    """Of one number, or of None as the second, the factorial."""
    if len(call.args) == 1:
        return c.call_operator("aten::factorial", call)
    if ty.NONE in ty.members_of(c.type_of(call.args[1].value, call.range)):
        return c.call(prelude_math.permutations, call.range, *(a.value for a in call.args))
    return c.call_operator("aten::perm", call)
