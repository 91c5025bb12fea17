"""Table rows to tile programs: each body is traced once for each compute dtype."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .convert import decode, encode, storage
from .expr import Expr, Unsupported, Value, cast, computing, source, value_of
from .kernel import Kernel, attribute_scalars, attribute_type, walk
from .program import Slot, Step, Traced, slot_type
from .rows import Row, Scheduler
from .types import BF16, BOOL, COMPUTE_DTYPES, F16, F32, I64, DType, dtype, truth_of

# Nodes of a pointwise kernel for which conversions on their own would take most of the time.
MOST_NARROW = 24


@dataclass
class Program:
    """A row's program for all its compute dtypes; slots and steps have one shape for all."""

    row: Any
    traced: dict[DType, Traced]
    slot_types: list[str]
    narrow: dict[DType, Kernel]  # kernels that read and write floats of 16 bits themselves

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
    narrow = {}
    if row.kind == "pointwise" and F32 in traced and len(walk(_roots(traced[F32]))) <= MOST_NARROW:
        narrow = {d: _only_kernel(trace_dtype(row, F32, d)) for d in (F16, BF16)}
    return Program(row, traced, _slot_types(row, traced), narrow)


def _only_kernel(traced: Traced) -> Kernel:
    return traced.steps[0].kernels["horizontal"]


def _roots(traced: Traced) -> list[Expr]:
    return _only_kernel(traced).roots()


def trace_dtype(row: Any, d: DType, stored: DType | None = None) -> Traced:
    """One trace. Raises Unsupported where the body has no meaning for `d`. stored: of a pointwise
    row, the smaller type in which operands of the compute type are read and written."""
    inputs = [_input_dtype(row, name, d) for name in row.operands]
    arguments = {a.name: a for a in row.schema.args}
    values: dict[str, Value] = {}
    for i, name in enumerate(row.operands):
        if stored and inputs[i] == d:
            inputs[i] = storage(stored)
            values[name] = decode(source("input", i, inputs[i]), stored)
        else:
            values[name] = source("input", i, inputs[i])
    for i, name in enumerate(row.attributes):
        kind = attribute_type(arguments[name].type)
        values[name] = source("attribute", i, {"Int64": I64, "Bool": BOOL}.get(kind, d))
    ordered = [values[a.name] for a in row.schema.args if a.name in values]
    with computing(d):
        if row.kind == "pointwise":
            outputs = _outputs(row, d, row.body(*ordered))
            if stored:
                outputs = [encode(v, stored) if v.dtype == d else v for v in outputs]
            return _pointwise(inputs, outputs)
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
