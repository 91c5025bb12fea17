"""Nodes as operators: what the schemas say of them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from weft.jit import schemas
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Node, Value
from weft.jit.ir.node_rules import RULES


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


def has_tag(node: Node, tag: str) -> bool:
    """Whether a node is an operator with a tag of its row."""
    operator = operator_of_kind(node.kind)
    return operator is not None and tag in operator.tags


def written(node: Node) -> Sequence[Value]:
    """The inputs that a node writes to itself (not what its blocks write)."""
    always, in_training = _places_written(node.kind)
    if in_training and _is_training(node, operator_of(node)):
        always += in_training
    return [node.inputs[at] for at in always] if always else ()


@functools.cache
def may_write(kind: str) -> bool:
    """Whether nodes of a kind may write to an input."""
    return any(_places_written(kind))


@functools.cache
def _places_written(kind: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The inputs that a node of a kind writes to, and those that it writes to in training."""
    operator = operator_of_kind(kind)
    if operator is None:
        return ((0,) if kind == "prim::SetAttr" else ()), ()
    args = list(enumerate(operator.schema.args))
    trains = "writes_statistics" in operator.tags
    return (
        tuple(at for at, arg in args if arg.is_written),
        tuple(at for at, arg in args if trains and arg.name.startswith("running_")),
    )


def written_tensors(node: Node) -> Iterator[Value]:
    """The same but for lists and dicts: one that grows, of sizes as a pool makes it, changes no
    tensor."""
    return (v for v in written(node) if not isinstance(v.type, ty.ListType | ty.DictType))


def _is_training(node: Node, operator: Any) -> bool:
    """Whether an argument `training` may be true, or there is none."""
    given = (value for arg, value in zip(operator.args, node.inputs) if arg.name == "training")
    return not any(value.is_constant and value.constant is False for value in given)


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
