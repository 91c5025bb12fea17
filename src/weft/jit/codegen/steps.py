"""Table operators as steps of a fusion group: bodies of composed rows and formulas are unfolded.

A group is only ever run on real floating tensors (and masks), so what a body asks about complex
numbers is known. Whatever else is not known when the group is made raises NotFusible.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from weft import _ops
from weft._ops.forms import all_forms
from weft._ops.formulas import (
    Expr,
    Statement,
    argument_types,
    gradient_names,
    return_type,
)
from weft._ops.schema import Schema
from weft._ops.translate import Translator
from weft.jit.codegen import rows as row_steps
from weft.jit.codegen.rows import ELEMENTS, SHAPE, NotFusible, RowResult, RowStep, extent_of

Op = str | RowStep | RowResult  # what a step does: a pointwise row's identifier, or a row operator


class Operand(NamedTuple):
    """A tensor, or a number that is known only when the group runs."""

    kind: str  # "input" | "step" | "constant" | "length": elements of a row (0), of all (1)
    index: int  # type: ignore[assignment]  # a tuple's own method of that name is not used


@dataclass
class Unit:
    """One operator as autograd sees it: its row, its arguments by name, its result."""

    row: Any
    names: Mapping[str, Any]
    result: Operand


NUMBERS = ("Scalar", "float", "int", "bool")


@functools.cache
def rows() -> dict[str, Any]:
    """Every row of the table, by key."""
    return {row.key: row for row in _ops.load()}


@functools.cache
def _schemas() -> dict[str, list[Schema]]:
    found: dict[str, list[Schema]] = {}
    for form in all_forms(_ops.load()):
        if form.kind != "out":
            found.setdefault(form.schema.name, []).append(form.schema)
    return found


@functools.cache
def is_elementwise(row: Any) -> bool:
    """Whether a row is one kernel over elements, with tensors and numbers as arguments.

    Rows that check integers first (`precheck`) are: a group computes in floats.
    """
    fit = all(arg.type == "Tensor" or arg.type in NUMBERS for arg in row.schema.args)
    plain = row.kind == "pointwise" and not row.writes
    return plain and fit and len(row.schema.returns) == 1 and not row.int_inputs


@functools.cache
def gradient(key: str) -> tuple[tuple[str, Expr], ...]:
    """(argument, formula) of a row, in the order of its node's edges. Raises NotFusible."""
    row = rows()[key]
    if any(len(names) > 1 for names in row.grad):
        raise NotFusible(f"{key}: one formula for several gradients")
    formulas = {names[0]: text for names, text in row.grad.items()}
    known = gradient_names(row.schema)
    translator = Translator(key, _schemas())
    return tuple((name, translator.formula(formulas[name], known)) for name in row.differentiable)


@functools.cache
def _body(key: str) -> tuple[Statement, ...]:
    row = rows()[key]
    translator = Translator(key, _schemas())
    returns = return_type(row.schema)
    return tuple(translator.body(row.body, argument_types(row.schema), returns))


