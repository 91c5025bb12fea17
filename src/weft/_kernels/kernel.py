"""What one kernel computes: expressions, and where their sources come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .expr import Expr, Value, components
from .types import DType

# Scalar slots 0 and 1 of every call (csrc/ops/tile.h).
ROW_LENGTH_SLOT, POSITION_SLOT, FIRST_ATTRIBUTE = 0, 1, 2
Key = tuple[str, int]  # (kind, index) of a source: ("input", 0), ("attribute", 1), ("row", 2)...


class Fold:
    """A monoid over tuples of values, and what is folded into it.

    `lifted` are the element's values, `identity` the neutral ones, `merge(a, b)` the operation on
    two tuples; its result types are those of `lifted`.
    """

    def __init__(
        self,
        lifted: list[Value],
        identity: list[Value],
        merge: Callable[[list[Value], list[Value]], list[Value]],
        needs_elements: bool = False,  # the neutral element is no answer: the maximum of nothing
    ) -> None:
        self.lifted, self.identity, self.merge = lifted, identity, merge
        self.needs_elements = needs_elements


class Kernel:
    """One loop over contiguous operands.

    operands    their types, written ones first
    outputs     what is stored to the first operands; for a horizontal fold: see `fold`
    inputs      which operand a source is read from
    scalars     which scalar slot a source is read from (the same for the whole call), and its type
    tile_position  whether `position` counts up within the call (horizontal) or is one number
    fold        set in a horizontal reduce kernel: the first operands are one element of state
    streams     a negative n asks for stores past the caches (kNonTemporal in ops/tile_drivers.h)
    """

    def __init__(
        self,
        operands: list[DType],
        outputs: list[Value],
        inputs: dict[Key, int] | None = None,
        scalars: dict[Key, tuple[int, DType]] | None = None,
        tile_position: bool = True,
        streams: bool = False,
    ) -> None:
        self.operands, self.outputs = operands, outputs
        self.inputs = inputs if inputs is not None else {}
        self.scalars = scalars if scalars is not None else {}
        self.tile_position, self.streams = tile_position, streams
        self.fold: Fold | None = None

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


def attribute_scalars(values: Sequence[Value], count: int) -> dict[Key, tuple[int, DType]]:
    """The scalar slots of the attributes, as the values read them."""
    found: dict[Key, tuple[int, DType]] = {}
    for e in walk(p for v in values for p in components(v)):
        if e.op == "source" and e.value[0] == "attribute":
            kind, index, _ = e.value
            known = found.get((kind, index))
            found[kind, index] = (FIRST_ATTRIBUTE + index, known[1] if known else e.dtype)
    return found


def attribute_type(schema_type: str) -> str:
    """tile::SlotType of a number in a schema: Scalar and float come in the compute dtype."""
    return {"int": "Int64", "bool": "Bool"}.get(schema_type.rstrip("?"), "Compute")
