"""Row programs: bodies that reduce along a row, and how they become passes of steps.

    def softmax(row, self):
        m = row.max(self)
        e = row.keep(exp(self - m))
        return e / row.sum(e)

A fold of values that need no other row value happens in pass 0; what reads its result happens in a
later pass. Values made of row values alone (a mean, a reciprocal) are computed once a row, after
the pass that completes them. `row.keep` stores a value for later use instead of computing it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import lang
from .expr import (
    Complex,
    Expr,
    Operand,
    Unsupported,
    Value,
    assemble,
    cast,
    components,
    constant,
    select,
    source,
    value_of,
)
from .kernel import FIRST_ATTRIBUTE, Fold, Kernel, Key, attribute_scalars, walk
from .program import Slot, Step, Traced
from .types import BOOL, I64, DType, max_value, min_value

_MOST_TOGETHER = 8  # operands of a step that gathers values of rows


class Row:
    """The first argument of a `reduce` or `rowwise` body."""

    def __init__(self) -> None:
        self.actions: list[_Fold | _Keep] = []
        self.row_types: list[DType] = []
        self.tile_types: list[DType] = []
        self.given: dict[int, int] = {}  # row values that an input has: its number
        self.reads_position = False

    @property
    def length(self) -> Value:
        """Elements in the row (int64)."""
        return source("length", 0, I64)

    @property
    def position(self) -> Value:
        """The element's index in the row (int64)."""
        self.reads_position = True
        return source("position", 0, I64)

    def sum(self, x: Operand) -> Value:
        """The sum over the row; of bools, their number (int64)."""
        v = value_of(x)
        v = cast(v, I64) if v.dtype == BOOL else v
        return self._fold([v], [constant(0, v.dtype)], lambda a, b: [a[0] + b[0]])[0]

    def prod(self, x: Operand) -> Value:
        """The product over the row."""
        v = value_of(x)
        return self._fold([v], [constant(1, v.dtype)], lambda a, b: [a[0] * b[0]])[0]

    # The value is asked for NaN: asking the accumulator masks its store, slow on AMD with AVX2.
    def max(self, x: Operand) -> Value:
        """The greatest value; NaN if there is one."""
        v = _ordered("max", x)
        low = constant(min_value(v.dtype), v.dtype)
        return self._fold([v], [low], lambda a, b: [lang.maximum(b[0], a[0])], True)[0]

    def min(self, x: Operand) -> Value:
        """The least value; NaN if there is one."""
        v = _ordered("min", x)
        high = constant(max_value(v.dtype), v.dtype)
        return self._fold([v], [high], lambda a, b: [lang.minimum(b[0], a[0])], True)[0]

    def any(self, x: Operand) -> Value:
        """Whether a value is not zero."""
        return self._fold([lang.to_bool(x)], [constant(False, BOOL)], lambda a, b: [a[0] | b[0]])[0]

    def all(self, x: Operand) -> Value:
        """Whether no value is zero."""
        return self._fold([lang.to_bool(x)], [constant(True, BOOL)], lambda a, b: [a[0] & b[0]])[0]

    def max_with_index(self, x: Operand) -> tuple[Value, Value]:
        """The greatest value and the index (int64) of the first such; NaN counts as greatest."""
        return self._extreme(self.max(x), x)

    def min_with_index(self, x: Operand) -> tuple[Value, Value]:
        """The least value and the index (int64) of its first occurrence; NaN counts as least."""
        return self._extreme(self.min(x), x)

    def argmax(self, x: Operand) -> Value:
        """The index (int64) of the greatest value: of the first one, or of the first NaN."""
        return self.max_with_index(x)[1]

    def argmin(self, x: Operand) -> Value:
        """The index (int64) of the least value: of the first one, or of the first NaN."""
        return self.min_with_index(x)[1]

    def keep(self, x: Operand) -> Value:
        """x, stored: what follows reads it instead of computing it again."""
        v = value_of(x)
        self.tile_types.append(v.dtype)
        index = len(self.tile_types) - 1
        self.actions.append(_Keep(v, index))
        return source("tile", index, v.dtype)

    def value(self, x: Operand) -> Value:
        """x, an operand with one element for each row, as a value of the row."""
        (e,) = components(value_of(x))
        self.given[len(self.row_types)] = e.value[1]
        self.row_types.append(e.dtype)
        return source("row", len(self.row_types) - 1, e.dtype)

    def _fold(
        self,
        lifted: list[Value],
        identity: list[Value],
        merge: Callable[[list[Value], list[Value]], list[Value]],
        needs_elements: bool = False,
    ) -> list[Value]:
        first = len(self.row_types)
        self.row_types += [v.dtype for v in lifted]
        self.actions.append(_Fold(Fold(lifted, identity, merge, needs_elements), first))
        return [source("row", first + i, v.dtype) for i, v in enumerate(lifted)]

    def _extreme(self, value: Value, x: Operand) -> tuple[Value, Value]:
        """The row's extreme and where it first lies: a second look at the row finds it, which is
        much less work than to carry indices through the first."""
        v = value_of(x)
        found = v == value
        if v.dtype.kind == "float":
            found = found | (v != v)  # then `value` is NaN and equals nothing
        return value, self.min(select(found, self.position, constant(max_value(I64), I64)))


