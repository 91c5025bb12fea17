"""Functions of `math` that no operator computes as Python does: written in the language, or, for
those that few programs call, Python's own, called by the program."""

from __future__ import annotations

import math
from typing import Any

from weft.jit.frontend import written_math
from weft.jit.frontend.builtins import Handler, handles
from weft.jit.frontend.calls import convert_arguments
from weft.jit.frontend.conversions import Parameter
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.errors import fail
from weft.jit.frontend.sugared import Call, Simple, Sugared
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


def _of_python(function: Any, parameters: list[Parameter], returns: ty.Type) -> Handler:
    """Python's function, called by the program."""
    name = f"math.{function.__name__}"

    def handler(e: Emitter, call: Call) -> Sugared:
        if call.kwargs:
            fail(f"{name}: expected no keyword arguments, got some", call.range)
        values = convert_arguments(e, name, parameters, call)
        attrs = {"callable": function}
        return Simple(e.emit("prim::CallPython", values, returns, attrs, call.range))

    return handler


handles(math.gamma)(_of_numbers(written_math.gamma, 1))
handles(math.lgamma)(_of_numbers(written_math.lgamma, 1))
handles(math.pow)(_of_numbers(written_math.power, 2))

_FLOATS = ty.ListType(ty.FLOAT)
_COUNT = ty.optional_of(ty.INT)
for _name, _parameters, _returns in (
    ("cbrt", [Parameter("x", ty.FLOAT)], ty.FLOAT),
    ("exp2", [Parameter("x", ty.FLOAT)], ty.FLOAT),
    ("ulp", [Parameter("x", ty.FLOAT)], ty.FLOAT),
    ("fsum", [Parameter("seq", _FLOATS)], ty.FLOAT),
    ("nextafter", [Parameter("x", ty.FLOAT), Parameter("y", ty.FLOAT)], ty.FLOAT),
    ("dist", [Parameter("p", _FLOATS), Parameter("q", _FLOATS)], ty.FLOAT),
    ("comb", [Parameter("n", ty.INT), Parameter("k", ty.INT)], ty.INT),
    ("perm", [Parameter("n", ty.INT), Parameter("k", _COUNT, None, True)], ty.INT),
):
    if hasattr(math, _name):  # some came with Python 3.11
        handles(getattr(math, _name))(_of_python(getattr(math, _name), _parameters, _returns))
