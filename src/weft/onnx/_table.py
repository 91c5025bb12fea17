"""The table: operators of weft to functions that write nodes.

    @mapping("relu")
    def _relu(g, self):
        return g.op("Relu", self)

A mapping takes the graph and the arguments of the operator's schema: symbols for tensors, Python
values for what is known while the model is exported. `register_custom_op_symbolic` adds to the same
table. Keys are "add.Tensor", or "add" for all overloads; "number::add" for arithmetic of Python
numbers, and "mylib::op" for operators that programs define.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from weft._C import Tensor
from weft._runtime.public import weft
from weft._runtime.rules import Rules
from weft.func._operators import Body, CannotEvaluate, Operator, operator_of_key
from weft.jit import operator_facts
from weft.onnx._state import CUSTOM
from weft.onnx._symbols import Handler, Symbol, Unsupported

TABLE = Rules()
_LARGEST = 1 << 16  # elements of a constant that is computed here rather than by the model


class NoMapping(Exception):
    """There is no mapping of the operator `key`."""

    def __init__(self, key: str) -> None:
        self.key = key


def mapping(*keys: str) -> Callable[[Handler], Handler]:
    """Registers a function as the mapping of operators."""
    return TABLE(*keys)


def handler(key: str, opset: int) -> Handler | None:
    """The mapping of an operator: of its overload, else of its name."""
    name = key.partition(".")[0]
    custom = CUSTOM.get(name if "::" in name else f"aten::{name}", {})
    fitting = [least for least in custom if least <= opset]
    if fitting:
        return custom[max(fitting)]
    return TABLE.get(key) or TABLE.get(name)


def run(g: Any, key: str, args: Sequence[Any]) -> Any:
    """What an operator gives: computed now from constants, by its mapping, or by the operators that
    it is composed of. NoMapping where there is none of these."""
    if any(map(_is_unsupported, args)):
        return Unsupported()
    op = _operator(key)
    if op is not None:
        args = [_default(op, place, value) for place, value in enumerate(args)]
        args += [a.default for a in op.arguments[len(args) :]]
        folded = _folded(g, op, args)
        if folded is not None:
            return folded
    found = handler(key, g.opset)
    if found is not None:
        return found(g, *args)
    composed = op is not None and op.kind == "compose" and op.row is not None and op.row.body
    if op is not None and composed and not op.body_writes:
        return _Composed(g, key).run(op, args)
    raise NoMapping(key)


def _default(op: Operator, place: int, value: Any) -> Any:
    argument = op.arguments[place]
    return argument.default if value is Ellipsis else argument.value(value)


class _Composed(Body):
    """A composed row as the mappings of the operators that it is made of."""

    def __init__(self, g: Any, key: str) -> None:
        self._g, self._key = g, key

    def call(self, key: str, args: Sequence[Any]) -> Any:
        return run(self._g, key, args)

    def check(self, holds: Any) -> None:
        """What is known only when the model runs is not checked."""
        if not isinstance(holds, Symbol):
            super().check(holds)

    def run(self, op: Operator, given: Sequence[Any]) -> Any:
        try:
            return super().run(op, given)
        except CannotEvaluate:
            raise NoMapping(self._key) from None


@cache
def _operator(key: str) -> Operator | None:
    """The row of a key; None for builtins and for operators of programs."""
    entries = [] if "::" in key else operator_facts.entries(f"aten::{key.partition('.')[0]}")
    if f"aten::{key}" not in dict(entries):
        return None
    op = operator_of_key(key)
    return op if op.row is not None else None


def _is_unsupported(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_is_unsupported, value))
    return isinstance(value, Unsupported)


def _folded(g: Any, op: Operator, args: Sequence[Any]) -> Any:
    """The result where every argument is known; None otherwise."""
    random = op.row is not None and "random" in op.row.tags | {op.row.kind}
    if not g.folds or random or op.in_place or op.writes_out or not op.gives_tensors:
        return None
    try:
        held = [_held(each) for each in args]
    except CannotEvaluate:
        return None
    with weft.no_grad():
        result = op.call([_numbered(op, i, each) for i, each in enumerate(held)])
    inputs = [each for each in held if isinstance(each, Tensor)]
    made = [result] if isinstance(result, Tensor) else result
    if sum(e.numel() for e in made) > max(_LARGEST, sum(e.numel() for e in inputs)):
        return None
    name = next((each.name for each in args if isinstance(each, Symbol)), "constant")
    symbols = [g.constant(each.contiguous(), name=f"{name}_{op.name}") for each in made]
    return symbols[0] if isinstance(result, Tensor) else type(result)(symbols)


def _numbered(op: Operator, place: int, value: Any) -> Any:
    """Dtypes and formats that are defaults are left out: schemas number those."""
    argument = op.arguments[place]
    kept = argument.type in ("ScalarType", "MemoryFormat", "Layout")
    return Ellipsis if kept and isinstance(value, int) else value


def _held(value: Any) -> Any:
    if isinstance(value, Symbol):
        if value.value is None:
            raise CannotEvaluate
        return value.value
    if isinstance(value, (list, tuple)):
        return [_held(each) for each in value]
    return value
