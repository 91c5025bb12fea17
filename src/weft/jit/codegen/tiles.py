"""Fusion groups as data: which operators may stand in one, and what the runtime is told of it.

A group (`weft::Fused`) is a node with one block of plain operators. `spec` says the same as the
runtime's FusedSpec (csrc/runtime/fused.h): steps that name pointwise rows, each operand a group's
input, an earlier step or a constant.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from weft.jit.codegen.derivative import differentiate
from weft.jit.codegen.rows import SQUEEZED, NotFusible, RowResult
from weft.jit.codegen.steps import Op, Operand, Steps
from weft.jit.ir.graph import Block, Node, Value
from weft.jit.ir.record import record
from weft.jit.ir.types import BOOL, FLOAT, INT, TENSOR, non_none
from weft.jit.operator_facts import RowFacts
from weft.jit.operator_facts import row as table_row

FUSED = "weft::Fused"
# Limits of a tile program (csrc/ops/tile.h, tile_plan.h). Masks used as numbers take one more step
# each when the program is put together, so groups keep well below the 64 steps there may be.
MOST_STEPS = 48
MOST_OPERANDS = 16  # tensor inputs and outputs: beyond it there is no native code
MOST_CALL_OPERANDS = 32
MOST_NUMBERS = 32
MOST_INPUTS = 64
_NUMBER_TYPES = (INT, FLOAT, BOOL)


@record(frozen=True)
class BackwardSpec:
    """The gradient: a group over inputs, a gradient per output, outputs, `saved` values of the
    forward group; see FusedBackward."""

    group: GroupSpec
    edges: tuple[tuple[int, str, int], ...]  # see Edge in derivative.py
    depends: tuple[int, ...]
    saved: tuple[int, ...]


@record(frozen=True)
class GroupSpec:
    """What the runtime is told of a group."""

    input_count: int
    constants: tuple[Any, ...]  # numbers
    steps: tuple[tuple[Op, tuple[Operand, ...], tuple[Operand, ...]], ...]
    outputs: tuple[int, ...]
    squeezed: int = 0  # bit i: input i has one value a row and lacks the row's dimension
    backward: BackwardSpec | None = None

    @property
    def fits(self) -> bool:
        """Whether it keeps within the limits of a tile program."""
        tensors = {o for _, tensors, _ in self.steps for o in tensors if o.kind == "input"}
        numbers = sum(len(numbers) for _, _, numbers in self.steps)
        return (
            self.input_count <= MOST_INPUTS
            and len(self.steps) <= MOST_STEPS
            and len(tensors) + len(self.outputs) <= MOST_CALL_OPERANDS
            and numbers <= MOST_NUMBERS
        )


def row_of(node: Node) -> RowFacts | None:
    """The table row of a node that may be a member of a group; None for others."""
    row = _row_of_kind(node.kind)
    if row is None or len(node.inputs) != len(row.operands):
        return None
    elementwise = row.is_elementwise
    for operand, value in zip(row.operands, node.inputs):
        if operand == "Tensor":
            fits = value.type is TENSOR and not value.is_constant
        elif elementwise and operand == "number":
            fits = value.type in _NUMBER_TYPES
        else:
            fits = value.is_constant
        if not fits:
            return None
    return row if elementwise or _unfolds(node, row) else None


@functools.cache
def _row_of_kind(kind: str) -> RowFacts | None:
    namespace, _, key = kind.partition("::")
    return table_row(key) if namespace == "aten" else None


@functools.cache
def _plain_numbers(kind: str) -> int | None:
    """How many numbers an operator on elements has, which is one step; None for all others."""
    row = _row_of_kind(kind)
    return row.operands.count("number") if row is not None and row.is_elementwise else None


def row_operator(node: Node) -> bool:
    """Whether a node is a row operator that may be a member of a group, along the last dimension or
    all for what is known now."""
    found = _row_of_kind(node.kind)
    if found is None or not found.is_fusible or "backward" in found.tags:
        return False
    for value in node.inputs:
        is_tensor = value.type == TENSOR and not value.is_constant
        if not is_tensor and not is_known(value):
            return False
    try:
        Steps().apply(found.key, [_argument(v, Operand("input", 0)) for v in node.inputs])
    except NotFusible:
        return False
    return True


def _holds_tensor(value: Value) -> bool:
    type_ = value.type
    if type_ is INT or type_ is FLOAT:
        return False
    return non_none(type_) == TENSOR and not (value.is_constant and value.constant is None)


def is_one_step(node: Node) -> bool:
    """Whether a composed operator is a single walk over elements for these constants."""
    namespace, _, key = node.kind.partition("::")
    if namespace != "aten" or table_row(key) is None:
        return False
    steps = Steps()
    try:
        result = steps.apply(key, [_argument(v, Operand("input", 0)) for v in node.inputs])
    except (NotFusible, TypeError):
        return False
    walks = [op for op, _, _ in steps.steps if not isinstance(op, RowResult)]
    return isinstance(result, Operand) and result.kind == "step" and len(walks) == 1


def is_known(value: Value) -> bool:
    """Whether a value is no tensor and known now: a constant, or a list of constants that nobody
    writes to."""
    node = value.node
    if node is None:
        return False
    if node.kind == "prim::Constant":
        return not _holds_tensor(value)
    if node.kind != "prim::ListConstruct":
        return False
    return all(v.is_constant for v in node.inputs) and all(map(_reads_only, value.uses))


def _reads_only(use: Any) -> bool:
    """Whether a list is the argument of an operator of the table, which only read them."""
    if not isinstance(use.user, Node):
        return False
    return table_row(use.user.kind.partition("::")[2]) is not None


def _argument(value: Value, tensor: Any) -> Any:
    """What a step gets for a value of the graph."""
    if not is_known(value):
        return tensor
    if value.is_constant:
        return value.constant
    assert value.node is not None
    return [v.constant for v in value.node.inputs]


def _unfolds(node: Node, row: RowFacts) -> bool:
    """Whether a composed operator is arithmetic on elements for these constants."""
    if row.body is None:
        return False
    try:
        steps = _unfolded(row.key, _constants(node))
    except TypeError:  # a constant that cannot be hashed is none of a number, a text or None
        return False
    return steps is not None and not steps.has_rows


@functools.lru_cache(maxsize=4096)
def _unfolded(key: str, constants: tuple[Any, ...]) -> Steps | None:
    """What a composed operator becomes; None: it cannot be part of a group."""
    steps = Steps()
    args = [Operand("input", i) if c is None else c[0] for i, c in enumerate(constants)]
    try:
        result = steps.apply(key, args)
    except NotFusible:
        return None
    if not isinstance(result, Operand) or result.kind != "step":
        return None
    return steps


def _size(node: Node) -> tuple[int, int] | None:
    """How many steps and numbers the node of a group becomes; None: row operators are among them,
    so that it depends on the other nodes whether it fits."""
    plain = _plain_numbers(node.kind)
    if plain is not None:
        return 1, plain
    if row_operator(node):
        return None
    row = _row_of_kind(node.kind)
    assert row is not None
    steps = _unfolded(row.key, _constants(node))
    return None if steps is None or steps.has_rows else _size_of(steps)


def _size_of(steps: Steps) -> tuple[int, int]:
    return len(steps.steps), sum(len(numbers) for _, _, numbers in steps.steps)


def _constants(node: Node) -> tuple[Any, ...]:
    """By argument: None for a tensor, else the constant, in a tuple."""
    return tuple(None if v.type == TENSOR else (_constant(v),) for v in node.inputs)


def _constant(value: Value) -> Any:
    return value.constant if value.is_constant else None


def fits(nodes: Sequence[Node], outputs: int) -> bool:
    """Whether these nodes, with so many results that leave, keep within a group's limits."""
    inputs = {v for n in nodes for v in n.inputs}
    inputs.difference_update([node.output for node in nodes])
    if len(inputs) + outputs > MOST_OPERANDS:
        inputs = {v for v in inputs if not is_known(v)}
        if len(inputs) + outputs > MOST_OPERANDS:
            return False
    size = _size_together(nodes)
    return size is not None and size[0] <= MOST_STEPS and size[1] <= MOST_NUMBERS