def _ordered(name: str, x: Operand) -> Value:
    v = value_of(x)
    if isinstance(v, Complex):
        raise Unsupported(f"{name}: expected ordered values, got {v.dtype}")
    return v


@dataclass
class _Fold:
    fold: Fold
    first_row: int
    level: int = 0


@dataclass
class _Keep:
    value: Value
    tile: int
    level: int = 0


def sources(values: Sequence[Value], kind: str) -> list[int]:
    """Indices of the sources of one kind that the values read, in order of appearance."""
    found: dict[int, None] = {}
    for e in walk(p for v in values for p in components(v)):
        if e.op == "source" and e.value[0] == kind:
            found[e.value[1]] = None
    return list(found)


def _reads_elements(values: Sequence[Value]) -> bool:
    """Whether the values differ along the row."""
    return any(sources(values, kind) for kind in ("input", "tile", "position"))


class Scheduler:
    """Turns what a body asked for into slots, steps and passes."""

    def __init__(self, inputs: list[DType], attribute_count: int, row: Row, outputs: list[Value]):
        self.row, self.attribute_count = row, attribute_count
        self._row_level = dict.fromkeys(row.given, -1)  # there before the first pass
        self._tile_level: dict[int, int] = {}
        self._derived: dict[int, tuple[Expr, int]] = {}  # id of a row-only node: it, its row index
        for action in row.actions:
            self._place(action)
        self._outputs = [self._with_derived(v) if _reads_elements([v]) else v for v in outputs]
        self._levels = [self._output_level(v) for v in self._outputs]
        self._per_row = [not _reads_elements([v]) for v in self._outputs]
        self._last = max([0, *self._row_level.values(), *self._tile_level.values(), *self._levels])
        self.slots = [Slot("Input", d, i) for i, d in enumerate(inputs)]
        self._first_output = len(self.slots)
        for i, v in enumerate(self._outputs):
            self.slots.append(Slot("Output", v.dtype, i, per_row=self._per_row[i]))
        self._first_row = len(self.slots)
        self.slots += [
            Slot("Row", d, row.given.get(i, 0), per_row=i in row.given)
            for i, d in enumerate(row.row_types)
        ]
        self._first_tile = len(self.slots)
        self.slots += [
            Slot("Tile", d, kept=self._read_later(i)) for i, d in enumerate(row.tile_types)
        ]

    def _place(self, action: _Fold | _Keep) -> None:
        values = action.fold.lifted if isinstance(action, _Fold) else [action.value]
        values = [self._with_derived(v) for v in values]
        action.level = self._level(values)
        if isinstance(action, _Fold):
            action.fold.lifted = values
            for i in range(len(values)):
                self._row_level[action.first_row + i] = action.level
        else:
            action.value = values[0]
            self._tile_level[action.tile] = action.level

    def _level(self, values: Sequence[Value]) -> int:
        """The first pass in which everything the values read is there."""
        rows = [self._row_level[r] + 1 for r in sources(values, "row")]
        tiles = [self._tile_level[t] for t in sources(values, "tile")]
        return max([0, *rows, *tiles])

    def _output_level(self, v: Value) -> int:
        if _reads_elements([v]):
            return self._level([v])
        return max([0, *(self._row_level[r] for r in sources([v], "row"))])

    def _with_derived(self, v: Value) -> Value:
        """v with every largest part that is made of row values alone read from a row slot."""
        known: dict[int, Expr] = {}
        row_only: dict[int, bool] = {}
        order = walk(components(v))
        for e in order:
            own = e.op == "source" and e.value[0] == "row"
            parts = [row_only[id(a)] or self._neutral(a) for a in e.args]
            row_only[id(e)] = own or (
                bool(e.args) and all(parts) and any(row_only[id(a)] for a in e.args)
            )
        for e in order:
            args = tuple(
                self._row_slot(a) if self._moves(e, a, row_only) else known[id(a)] for a in e.args
            )
            same = all(a is b for a, b in zip(args, e.args))
            known[id(e)] = e if same else Expr(e.op, e.dtype, args, e.value)
        return assemble(v.dtype, [known[id(p)] for p in components(v)])

    @staticmethod
    def _neutral(e: Expr) -> bool:
        return all(n.op != "source" or n.value[0] in ("attribute", "length") for n in walk([e]))

    @staticmethod
    def _moves(user: Expr, e: Expr, row_only: dict[int, bool]) -> bool:
        return row_only[id(e)] and e.op != "source" and not row_only[id(user)]

    def _row_slot(self, e: Expr) -> Expr:
        """The row slot a row-only node is stored in."""
        if id(e) not in self._derived:
            self.row.row_types.append(e.dtype)
            index = len(self.row.row_types) - 1
            self._row_level[index] = max(0, *(self._row_level[r] for r in sources([e], "row")))
            self._derived[id(e)] = (e, index)
        result = source("row", self._derived[id(e)][1], e.dtype)
        assert isinstance(result, Expr)
        return result

    def _read_later(self, tile: int) -> bool:
        readers = [
            (a.level, a.fold.lifted if isinstance(a, _Fold) else [a.value])
            for a in self.row.actions
        ]
        readers += [(level, [v]) for level, v in zip(self._levels, self._outputs)]
        return any(
            level > self._tile_level[tile] and tile in sources(values, "tile")
            for level, values in readers
        )

    # --- steps ---

    def program(self) -> Traced:
        steps: list[Step] = []
        passes: list[tuple[int, int]] = []
        for level in range(self._last + 1):
            first = len(steps)
            for action in self.row.actions:
                if action.level == level:
                    steps.append(
                        self._fold_step(action)
                        if isinstance(action, _Fold)
                        else self._map_step([self._first_tile + action.tile], [action.value])
                    )
            for i, v in enumerate(self._outputs):
                if self._levels[i] == level and not self._per_row[i]:
                    steps.append(self._map_step([self._first_output + i], [v]))
            steps += self._per_row_steps(level)
            passes.append((first, len(steps) - first))
        extreme = any(map(self._is_extreme, self._outputs))
        return Traced(self.slots, steps, passes, extreme, self.row.reads_position)

    def _is_extreme(self, v: Value) -> bool:
        """Whether an output is a maximum, a minimum or the index of one, and nothing more."""
        parts = components(v)
        while len(parts) == 1 and parts[0].op == "cast":
            parts = parts[0].args
        if parts[0].op != "source" or parts[0].value[0] != "row":
            return False
        row = parts[0].value[1]
        return any(
            isinstance(a, _Fold)
            and a.fold.needs_elements
            and 0 <= row - a.first_row < len(a.fold.lifted)
            for a in self.row.actions
        )

    def _reads(self, values: Sequence[Value]) -> tuple[list[Key], list[int]]:
        """What a step reads: inputs and tiles as keys, row values by index."""
        inputs: list[Key] = [("input", i) for i in sorted(sources(values, "input"))]
        inputs += [("tile", i) for i in sorted(sources(values, "tile"))]
        return inputs, sorted(sources(values, "row"))

    def _slot(self, key: Key) -> int:
        return key[1] + {"input": 0, "tile": self._first_tile, "row": self._first_row}[key[0]]

    def _kernel(
        self, slots: list[int], outputs: list[Value], inputs: dict[Key, int], rows: list[int],
        vertical: bool,
    ) -> Kernel:  # fmt: skip
        scalars = attribute_scalars(outputs, self.attribute_count)
        if vertical:
            inputs = inputs | {("row", r): len(slots) + j for j, r in enumerate(rows)}
            slots = slots + [self._first_row + r for r in rows]
        else:
            base = FIRST_ATTRIBUTE + self.attribute_count
            for j, r in enumerate(rows):
                scalars["row", r] = (base + j, self.row.row_types[r])
        types = [self.slots[s].dtype for s in slots]
        return Kernel(types, outputs, inputs, scalars, tile_position=not vertical)

    def _map_step(self, written: list[int], values: list[Value]) -> Step:
        reads, rows = self._reads(values)
        operands = written + [self._slot(k) for k in reads]
        inputs = {k: len(written) + i for i, k in enumerate(reads)}
        kernels = {
            role: self._kernel(operands, values, inputs, rows, role == "vertical")
            for role in ("horizontal", "vertical")
        }
        return Step(operands, [self._first_row + r for r in rows], 0, kernels)

    def _fold_step(self, action: _Fold) -> Step:
        fold = action.fold
        count = len(fold.lifted)
        types = [v.dtype for v in fold.lifted]
        states = [self._first_row + action.first_row + i for i in range(count)]
        step = self._map_step(states, fold.lifted)
        horizontal, vertical = step.kernels["horizontal"], step.kernels["vertical"]
        horizontal.outputs, horizontal.fold = [], fold
        held = [source("state", i, d) for i, d in enumerate(types)]
        vertical.outputs = fold.merge(held, fold.lifted)
        vertical.inputs |= {("state", i): i for i in range(count)}
        left = [source("left", i, d) for i, d in enumerate(types)]
        right = [source("right", i, d) for i, d in enumerate(types)]
        both: dict[Key, int] = {("left", i): i for i in range(count)}
        both |= {("right", i): count + i for i in range(count)}
        step.states = count
        step.kernels["identity"] = Kernel(types, fold.identity)
        step.kernels["merge"] = Kernel(types + types, fold.merge(left, right), both)
        return step

    def _per_row_steps(self, level: int) -> list[Step]:
        """Everything made of row values alone that this pass completes, in as few steps as fit."""
        pending = [
            (self._first_row + i, e)
            for e, i in self._derived.values()
            if self._row_level[i] == level
        ]
        outputs = enumerate(zip(self._outputs, self._levels, self._per_row))
        found: list[tuple[int, Value]] = [*pending]
        found += [
            (self._first_output + i, v)
            for i, (v, at, per_row) in outputs
            if per_row and at == level
        ]
        steps, group = [], found[:0]
        for item in found:
            reads = sources([v for _, v in [*group, item]], "row")
            if group and len(group) + 1 + len(reads) > _MOST_TOGETHER:
                steps.append(self._per_row_step(group))
                group = []
            group = [*group, item]
        return steps + ([self._per_row_step(group)] if group else [])

    def _per_row_step(self, group: list[tuple[int, Value]]) -> Step:
        step = self._map_step([s for s, _ in group], [v for _, v in group])
        del step.kernels["horizontal"]
        return step
