"""The pipeline: one ordered list of passes, from the graph of the frontend to the one that runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from typing import Any

from weft.jit.ir import Function, Graph
from weft.jit.ir.record import record
from weft.jit.passes import (
    constant_pooling,
    constant_propagation,
    control_flow,
    conv_bn,
    cse,
    dce,
    freezing,
    fusion,
    inlining,
    list_lowering,
    loop_unrolling,
    memory_planning,
    partial_unrolling,
    peephole,
    scheduling,
    shape,
    tuple_lowering,
)
from weft.jit.passes.options import DEFAULT, INFERENCE, Options

Run = Callable[[Graph, Options], bool]


@record(frozen=True)
class Pass:
    """One pass. `level`: the least level at which it runs. `repeats`: part of the group that runs
    until nothing changes."""

    name: str
    run: Run
    level: int
    repeats: bool = True


PASSES: list[Pass] = [
    Pass("inlining", inlining.run, 1, repeats=False),
    Pass("constant_pooling", constant_pooling.run, 1),
    Pass("constant_propagation", constant_propagation.run, 1),
    Pass("control_flow", control_flow.run, 1),
    Pass("tuple_lowering", tuple_lowering.run, 1),
    Pass("loop_unrolling", loop_unrolling.run, 2),
    Pass("list_lowering", list_lowering.run, 2),
    Pass("shape", shape.run, 2),
    Pass("peephole", peephole.run, 1),
    Pass("cse", cse.run, 2),
    Pass("dce", dce.run, 1),
    Pass("partial_unrolling", partial_unrolling.run, 2, repeats=False),
    Pass("fusion", fusion.run, 2, repeats=False),
    Pass("scheduling", scheduling.run, 2, repeats=False),
    Pass("memory_planning", memory_planning.run, 2, repeats=False),
]
_MOST_ROUNDS = 10

# Called with the pass and the graph after each pass that changed something; tests verify there.
Observer = Callable[[Pass, Graph], None]


def optimize(
    function: Function, level: int = 2, options: Options = DEFAULT, observer: Observer | None = None
) -> Function:
    """A copy of the function with its graph optimised; the function itself stays as it is.

    Level 0 does nothing, 1 what is cheap, 2 everything.
    """
    graph = function.graph.copy()
    optimize_graph(graph, level, options, observer)
    return Function(function.name, graph, function.arg_names, function.defaults, function.doc)


def freeze(
    function: Function,
    module: Any,
    preserved: Collection[str] = (),
    options: Options = INFERENCE,
    observer: Observer | None = None,
    numerics: bool = True,
) -> Function:
    """A copy of a method in which what `module` holds are constants, optimised for inference:
    without gradients, batch_norm folded into the layers before it (`numerics`, since it changes
    last bits). Its first argument, the module, stays. `preserved`: attributes that stay, by path
    ("layer.0.weight").
    """
    graph = function.graph.copy()
    optimize_graph(graph, 1, options, observer)
    while freezing.run(graph, module, preserved):
        # Once `training` is a constant, what only training writes to can be one too.
        optimize_graph(graph, 1, options, observer)
    if numerics:
        conv_bn.run(graph)
    optimize_graph(graph, 2, options, observer)
    return Function(function.name, graph, function.arg_names, function.defaults, function.doc)


def optimize_graph(
    graph: Graph, level: int = 2, options: Options = DEFAULT, observer: Observer | None = None
) -> bool:
    """Runs the passes on a graph, in place; True if anything changed."""
    active = [each for each in PASSES if each.level <= level]
    first = next((i for i, each in enumerate(active) if each.repeats), len(active))
    last = max((i for i, each in enumerate(active) if each.repeats), default=first - 1) + 1
    changed = _run(active[:first], graph, options, observer)
    changed |= _settle(active[first:last], graph, options, observer)
    return _run(active[last:], graph, options, observer) or changed


def _settle(passes: list[Pass], graph: Graph, options: Options, observer: Observer | None) -> bool:
    """Runs the passes in turn until each has seen the graph and found nothing to change."""
    changed, settled = False, 0
    for each in itertools.islice(itertools.cycle(passes), _MOST_ROUNDS * len(passes)):
        if _run([each], graph, options, observer):
            changed, settled = True, 0
        else:
            settled += 1
        if settled == len(passes):
            break
    return changed


def _run(
    passes: list[Pass], graph: Graph, options: Options, observer: Observer | None = None
) -> bool:
    changed = False
    for each in passes:
        if each.run(graph, options):
            changed = True
            if observer is not None:
                observer(each, graph)
    return changed
