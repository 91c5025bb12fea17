"""Which nodes take part in gradients."""

from __future__ import annotations

from functools import cache
from typing import Any

from weft._C import Tensor, device, dtype, layout, memory_format
from weft.jit import schemas
from weft.jit.ir import TENSOR, ClassType, Graph, Node, Value
from weft.jit.ir.literals import is_own
from weft.jit.ir.node_rules import CALLS
from weft.jit.passes.operators import operator_of

_FLOATING = ("float", "bfloat", "complex")
_PLAIN = (bool, int, float, complex, str, device, dtype, layout, memory_format)


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
    return row.has_gradient


# Nodes that turn recording on or off, or run code that may.
_STARTERS = frozenset(
    ("prim::CallPython", "prim::EnterGradMode", "prim::ExitGradMode", "prim::SetGradMode")
)


def may_start(graph: Graph) -> bool:
    """Whether gradients may be recorded though no argument requires one, or though grad mode is
    off when the call starts: the program itself makes such tensors, holds them as constants or
    turns the mode on. Functions that it calls count."""
    return _Starts().graph(graph)


class _Starts:
    def __init__(self) -> None:
        self.seen: set[int] = set()

    def graph(self, graph: Graph) -> bool:
        if id(graph) in self.seen:
            return False
        self.seen.add(id(graph))
        return any(self.node(node) for node in graph.walk() if not _is_harmless(node.kind))

    def node(self, node: Node) -> bool:
        if node.kind == "prim::Constant":
            return _may_hold(node.output.constant)
        if node.kind in ("prim::CallFunction", "prim::fork") and "function" in node.attrs:
            return self.graph(node.attrs["function"].graph)
        if node.kind == "prim::CallMethod":
            owner = node.inputs[0].type
            method = owner.methods.get(node.attrs["name"]) if isinstance(owner, ClassType) else None
            return method is None or self.graph(method.graph)
        if node.kind in CALLS and node.kind != "aten::wait":
            return True
        return node.kind in _STARTERS or _operator_starts(node)


@cache
def _is_harmless(kind: str) -> bool:
    """Whether no node of the kind starts gradients, whatever it reads."""
    if kind == "prim::Constant" or kind in CALLS or kind in _STARTERS:
        return False
    return _starter(kind) == (False, None)


def _may_hold(constant: Any) -> bool:
    """Whether a constant may be, or hold, a tensor that requires a gradient some day."""
    if isinstance(constant, list | tuple):
        return any(map(_may_hold, constant))
    if isinstance(constant, Tensor):
        return not is_own(constant)
    return not (constant is None or isinstance(constant, _PLAIN))


def _operator_starts(node: Node) -> bool:
    always, asked = _starter(node.kind)
    if always or asked is None or asked >= len(node.inputs):
        return always
    value = node.inputs[asked]
    return not (value.is_constant and not value.constant)


@cache
def _starter(kind: str) -> tuple[bool, int | None]:
    """Whether an operator may start gradients, or else the place of an argument that says so."""
    try:
        operator = schemas.of(kind)
    except KeyError:
        return False, None
    names = [arg.name for arg in operator.args]
    always = "starts_gradients" in operator.tags or "grad_enabled" in operator.name
    return always, names.index("requires_grad") if "requires_grad" in names else None