def _size_together(nodes: Sequence[Node]) -> tuple[int, int] | None:
    """How many steps and numbers nodes become; None where values do not go together."""
    numbers = [n for node in nodes if (n := _plain_numbers(node.kind)) is not None]
    if len(numbers) == len(nodes):
        return len(numbers), sum(numbers)
    sizes = [_size(node) for node in nodes]
    known = [size for size in sizes if size is not None]
    if len(known) == len(sizes):  # arithmetic on elements alone: the sum
        return sum(steps for steps, _ in known), sum(numbers for _, numbers in known)
    steps = Steps()
    operands: dict[Value, Any] = {}
    try:
        for node in nodes:
            args = [operands.get(v, _argument(v, Operand("input", 0))) for v in node.inputs]
            operands[node.output] = steps.apply(node.kind.partition("::")[2], args)
    except NotFusible:
        return None
    return _size_of(steps)


def spec(node: Node, gradients: bool = True) -> GroupSpec:
    """What the runtime is told of a `weft::Fused` node."""
    (block,) = node.blocks
    operands: dict[Value, Any] = {p: Operand("input", i) for i, p in enumerate(block.params)}
    steps = Steps(units_wanted=gradients)
    _add_block(steps, block, operands)
    outputs = [operands[value].index for value in block.returns]
    inputs = len(block.params)
    backward = _backward(steps, outputs, inputs) if gradients else None
    return _group(steps, outputs, inputs, backward)


