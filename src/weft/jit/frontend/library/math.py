"""Functions of `math` that no operator computes as Python does by itself: written in the language,
or of lists, for which Python takes whatever can be looped over."""

from __future__ import annotations

import ast
import math
from typing import Any

from weft import _C
from weft._tensor.limits import finfo, iinfo
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.calls import convert_arguments
from weft.jit.frontend.language.control_flow import Condition, choose
from weft.jit.frontend.language.python_objects import PythonObject
from weft.jit.frontend.library import prelude, prelude_math
from weft.jit.frontend.registry import builtin
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.types.signatures import Parameter
from weft.jit.frontend.values import UNKNOWN, Arg, Call, Simple, Sugared, TupleLiteral
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


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


_FLOATS = tuple(each for each in _C._dtypes if each.is_floating_point or each.is_complex)
_INTS = (_C.uint8, _C.int8, _C.int16, _C.int32, _C.int64)
_KINDS: dict[Any, tuple[str, tuple[Any, ...]]] = {
    finfo: ("finfo", _FLOATS),
    iinfo: ("iinfo", _INTS),
}


class Limits(Sugared):
    """finfo(dtype) of a dtype that the program finds out: its attributes are choices."""

    def __init__(self, kind: Any, dtype: Value) -> None:
        self.kind, self.dtype = kind, dtype

    def describe(self) -> str:
        return f"the {_KINDS[self.kind][0]} of a dtype"

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        dtypes = _KINDS[self.kind][1]
        if name not in ("max", "min", "eps", "tiny", "smallest_normal", "resolution", "bits"):
            return super().attr(c, range, name)
        if not hasattr(self.kind(dtypes[0]), name):
            return super().attr(c, range, name)
        known = Simple(self.dtype)
        check = prelude.check_floats if self.kind is finfo else prelude.check_integers
        c.call(check, range, known)

        def of(index: int) -> Sugared:
            value = Simple(c.constant(getattr(self.kind(dtypes[index]), name)))
            if index + 1 == len(dtypes):
                return value
            same = c.compare(ast.Eq(), known, Simple(c.constant(dtypes[index])), range)
            test = Condition(same.value(c, range))
            return choose(c, test, lambda: value, lambda: of(index + 1), range)

        return of(0)


def _limits(kind: Any) -> None:
    label = _KINDS[kind][0]

    @builtin(kind, name=label, takes=1)
    def handler(c: Compiler, call: Call) -> Sugared:
        dtype = c.convert(call.args[0].value, ty.DTYPE, call.range, label)
        known = call.args[0].value.static(c)
        if known is UNKNOWN:
            return Limits(kind, dtype)
        try:
            return PythonObject(kind(known), f"{label}({known})")
        except TypeError as error:
            fail(str(error), call.range)


_limits(finfo)
_limits(iinfo)
