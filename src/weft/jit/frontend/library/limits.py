"""weft.finfo and weft.iinfo of a dtype that is known while compiling, or only when it runs."""

from __future__ import annotations

import ast
from typing import Any

from weft import _C
from weft._tensor.limits import finfo, iinfo
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.control_flow import Condition, choose
from weft.jit.frontend.language.python_objects import PythonObject
from weft.jit.frontend.library import prelude
from weft.jit.frontend.registry import builtin
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import UNKNOWN, Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange

_FLOATS = tuple(dtype for dtype in _C._dtypes if dtype.is_floating_point)
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
