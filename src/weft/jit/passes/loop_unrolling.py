"""Loop unrolling: a short loop whose number of trips is known becomes its trips, one after another.

Exact: the same operators run in the same order. Loops inside are unrolled first, as long as the
result stays within the limits of the options.
"""

from __future__ import annotations

from weft.jit.ir import INT, Node, Value, clone_node
from weft.jit.passes.control_flow import known_trips
from weft.jit.passes.options import Options
from weft.jit.passes.rewriting import Rewriter, Rule, alone


def rule_of(kind: str) -> Rule | None:
    return _loop if kind == "prim::Loop" else None


def _loop(node: Node, work: Rewriter) -> bool:
    if any(_is_short(inner, work.options) for inner in node.walk()):
        return False  # those inside come first
    return _is_short(node, work.options) and _unroll(node)


def _is_short(node: Node, options: Options) -> bool:
    trips = known_trips(node) if node.kind == "prim::Loop" else None
    if trips is None or trips > options.unroll_trips:
        return False
    size = sum(1 for inner in node.walk() if inner.kind != "prim::Constant")
    return trips * size <= options.unroll_limit


def _unroll(loop: Node) -> bool:
    graph, body = loop.graph, loop.blocks[0]
    carried: list[Value] = list(loop.inputs[2:])
    for trip in range(known_trips(loop) or 0):
        with graph.inserting(before=loop), graph.at_range(loop.range):
            mapping = {body.params[0]: graph.constant(trip, INT)}
        mapping.update(zip(body.params[1:], carried))
        for node in body:
            clone_node(node, loop.owner, mapping, before=loop)
        carried = [mapping.get(value, value) for value in body.returns[1:]]
    loop.replace_outputs_with(carried)
    loop.destroy()
    return True


run = alone(rule_of)
