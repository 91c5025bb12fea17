"""Ints and floats that know which value of the graph they are.

`x.shape[0]` is an int, and may be used as one everywhere; arithmetic on it is recorded, and an
operator that takes it as a size takes the value. Where it decides what Python does, a warning says
that the trace holds for that decision only.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft import _C
from weft._runtime import lazy
from weft.jit.ir.graph import Value
from weft.jit.tracing.source_locations import is_library

if TYPE_CHECKING:
    from weft.jit.tracing.recorder import Recorder

numpy = lazy.module("numpy")
Number = int | float


def plain(number: Any) -> Any:
    """The same number, without its origin."""
    return number._number if isinstance(number, _Number) else number


def _recording(number: Any) -> Recorder | None:
    """The recorder of the number, where it is the one that records now."""
    recorder: Recorder = number._recorder
    return recorder if _C._recorder() is recorder else None


def _kind(name: str, a: Any, b: Any) -> str:
    types = tuple("float" if isinstance(x, float) else "int" for x in (a, b))
    if name == "pow" and types == ("int", "int"):
        return "aten::pow.int_to_int" if b >= 0 else "aten::pow.int"
    if name == "div" and types != ("int", "int"):
        return "aten::div"
    overload = types[0] if types[0] == types[1] else "_".join(types)
    return f"aten::{name}.{overload}"


def _operand(recorder: Recorder, number: Any) -> Value:
    """The value of a number in arithmetic, where a bool is the int that it is in Python."""
    return recorder.number(int(number) if isinstance(number, bool) else number)


def _binary(name: str, function: Callable[[Any, Any], Any], reflected: bool) -> Any:
    def method(self: Any, other: Any, modulus: Any = None) -> Any:
        if modulus is not None or not isinstance(other, (int, float, complex)):
            return NotImplemented
        a, b = (other, self) if reflected else (self, other)
        result = function(plain(a), plain(b))
        recorder = _recording(self)
        if isinstance(other, complex):
            _read(self, recorder, "number")
            return result
        if recorder is None or not isinstance(result, (int, float)):
            return result
        inputs = [_operand(recorder, a), _operand(recorder, b)]
        return recorder.emit_number(_kind(name, plain(a), plain(b)), inputs, result)

    return method


def _unary(name: str, function: Callable[[Any], Any]) -> Any:
    def method(self: Any) -> Any:
        result = function(plain(self))
        recorder = _recording(self)
        if recorder is None:
            return result
        kind = f"{name}.{'float' if isinstance(self, float) else 'int'}"
        return recorder.emit_number(kind, [recorder.number(self)], result)

    return method


def _comparison(name: str, function: Callable[[Any, Any], bool]) -> Any:
    """A comparison. Where weft itself decides by a size, the trace checks that it still would."""

    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        truth = function(plain(self), plain(other))
        recorder = _recording(self)
        if recorder is None:
            return truth
        if not is_library(sys._getframe(1)):
            recorder.leak("bool")
        else:
            _guard(recorder, name, self, other, truth)
        return truth

    return method


def _guard(recorder: Recorder, name: str, a: Any, b: Any, truth: bool) -> None:
    types = ["float" if isinstance(x, float) else "int" for x in (a, b)]
    overload = types[0] if types[0] == types[1] else "_".join(types)
    values = [_operand(recorder, a), _operand(recorder, b)]
    recorder.guard(f"aten::{name}.{overload}", values, truth)


def _read(number: Any, recorder: Recorder | None, what: str) -> None:
    """Python reads a number: a line of the user's is warned of, one of weft's is checked."""
    if recorder is None:
        return
    if is_library(sys._getframe(2)):
        _guard(recorder, "eq", number, plain(number), True)
    else:
        recorder.leak(what)


def _leaks(number: Any, what: str) -> None:
    recorder = _recording(number)
    if recorder is not None:
        recorder.leak(what)


def _converts(what: str, function: Callable[[Any], Any]) -> Any:
    def method(self: Any, *args: Any) -> Any:
        _read(self, _recording(self), what)
        return function(plain(self), *args)

    return method


_ARITHMETIC = {
    "add": ("add", operator.add), "sub": ("sub", operator.sub), "mul": ("mul", operator.mul),
    "truediv": ("div", operator.truediv), "floordiv": ("floordiv", operator.floordiv),
    "mod": ("remainder", operator.mod), "pow": ("pow", operator.pow),
    "and": ("__and__", operator.and_), "or": ("__or__", operator.or_),
    "xor": ("__xor__", operator.xor), "lshift": ("__lshift__", operator.lshift),
    "rshift": ("__rshift__", operator.rshift),
}  # fmt: skip


def _methods() -> dict[str, Any]:
    made: dict[str, Any] = {}
    for word, (name, function) in _ARITHMETIC.items():
        made[f"__{word}__"] = _binary(name, function, False)
        made[f"__r{word}__"] = _binary(name, function, True)
    made["__neg__"] = _unary("aten::neg", operator.neg)
    made["__invert__"] = _unary("aten::bitwise_not", operator.invert)
    made["__abs__"] = _unary("prim::abs", operator.abs)
    made["__pos__"] = lambda self: self
    for word in ("lt", "le", "gt", "ge", "eq", "ne"):
        made[f"__{word}__"] = _comparison(word, getattr(operator, word))
    made["__bool__"] = lambda self, decide=made["__ne__"]: decide(self, 0)
    made["__int__"] = _converts("int", int)
    made["__index__"] = _converts("index", int)
    made["__float__"] = _converts("float", float)
    made["__round__"] = _converts("int", round)
    for word in ("trunc", "floor", "ceil"):
        made[f"__{word}__"] = _unary(f"aten::{word}", getattr(math, word))
    made["__divmod__"] = lambda self, other: (self // other, self % other)
    made["__rdivmod__"] = lambda self, other: (other // self, other % self)
    made["__reduce__"] = lambda self: (type(plain(self)), (plain(self),))
    made["__copy__"] = lambda self: self
    made["__deepcopy__"] = lambda self, memo: self
    return made


class _Number:
    """A number and the value it is. Not an int or float itself: those are read without asking."""

    __slots__ = ("_number", "_recorder", "_value")

    def __init__(self, recorder: Recorder, number: Any, value: Value) -> None:
        self._number, self._recorder, self._value = number, recorder, value

    def __hash__(self) -> int:
        return hash(self._number)

    def __repr__(self) -> str:
        return repr(self._number)

    def __format__(self, spec: str) -> str:
        return format(self._number, spec)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._number, name)
        _leaks(self, "number")
        return found

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        _leaks(self, "array")
        return numpy.asarray(self._number, dtype)


class TracedInt(_Number):
    """An int of a trace. isinstance takes it for an int."""

    __slots__ = ()
    __class__ = property(lambda self: int)


class TracedFloat(_Number):
    """A float of a trace. isinstance takes it for a float."""

    __slots__ = ()
    __class__ = property(lambda self: float)


for _name, _method in _methods().items():
    for _traced, _plain in ((TracedInt, int), (TracedFloat, float)):
        if hasattr(_plain, _name) or _name in ("__copy__", "__deepcopy__"):
            setattr(_traced, _name, _method)
_C._set_traced_numbers(TracedInt, TracedFloat)
