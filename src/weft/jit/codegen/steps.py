"""Table operators as steps of a fusion group: bodies of composed rows and formulas are unfolded.

A group is only ever run on real floating tensors (and masks), so what a body asks about complex
numbers is known. Whatever else is not known when the group is made raises NotFusible.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from weft.jit import schemas
from weft.jit.codegen import rows as row_steps
from weft.jit.codegen.rows import ELEMENTS, KEPT, SHAPE, NotFusible, RowResult, RowStep, space_of
from weft.jit.ir.record import NamedTuple, field, record
from weft.jit.operator_facts import Expression, RowFacts, row

# What a step does: a pointwise row's identifier, or a row operator.
Op = str | RowStep | RowResult


class Operand(NamedTuple):
    """A tensor, or a number that is known only when the group runs."""

    kind: str  # "input" | "step" | "constant" | "length": elements of a row (0), of all (1)
    index: int  # type: ignore[assignment]  # a tuple's own method of that name is not used


@record
class Unit:
    """One operator as autograd sees it: its row, its arguments by name, its result."""

    row: RowFacts
    names: Mapping[str, Any]
    result: Operand


@record
class Steps:
    """The steps of a group while it is made."""

    share: bool = False  # equal steps are one
    strict: bool = True  # values without the row's dimension keep to themselves
    units_wanted: bool = True  # for a gradient
    constants: list[Any] = field(default_factory=list)
    steps: list[tuple[Op, list[Operand], list[Operand]]] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    spaces: list[str] = field(default_factory=list)  # of steps
    input_spaces: dict[int, str] = field(default_factory=dict)  # where they are not elements
    _known: dict[Any, Operand] = field(default_factory=dict)
    _other: bool = False  # some step gives no elements
    _within: int = 0  # units open: what they are made of are none of their own

    def space(self, value: Operand) -> str:
        """Of a tensor."""
        if value.kind == "step":
            return self.spaces[value.index]
        return self.input_spaces.get(value.index, ELEMENTS)

    @property
    def has_rows(self) -> bool:
        """Whether some step is a row operator."""
        return any(isinstance(op, (RowStep, RowResult)) for op, _, _ in self.steps)

    def add(
        self, op: Op, tensors: Sequence[Operand], numbers: Sequence[Any], space: str = ""
    ) -> Operand:
        """One more step; numbers are Python's, or operands. `space`: a row operator's result's."""
        refs = [n if isinstance(n, Operand) else self._constant(n) for n in numbers]
        key = (op, tuple(tensors), tuple(refs)) if self.share else None
        if key in self._known:
            return self._known[key]
        if space or self.input_spaces or self._other or not tensors:
            found = space or space_of([self.space(t) for t in tensors], self.strict)
            self._other |= found != ELEMENTS
        else:
            found = ELEMENTS
        self.steps.append((op, list(tensors), refs))
        self.spaces.append(found)
        result = Operand("step", len(self.steps) - 1)
        if key is not None:
            self._known[key] = result
        return result

    def _constant(self, number: Any) -> Operand:
        if not isinstance(number, (bool, int, float)):
            raise NotFusible(f"expected a real number, got {number!r}")
        key = (type(number), repr(number))
        if key not in self._known:
            self.constants.append(number)
            self._known[key] = Operand("constant", len(self.constants) - 1)
        return self._known[key]

    def apply(self, key: str, args: Sequence[Any]) -> Any:
        """The result of an operator on values: operands, numbers, None, text."""
        found = row(key)
        if found is None:
            raise NotFusible(key)
        if found.is_elementwise and not self.units_wanted:
            return self._elementwise(found, args)
        names = dict(zip(_arguments(key), args))
        if row_steps.applies(found):
            result = row_steps.apply(self, found, names)
        elif found.is_elementwise:
            result = self._elementwise(found, args)
        elif found.body is not None:
            self._within += found.has_gradient
            result = self._run(found.body, names)
            self._within -= found.has_gradient
        else:
            raise NotFusible(key)
        if self._within == 0 and (found.is_elementwise or found.has_gradient):
            first = result if isinstance(result, Operand) else result[0]
            self.units.append(Unit(found, names, first))
        return result

    def _elementwise(self, found: RowFacts, args: Sequence[Any]) -> Operand:
        tensors, numbers = [], []
        for what, value in zip(found.operands, args):
            if what != "Tensor":
                numbers.append(value)
            elif isinstance(value, Operand) and value.kind != "constant":
                tensors.append(value)
            else:
                raise NotFusible(f"{found.key}: expected a tensor, got a number")
        return self.add(found.id, tensors, numbers)

    # ---- bodies and formulas ----

    def _run(self, body: Sequence[Any], names: Mapping[str, Any]) -> Any:
        scope = dict(names)
        found = self._statements(body, scope)
        if found is None:
            raise NotFusible("a body without a result")
        return found[0]

    def _statements(self, body: Sequence[Any], scope: dict[str, Any]) -> tuple[Any] | None:
        for kind, target, expr, then, other in body:
            if kind == "do":
                raise NotFusible("a body that writes")
            if kind == "if":
                taken = then if self._condition(expr, scope) else other
                found = self._statements(taken, scope)
                if found is not None:
                    return found
                continue
            if kind == "check":
                if not self._condition(expr, scope):
                    raise NotFusible("a check that fails")
                continue
            value = self.evaluate(expr, scope)
            if kind == "return":
                return (value,)
            if isinstance(target, list):
                raise NotFusible("several results")
            scope[target] = value
        return None

    def _condition(self, expr: Expression, scope: Mapping[str, Any]) -> bool:
        value = self.evaluate(expr, scope)
        if not isinstance(value, bool):
            raise NotFusible("a choice that depends on a number of the call")
        return value

    def evaluate(self, expr: Expression, names: Mapping[str, Any]) -> Any:
        """The value of a formula; operators in it become steps."""
        kind, type_, value, args = expr
        if kind == "const":
            return _CONSTANTS.get(value, value) if type_ == "float" else value
        if kind == "name":
            if value not in names:
                raise NotFusible(f"{value} of a group")
            return names[value]
        if kind == "convert":
            number = self.evaluate(args[0], names)
            return float(number) if type_ == "float" and isinstance(number, int) else number
        if kind == "op":
            return self.apply(value, [self.evaluate(arg, names) for arg in args])
        if kind == "if":
            test, yes, no = args
            return self.evaluate(yes if self._condition(test, names) else no, names)
        if kind == "builtin":
            return self._builtin(value, [self.evaluate(arg, names) for arg in args])
        if kind == "index":
            return self.evaluate(args[0], names)[value]
        if kind == "list":
            return [self.evaluate(arg, names) for arg in args]
        raise NotFusible(f"{kind} in a formula")

    def _builtin(self, name: str, args: list[Any]) -> Any:
        if name == "conj":  # of a real number
            return args[0]
        if name in _OF_SHAPES and (args[0] is SHAPE or isinstance(args[0], Operand)):
            return _OF_SHAPES[name]
        if name in _OF_TENSORS and isinstance(args[0], Operand):
            return _OF_TENSORS[name]
        function = _OF_NUMBERS.get(name)
        if function is None or any(isinstance(a, Operand) for a in args if a is not None):
            if name == "is_none":
                return False
            raise NotFusible(f"{name} of what only the call knows")
        return function(*args)


@functools.cache
def _arguments(key: str) -> tuple[str, ...]:
    return tuple(arg.name for arg in schemas.of(f"aten::{key}").args)


_CONSTANTS = {
    "inf": float("inf"),
    "-inf": float("-inf"),
    "nan": float("nan"),
    "pi": 3.141592653589793,
}
_OF_TENSORS = {"is_complex": False, "is_floating_point": True, "dtype": None, "shape": SHAPE}
# Only gradients of row operators ask: how many elements a sum is of, what shape it has.
_OF_SHAPES = {
    "reduced_count": Operand("length", 0),
    "numel": Operand("length", 1),
    "kept_sizes": KEPT,
}
_OF_NUMBERS: dict[Any, Any] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "not": lambda a: not a,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "is_none": lambda a: a is None,
    "list_or_empty": lambda a: [] if a is None else a,
    "is_integral": lambda a: isinstance(a, int),
    "float": float,
    "int": int,
    "bool": bool,
}
