"""Modes in archives: nodes that enter and leave one become calls of an object's methods, as
PyTorch's `with` takes them. Those that enter and leave the context of an object go, since `with` is
told by the calls of its methods."""

from __future__ import annotations

from weft.jit.archive import autocasts, grad_modes
from weft.jit.archive.manager_calls import call
from weft.jit.ir import Block, Graph, Node
from weft.jit.ir.value import Value

_EXITS = ("prim::ExitGradMode", "prim::ExitAutocast")


def lower(graph: Graph) -> None:
    """The nodes that enter and leave modes become calls of methods."""
    for block in [graph.block, *(inner for node in graph.walk() for inner in node.blocks)]:
        _lower_block(graph, block)
    autocasts.drop_unread_modes(graph)


def _lower_block(graph: Graph, block: Block) -> None:
    entered: list[Value] = []
    for node in block:
        with graph.inserting(before=node), graph.at_range(node.range):
            if node.kind in _EXITS:
                _leave(graph, node, entered.pop())
            elif grad_modes.enters(node):
                entered.append(_enter(graph, node, grad_modes.manager(graph, node)))
            elif node.kind == autocasts.ENTER:
                entered.append(_enter(graph, node, autocasts.manager(graph, node)))
            elif node.kind == "prim::EnterContext":
                entered.append(node.inputs[0])
                node.destroy()
            elif node.kind == "prim::ExitContext":
                entered.pop()
                node.destroy()
    with graph.inserting(at_end=block):  # what an exception leaves
        for value in reversed(entered):
            _leave(graph, None, value)


def _enter(graph: Graph, node: Node, manager: Value) -> Value:
    call(graph, "__enter__", manager)
    if node.kind == autocasts.ENTER:
        autocasts.drop_read(node)
    else:
        node.destroy()
    return manager


def _leave(graph: Graph, node: Node | None, manager: Value) -> None:
    call(graph, "__exit__", manager, *(graph.constant(None) for _ in range(3)))
    if node is not None:
        node.destroy()
