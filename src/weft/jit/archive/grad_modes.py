"""Grad modes in archives that are written."""

from __future__ import annotations

import functools

from weft.jit.archive import manager_calls as managers
from weft.jit.ir import Block, Graph, Node
from weft.jit.ir import types as ty
from weft.jit.ir.value import Value

_ENTER = "prim::EnterGradMode"


def enters(node: Node) -> bool:
    """Whether a node enters a mode; one known at run time stands as an If of both."""
    return node.kind == _ENTER or (node.kind == "prim::If" and all(map(_only_enters, node.blocks)))


def _only_enters(block: Block) -> bool:
    return [each.kind for each in block if each.kind != "prim::Constant"] == [_ENTER]


def manager(graph: Graph, node: Node) -> Value:
    """The object for the mode that a node enters."""
    mode = node.inputs[0] if node.blocks else graph.constant(bool(node.attrs["mode"]))
    return managers.new(graph, _class(), mode)


@functools.cache
def _class() -> ty.ClassType:
    """The class of the objects."""
    made = ty.ClassType("__torch__.torch.autograd.grad_mode.set_grad_enabled")
    made.attributes = {"mode": ty.Attribute(ty.BOOL), "prev": ty.Attribute(ty.BOOL)}
    init, values = managers.method(made, "__init__", {"mode": ty.BOOL})
    for name in ("mode", "prev"):
        managers.set_attribute(init, name, values[0])
    enter, _ = managers.method(made, "__enter__", {})
    before = enter.emit("aten::is_grad_enabled", (), (ty.BOOL,)).output
    managers.set_attribute(enter, "prev", before)
    _set(enter, "mode")
    _set(managers.leaving(made), "prev")
    return made


def _set(graph: Graph, name: str) -> None:
    mode = graph.emit("prim::GetAttr", graph.inputs[:1], (ty.BOOL,), {"name": name}).output
    graph.emit("aten::set_grad_enabled", (mode,), ())
