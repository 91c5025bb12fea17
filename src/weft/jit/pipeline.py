"""The pipeline: one ordered list of passes, from the graph of the frontend to the one that runs."""

from __future__ import annotations

import functools
import gc
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType, ModuleType
from typing import Any

from weft._C import Tensor
from weft.jit.ir import ClassType, Function, Graph
from weft.jit.ir.literals import own
from weft.jit.ir.record import record
from weft.jit.passes import (
    channels_last,
    constant_pooling,
    constant_propagation,
    control_flow,
    conv_bn,
    conv_sum,
    cse,
    dce,
    freezing,
    fusion,
    inlining,
    list_lowering,
    loop_unrolling,
    memory_planning,
    mutation,
    partial_unrolling,
    peephole,
    quantized,
    scheduling,
    shape,
    tuple_lowering,
    uniform_attributes,
    var_mean,
)
from weft.jit.passes.options import DEFAULT, INFERENCE, Options


@record(frozen=True)
class Pass:
    """One pass, `run` of its file. `level`: the least level at which it runs.
    `repeats`: part of the group that runs until nothing changes. `is_done`: run twice in a row, it
    changes nothing the second time. `works_on`: kinds of nodes without which there is nothing for
    it to do.
    """

    file: ModuleType
    level: int
    repeats: bool = True
    is_done: bool = False
    works_on: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.file.__name__.rpartition(".")[2]

    def run(self, graph: Graph, options: Options) -> bool:
        """Runs it; True if anything changed."""
        if self.works_on and not graph.may_have(self.works_on):
            return False
        return bool(self.file.run(graph, options))


def _kinds(*names: str) -> frozenset[str]:
    return frozenset(f"prim::{name}" for name in names)


_LISTS = _kinds("ListConstruct") | {"aten::len.t", "aten::len.any"}
_VAR_MEAN = frozenset(
    f"aten::{name}_mean{form}" for name in ("var", "std") for form in ("", ".dim", ".correction")
)
_TUPLES = _kinds("If", "Loop", "TupleIndex", "TupleUnpack")

PASSES: list[Pass] = [
    Pass(inlining, 1, repeats=False, works_on=_kinds("CallFunction", "CallMethod")),
    Pass(constant_pooling, 1, is_done=True),
    Pass(constant_propagation, 1),
    Pass(control_flow, 1, works_on=_kinds("If", "Loop", "unchecked_cast")),
    Pass(tuple_lowering, 1, works_on=_TUPLES),
    Pass(loop_unrolling, 2, works_on=_kinds("Loop")),
    Pass(list_lowering, 2, works_on=_LISTS),
    Pass(var_mean, 2, works_on=_VAR_MEAN),
    Pass(shape, 2),
    Pass(peephole, 1),
    Pass(cse, 2),
    Pass(dce, 1),
    Pass(partial_unrolling, 2, repeats=False, works_on=_kinds("Loop")),
    Pass(conv_sum, 2, repeats=False, works_on=frozenset(("aten::conv2d",))),
    Pass(fusion, 2, repeats=False),
    Pass(scheduling, 2, repeats=False),
    Pass(memory_planning, 2, repeats=False),
]
_MOST_ROUNDS = 10

# Called with the pass and the graph after each pass that changed something.
Observer = Callable[[Pass, Graph], None]


