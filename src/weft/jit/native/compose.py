"""A fusion group as one kernel: the bodies of its operators, applied to each other's results.

The same bodies give the operators' own kernels, and no step of the lowering reorders arithmetic or
contracts it, so the fused kernel gives the same bits as the operators one by one.
"""

from __future__ import annotations

import functools
import importlib
import struct
from collections.abc import Sequence
from typing import Any

from weft._kernels.convert import rounded
from weft._kernels.expr import Complex, Expr, Value, cast, components, computing, source, value_of
from weft._kernels.kernel import Kernel, attribute_scalars, attribute_type, walk
from weft._kernels.lower import Function, module_text
from weft._kernels.target import Target
from weft._kernels.types import BF16, BOOL, F16, F32, I64, DType, dtype
from weft._ops import table
from weft.jit import operator_facts
from weft.jit.ir.record import record

Operand = tuple[str, int]  # ("input" | "step" | "constant", index)
SYMBOL = "weft_fused"
MOST_OPERANDS = 16  # kMaxOperands of csrc/ops/tile.h


class NotCompiled(Exception):
    """The group stays with its operators' kernels; the text says why."""


@record(frozen=True)
class Group:
    """What FusedSpec holds (csrc/runtime/fused.h)."""

    constants: Sequence[bool | int | float]
    steps: Sequence[tuple[str, Sequence[Operand], Sequence[Operand]]]
    outputs: Sequence[int]


@functools.cache
def _row(id: str) -> Any:
    """The table's row of that id. Imports its family of rows only: all together take long."""
    facts = operator_facts.row_of_id(id)
    if facts.kind != "pointwise":
        raise NotCompiled(f"expected a pointwise operator of the table, got {id}")
    table.importing.trusted = True
    try:
        importlib.import_module(f"weft._ops.{facts.family}")
    finally:
        table.importing.trusted = False
    return table.find(id)


def kernel(group: Group, compute: str, masks: int, ints: int = 0) -> Kernel:
    """The kernel for tensors of dtype `compute`; bit i of `masks`, of `ints`: input i is one of
    bool, of int64. Tensors of 16 bits come in float32, and so do results, each rounded as a tensor
    of them would be.

    Its operands are the outputs, then the tensor inputs in the order the steps first read them;
    its attributes are the steps' numbers, in order. Raises NotCompiled.
    """
    return _Composer(group, dtype(compute), masks, ints).kernel()


def text(composed: Kernel, target: Target, triple: str) -> str:
    """The LLVM module of a composed kernel, its function named SYMBOL."""
    module = module_text({SYMBOL: Function(composed, target)}, triple)
    return module.replace("define hidden void", "define void", 1)


class _Composer:
    def __init__(self, group: Group, compute: DType, masks: int, ints: int) -> None:
        self._group, self._masks, self._ints = group, masks, ints
        self._half = compute if compute in (F16, BF16) else None
        self._compute = F32 if self._half else compute
        self._inputs: dict[int, Value] = {}  # by the group's input, in the order of first reading
        self._numbers: dict[int, float] = {}  # by attribute: those known now
        self._attributes = 0

    def kernel(self) -> Kernel:
        results: list[Value] = []
        for step in self._group.steps:
            results.append(self._step(step, results))
        outputs = [results[i] for i in self._group.outputs]
        operands = [v.dtype for v in outputs] + [v.dtype for v in self._inputs.values()]
        if len(operands) > MOST_OPERANDS:
            raise NotCompiled(f"expected at most {MOST_OPERANDS} operands, got {len(operands)}")
        reads = {("input", i): len(outputs) + i for i in range(len(self._inputs))}
        return Kernel(operands, outputs, reads, attribute_scalars(outputs, 0), streams=True)

    def _step(
        self, step: tuple[str, Sequence[Operand], Sequence[Operand]], results: list[Value]
    ) -> Value:
        name, tensors, numbers = step
        row = _row(name)
        arguments = {a.name: a for a in row.schema.args}
        operands = [self._operand(operand, results) for operand in tensors]
        dtypes = {value.dtype for value in operands}
        compute = BOOL if dtypes == {BOOL} else I64 if dtypes <= {BOOL, I64} else self._compute
        values: dict[str, Value] = {}
        for argument, value in zip(row.operands, operands):
            values[argument] = cast(value, BOOL if argument in row.bool_inputs else compute)
        for argument, operand in zip(row.attributes, numbers):
            kind = attribute_type(arguments[argument].type)
            d = {"Int64": I64, "Bool": BOOL}.get(kind, compute)
            values[argument] = self._number(operand, d)
        with computing(compute):
            result = row.body(*[values[a.name] for a in row.schema.args if a.name in values])
        types = {"compute": compute, "bool": BOOL, "int64": I64, "real": compute.real}
        settled = self._settled(cast(value_of(result), types[row.result[0]]))
        return rounded(settled, self._half) if self._half and settled.dtype == F32 else settled

    def _operand(self, operand: Operand, results: list[Value]) -> Value:
        kind, index = operand
        if kind == "step":
            return results[index]
        if index not in self._inputs:
            d = (
                BOOL
                if self._masks >> index & 1
                else I64
                if self._ints >> index & 1
                else self._compute
            )
            self._inputs[index] = source("input", len(self._inputs), d)
        return self._inputs[index]

    def _number(self, operand: Operand, d: DType) -> Value:
        kind, index = operand
        if kind == "constant":
            self._numbers[self._attributes] = _rounded(self._group.constants[index], d)
        self._attributes += 1
        return source("attribute", self._attributes - 1, d)

    def _settled(self, value: Value) -> Value:
        """`value` with every choice between bodies (`cases`) taken: known numbers decide it."""
        done: dict[int, Expr] = {}
        for e in walk(components(value)):
            args = tuple(done[id(a)] for a in e.args)
            if e.op == "cases":
                done[id(e)] = self._choice(args)
            else:
                same = all(a is b for a, b in zip(args, e.args))
                done[id(e)] = e if same else Expr(e.op, e.dtype, args, e.value)
        parts = [done[id(part)] for part in components(value)]
        return parts[0] if len(parts) == 1 else Complex(*parts)

    def _choice(self, args: tuple[Expr, ...]) -> Expr:
        """One of a `cases` node's bodies, as the loops of the operator's own kernel choose it."""
        general, *rest = args
        for condition, body in zip(rest[::2], rest[1::2]):
            number, wanted = condition.args
            known = self._numbers.get(number.value[1])
            if known is None:
                raise NotCompiled("expected no body that depends on a number of the call")
            if known == wanted.value:
                return body
        return general


def _rounded(number: float, d: DType) -> float:
    """The number as an attribute slot holds it."""
    if d.kind != "float":
        return int(number)
    return struct.unpack("f", struct.pack("f", number))[0] if d.bits == 32 else float(number)


__all__ = ["SYMBOL", "Group", "NotCompiled", "kernel", "text"]
