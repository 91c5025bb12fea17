"""What one kernel computes: expressions, and where their sources come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .expr import Expr, Value, components
from .types import DType

Key = tuple[str, int]  # (kind, index) of a source: ("input", 0), ("attribute", 1), ("row", 2)...


@dataclass
class Fold:
    """A monoid over tuples of values, and what is folded into it.

    `lifted` are the element's values, `identity` the neutral ones, `merge(a, b)` the operation on
    two tuples; its result types are those of `lifted`.
    """

    lifted: list[Value]
    identity: list[Value]
    merge: Callable[[list[Value], list[Value]], list[Value]]
    needs_elements: bool = False  # the neutral element is no answer: the maximum of nothing


@dataclass
class Kernel:
    """One loop over contiguous operands.

    operands    their types, written ones first
    outputs     what is stored to the first operands; for a horizontal fold: see `fold`
    inputs      which operand a source is read from
    scalars     which scalar slot a source is read from (the same for the whole call), and its type
    tile_position  whether `position` counts up within the call (horizontal) or is one number
    fold        set in a horizontal reduce kernel: the first operands are one element of state
    """

    operands: list[DType]
    outputs: list[Value]
    inputs: dict[Key, int] = field(default_factory=dict)
    scalars: dict[Key, tuple[int, DType]] = field(default_factory=dict)
    tile_position: bool = True
    fold: Fold | None = None

    def roots(self) -> list[Expr]:
        values = self.fold.lifted + self.fold.identity if self.fold else self.outputs
        return [part for v in values for part in components(v)]


def walk(roots: Iterable[Expr]) -> list[Expr]:
    """Every node below the roots, each once, operands before their users."""
    order: list[Expr] = []
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(r, False) for r in reversed(list(roots))]
    while stack:
        e, done = stack.pop()
        if done:
            order.append(e)
        elif id(e) not in seen:
            seen.add(id(e))
            stack.append((e, True))
            stack.extend((a, False) for a in reversed(e.args))
    return order
