"""Table rows to tile programs: each body is traced once for each compute dtype."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .expr import Unsupported, Value, cast, computing, source, value_of
from .kernel import Kernel, attribute_scalars, attribute_type
from .program import Slot, Step, Traced, slot_type
from .rows import Row, Scheduler
from .types import BOOL, COMPUTE_DTYPES, I64, DType, dtype, truth_of


@dataclass
class Program:
    """A row's program for all its compute dtypes; slots and steps have one shape for all."""

    row: Any
    traced: dict[DType, Traced]
    slot_types: list[str]

    @property
    def first(self) -> Traced:
        return next(iter(self.traced.values()))

    @property
    def uses_position(self) -> bool:
        """Whether kernels read places within the row, so that elements must come in order."""
        return any(one.uses_position for one in self.traced.values())

    @property
    def attribute_types(self) -> list[str]:
        arguments = {a.name: a for a in self.row.schema.args}
        return [attribute_type(arguments[name].type) for name in self.row.attributes]


def compute_dtypes(row: Any) -> list[DType]:
    """The dtypes worth trying: those promotion can give and the row admits."""
    found: Iterable[DType] = COMPUTE_DTYPES
    if row.promotion == "floating":
        found = [d for d in found if d.kind in ("float", "complex")]
    elif row.promotion == "sum" and "bool" not in row.dtypes:
        found = [d for d in found if d != BOOL]
    if row.dtypes:
        admitted = {dtype(name) for name in row.dtypes}
        found = [d for d in found if d in admitted]
    return list(found)


def trace(row: Any) -> Program:
    """The program of a pointwise, reduce or rowwise row.

    Raises ValueError if the body is undefined for a dtype that the row admits (its dtypes= must
    leave that out), or if its steps depend on the dtype.
    """
    traced: dict[DType, Traced] = {}
    reasons: list[str] = []
    for d in compute_dtypes(row):
        try:
            traced[d] = trace_dtype(row, d)
        except Unsupported as reason:
            reasons.append(f"{d}: {reason}")
        except Exception as error:
            raise ValueError(f"{row.id}: tracing the body for {d}: {error!r}") from error
    if reasons or not traced:
        raise ValueError(
            f"{row.id}: expected a body defined for every dtype the row admits (dtypes= says "
            f"which), got {reasons or 'no dtype'}"
        )
    _check_same_shape(row, traced)
    return Program(row, traced, _slot_types(row, traced))


def trace_dtype(row: Any, d: DType) -> Traced:
    """One trace. Raises Unsupported where the body has no meaning for `d`."""
    inputs = [_input_dtype(row, name, d) for name in row.operands]
    arguments = {a.name: a for a in row.schema.args}
    values: dict[str, Value] = {}
    for i, name in enumerate(row.operands):
        values[name] = source("input", i, inputs[i])
    for i, name in enumerate(row.attributes):
        kind = attribute_type(arguments[name].type)
        values[name] = source("attribute", i, {"Int64": I64, "Bool": BOOL}.get(kind, d))
    ordered = [values[a.name] for a in row.schema.args if a.name in values]
    with computing(d):
        if row.kind == "pointwise":
            return _pointwise(inputs, _outputs(row, d, row.body(*ordered)))
        state = Row()
        outputs = _outputs(row, d, row.body(state, *ordered))
        return Scheduler(inputs, len(row.attributes), state, outputs).program()


def _input_dtype(row: Any, name: str, d: DType) -> DType:
    return BOOL if name in row.bool_inputs else I64 if name in row.int_inputs else d


def _outputs(row: Any, d: DType, result: Any) -> list[Value]:
    types = {"compute": d, "bool": BOOL, "int64": I64, "real": d.real, "truth": truth_of(d)}
    results = result if isinstance(result, tuple) else (result,)
    if len(results) != len(row.result):
        raise ValueError(f"{row.id}: expected {len(row.result)} results, got {len(results)}")
    return [cast(value_of(r), types[name]) for r, name in zip(results, row.result)]


def _pointwise(inputs: list[DType], outputs: list[Value]) -> Traced:
    """One step, reading every input."""
    slots = [Slot("Input", d, i) for i, d in enumerate(inputs)]
    slots += [Slot("Output", v.dtype, i) for i, v in enumerate(outputs)]
    written = list(range(len(inputs), len(slots)))
    operands = [*written, *range(len(inputs))]
    reads = {("input", i): len(outputs) + i for i in range(len(inputs))}
    types = [slots[s].dtype for s in operands]
    kernel = Kernel(types, outputs, reads, attribute_scalars(outputs, 0), streams=True)
    return Traced(slots, [Step(operands, kernels={"horizontal": kernel})], [(0, 1)])


def _check_same_shape(row: Any, traced: dict[DType, Traced]) -> None:
    (first, expected), *others = ((d, t.shape()) for d, t in traced.items())
    for d, shape in others:
        if shape != expected:
            raise ValueError(f"{row.id}: expected the same steps for {first} and {d}, got others")


def _slot_types(row: Any, traced: dict[DType, Traced]) -> list[str]:
    types = []
    for i in range(len(next(iter(traced.values())).slots)):
        by_compute = {c: t.slots[i].dtype for c, t in traced.items()}
        name = slot_type(by_compute)
        if not name:
            raise ValueError(f"{row.id}: expected slot {i} in the compute type, got {by_compute}")
        types.append(name)
    return types