@dataclass
class Steps:
    """The steps of a group while it is made."""

    share: bool = False  # equal steps are one
    strict: bool = True  # values without the row's dimension keep to themselves
    constants: list[Any] = field(default_factory=list)
    steps: list[tuple[Op, list[Operand], list[Operand]]] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    extents: list[str] = field(default_factory=list)  # of steps
    input_extents: dict[int, str] = field(default_factory=dict)  # where they are not elements
    _known: dict[Any, Operand] = field(default_factory=dict)
    _within: int = 0  # units open: what they are made of are none of their own

    def extent(self, value: Operand) -> str:
        """Of a tensor."""
        if value.kind == "step":
            return self.extents[value.index]
        return self.input_extents.get(value.index, ELEMENTS)

    @property
    def has_rows(self) -> bool:
        """Whether some step is a row operator."""
        return any(not isinstance(op, str) for op, _, _ in self.steps)

    def add(
        self, op: Op, tensors: Sequence[Operand], numbers: Sequence[Any], extent: str = ""
    ) -> Operand:
        """One more step; numbers are Python's, or operands. `extent`: a row operator's result's."""
        refs = [n if isinstance(n, Operand) else self._constant(n) for n in numbers]
        key = (op, tuple(tensors), tuple(refs))
        if self.share and key in self._known:
            return self._known[key]
        found = extent or extent_of([self.extent(t) for t in tensors], self.strict)
        self.steps.append((op, list(tensors), refs))
        self.extents.append(found)
        result = Operand("step", len(self.steps) - 1)
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
        row = rows().get(key)
        if row is None:
            raise NotFusible(key)
        names = {arg.name: value for arg, value in zip(row.schema.args, args)}
        if key in row_steps.KEYS:
            result = row_steps.apply(self, row, names)
        elif is_elementwise(row):
            result = self._elementwise(row, names)
        elif row.kind == "compose" and not row.writes:
            self._within += bool(row.grad)
            result = self._run(_body(key), names)
            self._within -= bool(row.grad)
        else:
            raise NotFusible(key)
        if self._within == 0 and (is_elementwise(row) or row.grad):
            first = result if isinstance(result, Operand) else result[0]
            self.units.append(Unit(row, names, first))
        return result

    def _elementwise(self, row: Any, names: Mapping[str, Any]) -> Operand:
        tensors, numbers = [], []
        for arg in row.schema.args:
            value = names[arg.name]
            if arg.type != "Tensor":
                numbers.append(value)
            elif isinstance(value, Operand) and value.kind != "constant":
                tensors.append(value)
            else:
                raise NotFusible(f"{row.key}: expected a tensor as {arg.name}")
        return self.add(row.id, tensors, numbers)

    # ---- bodies and formulas ----

    def _run(self, body: Sequence[Statement], names: Mapping[str, Any]) -> Any:
        scope = dict(names)
        found = self._statements(body, scope)
        if found is None:
            raise NotFusible("a body without a result")
        return found[0]

    def _statements(self, body: Sequence[Statement], scope: dict[str, Any]) -> tuple[Any] | None:
        for one in body:
            if one.kind == "do":
                raise NotFusible("a body that writes")
            assert one.expr is not None
            if one.kind == "if":
                taken = one.then if self._condition(one.expr, scope) else one.other
                found = self._statements(taken, scope)
                if found is not None:
                    return found
                continue
            if one.kind == "check":
                if not self._condition(one.expr, scope):
                    raise NotFusible("a check that fails")
                continue
            value = self.evaluate(one.expr, scope)
            if one.kind == "return":
                return (value,)
            if isinstance(one.value, tuple):
                raise NotFusible("several results")
            scope[one.value] = value
        return None

    def _condition(self, expr: Expr, scope: Mapping[str, Any]) -> bool:
        value = self.evaluate(expr, scope)
        if not isinstance(value, bool):
            raise NotFusible("a choice that depends on a number of the call")
        return value

    def evaluate(self, expr: Expr, names: Mapping[str, Any]) -> Any:
        """The value of a formula; operators in it become steps."""
        if expr.kind == "const":
            return _CONSTANTS.get(expr.value, expr.value) if expr.type == "float" else expr.value
        if expr.kind == "name":
            if expr.value not in names:
                raise NotFusible(f"{expr.value} of a group")
            return names[expr.value]
        if expr.kind == "convert":
            return self._convert(expr, names)
        if expr.kind == "op":
            key = expr.value.key
            return self.apply(key, [self.evaluate(arg, names) for arg in expr.args])
        if expr.kind == "if":
            test, yes, no = expr.args
            return self.evaluate(yes if self._condition(test, names) else no, names)
        if expr.kind == "builtin":
            return self._builtin(expr, names)
        if expr.kind == "index":
            return self.evaluate(expr.args[0], names)[expr.value]
        if expr.kind == "list":
            return [self.evaluate(arg, names) for arg in expr.args]
        raise NotFusible(f"{expr.kind} in a formula")

    def _convert(self, expr: Expr, names: Mapping[str, Any]) -> Any:
        value = self.evaluate(expr.args[0], names)
        if expr.type == "float" and isinstance(value, int):
            return float(value)
        return value

    def _builtin(self, expr: Expr, names: Mapping[str, Any]) -> Any:
        args = [self.evaluate(arg, names) for arg in expr.args]
        if expr.value == "conj":  # of a real number
            return args[0]
        if expr.value in _OF_SHAPES and (args[0] is SHAPE or isinstance(args[0], Operand)):
            return _OF_SHAPES[expr.value]
        if expr.value in _OF_TENSORS and isinstance(args[0], Operand):
            return _OF_TENSORS[expr.value]
        function = _OF_NUMBERS.get(expr.value)
        if function is None or any(isinstance(a, Operand) for a in args if a is not None):
            if expr.value == "is_none":
                return False
            raise NotFusible(f"{expr.value} of what only the call knows")
        return function(*args)


_CONSTANTS = {
    "inf": float("inf"),
    "-inf": float("-inf"),
    "nan": float("nan"),
    "pi": 3.141592653589793,
}
_OF_TENSORS = {"is_complex": False, "is_floating_point": True, "dtype": None, "shape": SHAPE}
# Only gradients of row operators ask: how many elements a sum is of.
_OF_SHAPES = {"reduced_count": Operand("length", 0), "numel": Operand("length", 1)}
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
    "is_integral": lambda a: isinstance(a, int),
    "float": float,
    "int": int,
    "bool": bool,
}