def _add_block(steps: Steps, block: Block, operands: dict[Value, Any]) -> None:
    """The operators of a group, and of the groups in it that serve where it does not apply."""
    for inner in block.nodes:
        if inner.kind == "prim::Constant":
            operands[inner.output] = inner.attrs["value"]
        elif inner.kind == "prim::ListConstruct":
            operands[inner.output] = [operands[v] for v in inner.inputs]
        elif inner.kind == FUSED:
            (body,) = inner.blocks
            operands.update((p, operands[v]) for p, v in zip(body.params, inner.inputs))
            _add_block(steps, body, operands)
            operands.update((o, operands[v]) for o, v in zip(inner.outputs, body.returns))
        else:
            key = inner.kind.partition("::")[2]
            operands[inner.output] = steps.apply(key, [operands[v] for v in inner.inputs])


def _group(
    steps: Steps,
    outputs: list[int],
    inputs: int,
    backward: BackwardSpec | None = None,
    saved: int = 0,
) -> GroupSpec:
    """`saved`: how many inputs, the last ones, are values of rows."""
    plain = tuple((op, tuple(tensors), tuple(numbers)) for op, tensors, numbers in steps.steps)
    squeezed = sum(1 << i for i, space in steps.input_spaces.items() if space == SQUEEZED)
    squeezed |= (1 << inputs) - (1 << (inputs - saved))
    return GroupSpec(inputs, tuple(steps.constants), plain, tuple(outputs), squeezed, backward)


def _backward(steps: Steps, outputs: list[int], inputs: int) -> BackwardSpec | None:
    """None where the group cannot be run on tensors that require a gradient."""
    try:
        found = differentiate(steps, outputs, inputs)
    except NotFusible:
        return None
    first = inputs + 2 * len(outputs)
    group = _group(found.steps, found.outputs, first + len(found.saved), saved=len(found.saved))
    if not group.fits or not group.outputs:  # sums alone pass gradients on: nothing to fuse
        return None
    return BackwardSpec(group, tuple(found.edges), tuple(found.depends), tuple(found.saved))
