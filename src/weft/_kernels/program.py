"""Tile programs while they are being made: the Python side of csrc/ops/tile.h."""

from __future__ import annotations

from dataclasses import dataclass, field

from .kernel import Kernel
from .types import BOOL, I64, DType, truth_of

# The kernels a step may have, named as the fields of tile::Step.
ROLES = ("horizontal", "vertical", "identity", "merge")
MAX_OPERANDS = 16  # of a step, as kMaxOperands of csrc/ops/tile.h


@dataclass
class Slot:
    """See tile::Slot. `dtype` is concrete: that of the trace this slot belongs to."""

    kind: str
    dtype: DType
    index: int = 0
    kept: bool = False
    per_row: bool = False

    def shape(self) -> tuple[str, int, bool, bool]:
        return (self.kind, self.index, self.kept, self.per_row)


@dataclass
class Step:
    """See tile::Step; `kernels` by role."""

    operands: list[int]
    row_reads: list[int] = field(default_factory=list)
    states: int = 0
    kernels: dict[str, Kernel] = field(default_factory=dict)

    def shape(self) -> tuple[object, ...]:
        return (self.operands, self.row_reads, self.states, sorted(self.kernels))


@dataclass
class Traced:
    """A program traced for one compute dtype. `passes` are (first step, number of steps)."""

    slots: list[Slot]
    steps: list[Step]
    passes: list[tuple[int, int]]
    needs_elements: bool = False  # an empty row has no result
    uses_position: bool = False  # a kernel reads the place of an element in the row

    def shape(self) -> tuple[object, ...]:
        """What has to be the same for all compute dtypes."""
        slots = [s.shape() for s in self.slots]
        return (slots, [s.shape() for s in self.steps], self.passes)


def slot_type(by_compute: dict[DType, DType]) -> str:
    """The tile::SlotType that fits a slot's type for every compute dtype; "" if none does."""
    rules = {
        "Compute": lambda c: c,
        "Real": lambda c: c.real,
        "Int64": lambda c: I64,
        "Bool": lambda c: BOOL,
        "Truth": truth_of,
    }
    fitting = (n for n, rule in rules.items() if all(rule(c) == d for c, d in by_compute.items()))
    return next(fitting, "")