@contextmanager
def _collection_paused() -> Iterator[None]:
    """Graphs are cycles of many thousand objects, most of which live until the passes are done:
    looking for garbage among them takes a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def optimize(
    function: Function, level: int = 2, options: Options = DEFAULT, observer: Observer | None = None
) -> Function:
    """A copy of the function with its graph optimised: level 0 does nothing, 1 what is cheap, 2
    everything."""
    graph = function.graph.copy()
    optimize_graph(graph, level, options, observer)
    return function.with_graph(graph)


@_collection_paused()
def freeze(
    function: Function,
    module: Any,
    preserved: Collection[str] = (),
    options: Options = INFERENCE,
    observer: Observer | None = None,
    numerics: bool = True,
    finish: bool = True,
) -> Function:
    """A copy of a method in which what `module` holds are constants, optimised for inference:
    without gradients, batch_norm folded into the layers beside it (`numerics`, since it changes
    last bits). Its first argument, the module, stays. `preserved`: attributes that stay, by path
    ("layer.0.weight").
    """
    graph = function.graph.copy()
    _make_constant(graph, module, preserved, options, observer)
    # A traced convolution tells its dimensions by the lengths of lists.
    optimize_graph(graph, 2, options, observer, finish=False)
    changed = mutation.run(graph, options)
    if numerics:
        changed |= conv_bn.run(graph)
        changed |= channels_last.run(graph)
    if changed:
        optimize_graph(graph, 2, options, observer, finish=False)
    if finish:
        optimize_graph(graph, 2, options, observer)
    _inline_forks(graph, options)
    for node in graph.walk():
        if node.kind == "prim::Constant" and isinstance(node.output.constant, Tensor):
            node.attrs["value"] = own(node.output.constant.detach())
    return function.with_graph(graph)


def _make_constant(
    graph: Graph,
    module: Any,
    preserved: Collection[str],
    options: Options,
    observer: Observer | None,
) -> None:
    """Inlines all calls, and puts constants in the place of what the module holds."""
    inlining, repeated, _ = _active(1)
    if inlining:
        uniform = uniform_attributes.find(graph, module, preserved)
        _inline(repeated, [], graph, options, observer, False, uniform)
    again = True
    while freezing.run(graph, module, preserved) or again:
        # Once `training` is a constant, what only training writes to can be one too.
        optimize_graph(graph, 1, options, observer, finish=False)
        again = False


def _inline_forks(graph: Graph, options: Options) -> None:
    """Inlines what forked functions call of the module, which no other program has."""
    for node in graph.walk():
        if node.kind == "prim::fork" and any(isinstance(v.type, ClassType) for v in node.inputs):
            body = node.attrs["function"].graph.copy()
            optimize_graph(body, 1, options, finish=False)
            _inline_forks(body, options)
            node.attrs["function"] = node.attrs["function"].with_graph(body)


@_collection_paused()
def optimize_graph(
    graph: Graph,
    level: int = 2,
    options: Options = DEFAULT,
    observer: Observer | None = None,
    finish: bool = True,
) -> bool:
    """Runs the passes on a graph, in place; True if anything changed. `finish`: those behind the
    repeated ones too, which commit it to one kind of program: with gradients, or without. Without
    them every call is inlined, but for quantised operators."""
    inlining, repeated, behind = _active(level)
    changed = bool(inlining) and _inline(repeated, behind, graph, options, observer, finish)
    changed |= level > 0 and quantized.lower(graph, finish, lambda: _run(inlining, graph, options))
    changed |= _settle(repeated, graph, options, observer)
    return (finish and _run(behind, graph, options, observer)) or changed


def _inline(
    passes: list[Pass],
    behind: list[Pass],
    graph: Graph,
    options: Options,
    observer: Observer | None,
    may_share: bool,
    uniform: Mapping[uniform_attributes.Attribute, Any] = MappingProxyType({}),
) -> bool:
    """Inlines calls. The passes that repeat run once on a function that is called often, not on
    each of its copies, and what `uniform` says of attributes becomes constants in it; a large one,
    if it `may_share`, has no copies and is finished, too."""
    bodies: dict[Function, Graph] = {}
    shared: dict[Function, Function] = {}
    for function in inlining.called_often(graph):
        body = bodies[function] = function.graph.copy()
        inlining.run(body, options, bodies, (function,), shared)
        uniform_attributes.run(body, uniform)
        _settle(passes, body, options, observer)
        if may_share and sum(1 for _ in body.walk()) > options.call_size:
            quantized.lower(body, True, functools.partial(inlining.run, body, options))
            _settle(passes, body, options, observer)
            _run(behind, body, options, observer)
            shared[function] = function.with_graph(body)
    changed = bool(inlining.run(graph, options, bodies, shared=shared))
    if changed and observer is not None:
        observer(PASSES[0], graph)
    return changed


def _active(level: int) -> tuple[list[Pass], list[Pass], list[Pass]]:
    """The passes of a level: those before the ones that repeat, these, and those behind."""
    active = [each for each in PASSES if each.level <= level]
    repeated = [i for i, each in enumerate(active) if each.repeats] or [len(active)]
    first, last = repeated[0], repeated[-1] + 1
    return active[:first], active[first:last], active[last:]


def _settle(passes: list[Pass], graph: Graph, options: Options, observer: Observer | None) -> bool:
    """Runs the passes in turn until each has seen the graph and found nothing to change."""
    changed, settled = False, 0
    for each in itertools.islice(itertools.cycle(passes), _MOST_ROUNDS * len(passes)):
        if _run([each], graph, options, observer):
            changed, settled = True, int(each.is_done)
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
