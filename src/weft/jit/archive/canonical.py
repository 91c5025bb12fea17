"""Graphs as TorchScript's dialect can say them: loops are either `for i in range(n)` or `while`,
and nothing is dead."""

from __future__ import annotations

from weft.jit.ir import Graph, Node
from weft.jit.ir import types as ty
from weft.jit.ir.value import Value
from weft.jit.passes import dce
from weft.jit.passes.effects import WHILE_TRIPS


def canonical(graph: Graph) -> Graph:
    """A copy of the graph with loops of two kinds and without dead nodes."""
    made = graph.copy()
    for node in list(made.walk()):
        if node.kind == "prim::Loop" and not (is_counted(node) or is_while(node)):
            _to_while(made, node)
    dce.run(made)
    return made


def is_counted(loop: Node) -> bool:
    """Whether a loop makes all of its trips: `for i in range(n)`."""
    return not is_while(loop) and _is_true(loop.inputs[1]) and _is_true(loop.blocks[0].returns[0])


def is_while(loop: Node) -> bool:
    """Whether only its condition ends a loop."""
    trips = loop.inputs[0]
    return trips.is_constant and trips.constant == WHILE_TRIPS


def _is_true(value: Value) -> bool:
    return value.is_constant and value.constant is True


def _to_while(graph: Graph, loop: Node) -> None:
    """A counted loop with a condition: its trips become a carried value."""
    trips, first, *carried = loop.inputs
    body = loop.blocks[0]
    step, again = body.params[0], body.returns[0]

    def both(left: Value, right: Value) -> Value:
        if _is_true(right):
            return left
        return graph.emit("aten::__and__.bool", (left, right), (ty.BOOL,)).output

    with graph.inserting(before=loop), graph.at_range(loop.range):
        limit = graph.constant(WHILE_TRIPS)
        zero = graph.constant(0)
        some = graph.emit("aten::gt.int", (trips, zero), (ty.BOOL,)).output
        start = both(some, first)
    count = body.add_param(ty.INT, step.name)
    step.replace_all_uses_with(count)
    with graph.inserting(at_end=body), graph.at_range(loop.range):
        following = graph.emit("aten::add.int", (count, graph.constant(1)), (ty.INT,)).output
        more = graph.emit("aten::lt.int", (following, trips), (ty.BOOL,)).output
        goes_on = both(more, again)
    loop.set_inputs((limit, start, *carried, zero))
    loop.add_output(ty.INT, step.name)
    body.set_returns((goes_on, *body.returns[1:], following))
