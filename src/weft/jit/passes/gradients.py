"""Which nodes take part in gradients."""

from __future__ import annotations

from weft.jit.ir import TENSOR, Node, Value
from weft.jit.passes.operators import operator_of

_FLOATING = ("float", "bfloat", "complex")


def may_record(value: Value) -> bool:
    """Whether a gradient may flow through a value: not if its dtype is integral or bool, nor if
    its operator is not differentiable."""
    if value.type != TENSOR and TENSOR not in value.type.children:
        return False
    shape = value.shape
    if shape is not None and shape.dtype is not None:
        name = str(shape.dtype).removeprefix("torch.")
        if not name.startswith(_FLOATING):
            return False
    return value.node is None or is_differentiable(value.node)


def is_differentiable(node: Node) -> bool:
    """Whether results of the node may require a gradient; True where that is not known."""
    operator = operator_of(node)
    if operator is None or operator.row is None:
        return True
    row = operator.row
    if "nondifferentiable" in row.tags or "factory" in row.tags:
        return False
    if row.kind == "compose" or "composite" in row.tags:
        return True
    return row.has_gradient or row.no_gradient
