"""Grad modes in archives: objects of a class with __enter__ and __exit__, as PyTorch's `with` takes
them."""

from __future__ import annotations

import functools

from weft.jit.ir import Block, Function, Graph, Node
from weft.jit.ir import types as ty
from weft.jit.ir.value import Value

_ENTER, _EXIT = "prim::EnterGradMode", "prim::ExitGradMode"


def lower(graph: Graph) -> None:
    """The nodes that enter and leave modes become calls of methods."""
    for block in [graph.block, *(inner for node in graph.walk() for inner in node.blocks)]:
        _lower_block(graph, block)


def _lower_block(graph: Graph, block: Block) -> None:
    entered: list[Value] = []
    for node in block:
        mode = _mode(graph, node)
        if mode is not None:
            with graph.inserting(before=node), graph.at_range(node.range):
                entered.append(_enter(graph, mode))
            node.destroy()
        elif node.kind == _EXIT:
            with graph.inserting(before=node), graph.at_range(node.range):
                _leave(graph, entered.pop())
            node.destroy()
    with graph.inserting(at_end=block):  # what an exception leaves
        for value in reversed(entered):
            _leave(graph, value)


def _mode(graph: Graph, node: Node) -> Value | None:
    """The mode that a node enters; one known at run time stands before an If of both."""
    if node.kind == _ENTER:
        with graph.inserting(before=node):
            return graph.constant(bool(node.attrs["mode"]))
    firsts = [block.first for block in node.blocks]
    if node.kind == "prim::If" and all(each is not None and each.kind == _ENTER for each in firsts):
        return node.inputs[0]
    return None


def _enter(graph: Graph, mode: Value) -> Value:
    made = graph.emit("prim::CreateObject", (), (_manager(),)).output
    _call(graph, "__init__", made, mode)
    _call(graph, "__enter__", made)
    return made


def _leave(graph: Graph, manager: Value) -> None:
    _call(graph, "__exit__", manager, *(graph.constant(None) for _ in range(3)))


def _call(graph: Graph, name: str, *values: Value) -> None:
    graph.emit("prim::CallMethod", values, (ty.NONE,), {"name": name})


@functools.cache
def _manager() -> ty.ClassType:
    """The class of the objects."""
    made = ty.ClassType("__torch__.torch.autograd.grad_mode.set_grad_enabled")
    made.attributes = {"mode": ty.Attribute(ty.BOOL), "prev": ty.Attribute(ty.BOOL)}
    init, mode = _method(made, "__init__", {"mode": ty.BOOL})
    for name in ("mode", "prev"):
        init.emit("prim::SetAttr", (init.inputs[0], mode), (), {"name": name})
    enter, _ = _method(made, "__enter__", {})
    before = enter.emit("aten::is_grad_enabled", (), (ty.BOOL,)).output
    enter.emit("prim::SetAttr", (enter.inputs[0], before), (), {"name": "prev"})
    _set(enter, "mode")
    leave, _ = _method(made, "__exit__", dict.fromkeys(("type", "value", "trace"), ty.ANY))
    _set(leave, "prev")
    return made


def _set(graph: Graph, name: str) -> None:
    mode = graph.emit("prim::GetAttr", graph.inputs[:1], (ty.BOOL,), {"name": name}).output
    graph.emit("aten::set_grad_enabled", (mode,), ())


def _method(of: ty.ClassType, name: str, types: dict[str, ty.Type]) -> tuple[Graph, Value]:
    """A method that returns None, and its last parameter."""
    graph = Graph()
    values = [graph.add_input(type, each) for each, type in {"self": of, **types}.items()]
    graph.block.set_returns([graph.constant(None)])
    of.methods[name] = Function(f"{of.name}.{name}", graph, ["self", *types])
    return graph, values[-1]
