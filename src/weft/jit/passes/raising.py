"""Which operators cannot raise. Everything that is not listed or proven here may.

Running out of memory is no exception in this sense, int overflow is: ints have 64 bits and a result
that does not fit raises OverflowError.
"""

from __future__ import annotations

from typing import Any

from weft.jit.ir import BOOL, COMPLEX, FLOAT, INT, NONE, STR, TENSOR, ClassType, TupleType, Type
from weft.jit.ir.graph import Node, Value
from weft.jit.passes.constants import constant_of

_NUMBERS = frozenset((INT, FLOAT, BOOL))
_SCALARS = frozenset((INT, FLOAT, BOOL, COMPLEX, STR))
_FLOATS = frozenset((FLOAT, BOOL))
_BOOLS = frozenset((BOOL,))
# By name: the types that all arguments must have.
_SAFE_FOR: dict[str, frozenset[Any]] = {
    **dict.fromkeys(("aten::lt", "aten::le", "aten::gt", "aten::ge"), _NUMBERS | {STR}),
    **dict.fromkeys(("aten::eq", "aten::ne"), _SCALARS),
    **dict.fromkeys(("aten::add", "aten::sub", "aten::mul", "aten::neg"), _FLOATS),
    **dict.fromkeys(("prim::min", "prim::max"), _NUMBERS),
    **dict.fromkeys(("aten::__and__", "aten::__or__", "aten::__xor__"), _BOOLS | {INT}),
    "aten::__not__": _BOOLS,
    "aten::Bool": _NUMBERS,
    "aten::Float": frozenset((FLOAT, BOOL)),
    "aten::Int": frozenset((INT, BOOL)),
}
# By name: safe whatever the arguments are.
_SAFE = frozenset(
    (
        "aten::__is__",
        "aten::__isnot__",
        "aten::dim",
        "aten::numel",
        "aten::is_floating_point",
        "aten::is_complex",
        "aten::len",
        "aten::detach",
        "aten::alias",
        "prim::dtype",
        "prim::device",
        "prim::layout",
        "prim::is_cuda",
        "prim::requires_grad",
        "aten::keys",
        "aten::values",
        "aten::items",
        "aten::list",
        "aten::copy",
    )
)
_ANY_RANK = "torch.contiguous_format"
# Views that cannot fail if the rank is known and the dimensions fit.
_VIEWS = frozenset(
    f"aten::{name}" for name in ("t", "transpose", "permute", "unsqueeze", "squeeze", "swapaxes")
)
# By kind: one overload is safe where others are not.
_SAFE_KINDS = frozenset(("aten::size", "aten::__contains__.str"))

# Nodes of the IR's own that may raise by themselves.
_RAISING_NODES = frozenset(
    (
        "prim::RaiseException",
        "prim::Print",
        "prim::ListUnpack",
        "prim::CallFunction",
        "prim::CallMethod",
        "prim::CallPython",
        "prim::fork",
        "aten::wait",
    )
)


def node_may_raise(node: Node) -> bool:
    """Whether a node of the IR's own may raise, its blocks aside."""
    if node.kind in ("prim::GetAttr", "prim::SetAttr"):
        owner = node.inputs[0].type  # of an object still under construction, attributes may miss
        return not (isinstance(owner, ClassType) and owner.is_module)
    return node.kind in _RAISING_NODES


def operator_may_raise(node: Node, operator: Any) -> bool:
    """Whether an operator may refuse what its node gives it."""
    name = node.name
    if node.kind in _SAFE_KINDS or (name in _SAFE and _knows_len(node)):
        return False
    if name == "aten::contiguous" and str(constant_of(node.inputs[1])) == _ANY_RANK:
        return False  # other memory formats want 4 or 5 dimensions
    if name in _VIEWS and _is_safe_view(node):
        return False
    safe_types = _SAFE_FOR.get(name)
    if safe_types is not None and {value.type for value in node.inputs} <= safe_types:
        return False
    return not _is_total(node, operator)


def _is_safe_view(node: Node) -> bool:
    """Whether the rank of its tensor is known, and its dimensions are constants that fit."""
    shape = node.inputs[0].shape
    rank = shape.rank if shape is not None else None
    if rank is None:
        return False
    if node.name == "aten::t":
        return rank <= 2
    given = [constant_of(value) for value in node.inputs[1:]]
    if node.name == "aten::permute":
        order = given[0]
        return order is not None and sorted(d % max(rank, 1) for d in order) == list(range(rank))
    reach = max(rank + (node.name == "aten::unsqueeze"), 1)
    return all(isinstance(dim, int) and -reach <= dim < reach for dim in given)


def _knows_len(node: Node) -> bool:
    """len() of a 0-d tensor raises; of lists, dicts, strings and tuples it does not."""
    if node.name != "aten::len":
        return True
    type_ = node.inputs[0].type
    return not (type_ == TENSOR or isinstance(type_, TupleType))


def _is_total(node: Node, operator: Any) -> bool:
    """Whether the shapes of its tensors prove that a pointwise row cannot fail: floating dtype, and
    sizes that are the same or broadcast for sure."""
    row = operator.row
    if row is None or row.kind != "pointwise" or row.has_precheck:
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
