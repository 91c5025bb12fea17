"""Which operators cannot raise. What no tag of a row says, and is not proven here, may.

Running out of memory is no exception in this sense, int overflow is: ints have 64 bits and a result
that does not fit raises OverflowError.
"""

from __future__ import annotations

from typing import Any

from weft.jit.ir import BOOL, FLOAT, INT, NONE, STR, TENSOR, ClassType, Type
from weft.jit.ir.graph import Node, Value
from weft.jit.ir.node_rules import CALLS
from weft.jit.ir.types import NUMBER
from weft.jit.passes.constants import constant_of

_REAL = frozenset((INT, FLOAT, BOOL))
_ANY_RANK = "torch.contiguous_format"
_DIM_CHECKS = frozenset(("checks_dims", "checks_order", "checks_matrix"))

# Nodes of the IR's own that may raise by themselves.
_RAISING_NODES = CALLS | {"prim::RaiseException", "prim::Print", "prim::ListUnpack"}


def node_may_raise(node: Node) -> bool:
    """Whether a node of the IR's own may raise, its blocks aside."""
    if node.kind in ("prim::GetAttr", "prim::SetAttr"):
        owner = node.inputs[0].type  # of an object still under construction, attributes may miss
        return not (isinstance(owner, ClassType) and owner.is_module)
    return node.kind in _RAISING_NODES or "checked" in node.attrs


def operator_may_raise(node: Node, operator: Any) -> bool:
    """Whether an operator may refuse what its node gives it."""
    if "total" in operator.tags and _are_real(node, operator):
        return False
    if "checks_format" in operator.tags and str(constant_of(node.inputs[1])) == _ANY_RANK:
        return False  # other memory formats want 4 or 5 dimensions
    return not (_has_good_dims(node, operator.tags) or _is_total(node, operator))


def _has_good_dims(node: Node, tags: frozenset[str]) -> bool:
    """Whether it raises for dimensions only, the rank of its tensor is known, and its dimensions
    are constants that fit."""
    if not tags & _DIM_CHECKS:
        return False
    shape = node.inputs[0].shape
    rank = shape.rank if shape is not None else None
    if rank is None:
        return False
    given = [constant_of(value) for value in node.inputs[1:]]
    if "checks_order" in tags:
        order = given[0]
        return order is not None and sorted(d % max(rank, 1) for d in order) == list(range(rank))
    if "checks_matrix" in tags:
        return rank <= 2
    reach = max(rank + ("adds_dim" in tags), 1)
    return all(isinstance(dim, int) and -reach <= dim < reach for dim in given)


def _are_real(node: Node, operator: Any) -> bool:
    """Whether what is given for Scalar arguments are ints, floats and bools."""
    given = zip(operator.args, node.inputs)
    return all(arg.type is not NUMBER or value.type in _REAL for arg, value in given)


def _is_total(node: Node, operator: Any) -> bool:
    """Whether the shapes of its tensors prove that a pointwise row cannot fail: floating dtype, and
    sizes that are the same or broadcast for sure."""
    row = operator.row
    if row is None or row.kind != "pointwise" or row.has_validation:
        return False
    tensors = [value for value in node.inputs if value.type == TENSOR]
    rest: list[Type] = [value.type for value in node.inputs if value.type != TENSOR]
    if not tensors or any(type_ not in (INT, FLOAT, BOOL, STR, NONE) for type_ in rest):
        return False
    if row.has_masks or operator.writes:
        return False
    return all(map(_is_floating, tensors)) and _broadcasts(tensors)


def _is_floating(value: Value) -> bool:
    dtype = value.shape.dtype if value.shape is not None else None
    return str(dtype) in ("torch.float32", "torch.float64")


def _broadcasts(tensors: list[Value]) -> bool:
    """Whether known sizes fit together from the last dimension on."""
    sizes = [value.shape.sizes for value in tensors if value.shape is not None]
    if len(tensors) == 1:
        return True
    if len(sizes) != len(tensors) or any(size is None for size in sizes):
        return False
    known = [size for size in sizes if size is not None]
    for place in range(1, max(map(len, known)) + 1):
        here = {size[-place] for size in known if place <= len(size)} - {1}
        if len(here) > 1 or None in here:
            return False
    return True
