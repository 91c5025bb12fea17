"""TorchScript's numbers of dtypes: its programs know dtypes, layouts and memory formats as ints."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.registry import builtin
from weft.jit.frontend.values import Call, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.source import SourceRange

DTYPE_OF, NUMBER_OF = "prim::numbered_dtype", "prim::dtype_number"
NUMBER_OF_LAYOUT = "prim::layout_number"
NUMBERED_DTYPES: dict[int, Any] = {each._number: each for each in _C._dtypes}


def dtype_of(number: int) -> _C.dtype:
    """The dtype of TorchScript's number; RuntimeError for a number that has none."""
    if number not in NUMBERED_DTYPES:
        raise RuntimeError(f"dtype: expected the number of a dtype, got {number}")
    return NUMBERED_DTYPES[number]


def optional_dtype_of(number: int | None) -> _C.dtype | None:
    """The dtype of TorchScript's number, if there is one."""
    return None if number is None else dtype_of(number)


def number_of(dtype: _C.dtype) -> int:
    """TorchScript's number of a dtype."""
    return int(dtype._number)


@builtin(dtype_of, takes=1)
def as_dtype(c: Compiler, call: Call) -> Sugared:
    """dtype_of, in a program."""
    number = c.convert(call.args[0].value, ty.INT, call.range, "dtype")
    return Simple(c.emit(DTYPE_OF, (number,), ty.DTYPE, range=call.range))


def as_number(c: Compiler, result: Simple, range: SourceRange) -> Simple:
    """The number of a dtype or layout, in a program."""
    kind = NUMBER_OF if result.v.type is ty.DTYPE else NUMBER_OF_LAYOUT
    return Simple(c.emit(kind, (result.v,), ty.INT, range=range))


def may_be_number(constant: Any) -> bool:
    """Whether programs may have the number that a constant tensor holds in its place."""
    return isinstance(constant, _C.Tensor) and constant.dim() == 0 and not constant.is_meta
