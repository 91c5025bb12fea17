"""Nodes as operators: what the schemas say of them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from weft.jit import schemas
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Node, Value
from weft.jit.ir.node_rules import RULES

# Nodes that run code which is not in the graph.
CALLS = frozenset(
    ("prim::CallFunction", "prim::CallMethod", "prim::CallPython", "prim::fork", "aten::wait")
)


# Operators that may give their first argument itself though the schema does not say so: where there
# is nothing to do (the dtype is right already, no dropout in evaluation, differences of order 0).
MAY_GIVE_INPUT = frozenset(f"aten::{name}" for name in ("type_as", "dropout", "diff", "_reduced"))
# Tensors that are written though the schema does not say so, unless `training` is False.
_WRITTEN_IN_TRAINING = {
    "aten::batch_norm": ("running_mean", "running_var"),
    "aten::_batch_norm_train": ("running_mean", "running_var"),
}


def operator_of(node: Node) -> Any:
    """The operator of the table or of the builtins that a node is; None for the IR's own nodes."""
    return operator_of_kind(node.kind)


@functools.cache
def operator_of_kind(kind: str) -> Any:
    """The operator behind the kind of a node, or None."""
    if kind in RULES:
        return None
    try:
        return schemas.of(kind)
    except KeyError:
        return None


def written(node: Node) -> Iterator[Value]:
    """The inputs that a node writes to itself (not what its blocks write)."""
    operator = operator_of(node)
    if operator is not None:
        if not operator.writes and node.kind not in _WRITTEN_IN_TRAINING:
            return
        hidden = _WRITTEN_IN_TRAINING.get(node.kind, ()) if _is_training(node) else ()
        for arg, value in zip(operator.schema.args, node.inputs):
            if arg.is_written or arg.name in hidden:
                yield value
    elif node.kind == "prim::SetAttr":
        yield node.inputs[0]


def _is_training(node: Node) -> bool:
    """Whether the argument `training` of batch_norm may be true."""
    if node.kind != "aten::batch_norm":
        return True
    training = node.inputs[5]
    return not (training.is_constant and training.constant is False)


def is_mutable(type_: ty.Type) -> bool:
    """Whether a value of the type, or something it holds, can be changed in place."""
    if type_ is ty.TENSOR:
        return True
    if isinstance(type_, ty.BaseType):
        return type_ is ty.ANY or type_ is ty.GENERATOR
    if isinstance(type_, (ty.ListType, ty.DictType, ty.ClassType, ty.InterfaceType)):
        return True
    if isinstance(type_, ty.FutureType):
        return True
    return any(is_mutable(child) for child in type_.children)
