"""The pipeline: one ordered list of passes, from the graph of the frontend to the one that runs."""

from __future__ import annotations

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
    rewriting,
    shape,
    tuple_lowering,
    uniform_attributes,
    var_mean,
)
from weft.jit.passes.options import DEFAULT, INFERENCE, Options


@record(frozen=True)
class Pass:
    """One pass: `run` of its file, on a whole graph, or the rules of `rule_of`, on what changed.
    `level`: the least level at which it runs. `repeats`: part of the group that runs until nothing
    changes. `is_done`: run twice in a row, it changes nothing the second time. `works_on`: kinds of
    nodes without which there is nothing for it to do.
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

    @property
    def rule_of(self) -> rewriting.RuleOf | None:
        """What it does to single nodes."""
        return getattr(self.file, "rule_of", None)

    def run(self, graph: Graph, options: Options) -> bool:
        """Runs it; True if anything changed."""
        if self.works_on and not graph.may_have(self.works_on):
            return False
        return bool(self.file.run(graph, options))


def _kinds(*names: str) -> frozenset[str]:
    return frozenset(f"prim::{name}" for name in names)


PASSES: list[Pass] = [
    Pass(inlining, 1, repeats=False, works_on=_kinds("CallFunction", "CallMethod")),
    Pass(constant_pooling, 1),
    Pass(constant_propagation, 1),
    Pass(control_flow, 1),
    Pass(tuple_lowering, 1),
    Pass(loop_unrolling, 2),
    Pass(list_lowering, 2),
    Pass(var_mean, 2),
    Pass(shape, 2, is_done=True),
    Pass(peephole, 1),
    Pass(cse, 2),
    Pass(dce, 1),
    Pass(partial_unrolling, 2, repeats=False, works_on=_kinds("Loop")),
    Pass(conv_sum, 2, repeats=False, works_on=frozenset(("aten::conv2d",))),
    Pass(fusion, 2, repeats=False),
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
    work = _Optimizer(graph, options, observer)
    work.inline(1, uniform=uniform_attributes.find(graph, module, preserved))
    again = True
    while freezing.run(graph, module, preserved) or again:
        # Once `training` is a constant, what only training writes to can be one too.
        work.optimize(1, finish=False)
        again = False
    # A traced convolution tells its dimensions by the lengths of lists.
    work.optimize(2, finish=False)
    changed = mutation.run(graph, options)
    if numerics:
        changed |= conv_bn.run(graph)
        changed |= channels_last.run(graph)
    if changed:
        work.optimize(2, finish=False)
    if finish:
        work.optimize(2, finish=True)
    graph.touched = None
    _inline_forks(graph, options)
    for node in graph.walk():
        if node.kind == "prim::Constant" and isinstance(node.output.constant, Tensor):
            node.attrs["value"] = own(node.output.constant.detach())
    return function.with_graph(graph)


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
    changed = _Optimizer(graph, options, observer).optimize(level, finish)
    graph.touched = None
    return changed


class _Optimizer:
    """The passes at work on one graph. They can be asked again after somebody else changed it."""

    def __init__(self, graph: Graph, options: Options, observer: Observer | None) -> None:
        self.graph, self.options, self.observer = graph, options, observer
        self._rewriter = rewriting.Rewriter(graph, options)
        self._seen: dict[str, int] = {}  # by the name of a pass, the version of the graph it left

    def optimize(self, level: int, finish: bool) -> bool:
        """Runs the passes of a level; with `finish` those behind the repeated ones, too."""
        calls = bool(_active(level)[0])
        changed = calls and self.inline(level, may_share=finish)
        changed |= calls and self._lower(level, finish)
        changed |= self.settle(level)
        return (finish and self._finish(level)) or changed

    def inline(
        self,
        level: int,
        may_share: bool = False,
        uniform: Mapping[uniform_attributes.Attribute, Any] = MappingProxyType({}),
    ) -> bool:
        """Inlines calls. The passes that repeat run once on a function that is called often, not on
        each of its copies, and what `uniform` says of attributes becomes constants in it; a large
        one, if it `may_share`, has no copies and is finished, too."""
        bodies: dict[Function, Graph] = {}
        shared: dict[Function, Function] = {}
        for function in inlining.called_often(self.graph):
            body = bodies[function] = function.graph.copy()
            inlining.run(body, self.options, bodies, (function,), shared)
            uniform_attributes.run(body, uniform)
            work = _Optimizer(body, self.options, self.observer)
            work.settle(level)
            if may_share and sum(1 for _ in body.walk()) > self.options.call_size:
                work._lower(level, True)
                work.settle(level)
                work._finish(level)
                shared[function] = function.with_graph(body)
            body.touched = None
        changed = inlining.run(self.graph, self.options, bodies, shared=shared)
        if changed and self.observer is not None:
            self.observer(PASSES[0], self.graph)
        return changed

    def _lower(self, level: int, finish: bool) -> bool:
        """Puts integers in the place of quantised numbers. A graph that is not the one to run keeps
        its quantised operators."""
        return quantized.lower(self.graph, finish, lambda: self.inline(level))

    def settle(self, level: int) -> bool:
        """Runs the passes that repeat in turn until each has seen the graph and found nothing to
        change."""
        _, passes, _ = _active(level)
        changed, settled = False, 0
        for each in itertools.islice(itertools.cycle(passes), _MOST_ROUNDS * len(passes)):
            settled = 0 if self._run(each) else settled + 1
            changed |= not settled
            if settled == len(passes):
                break
        return changed

    def _finish(self, level: int) -> bool:
        """Runs the passes behind those that repeat."""
        return any([self._run(each) for each in _active(level)[2]])  # noqa: C419

    def _run(self, each: Pass) -> bool:
        """Runs a pass on what changed since it ran last."""
        if each.rule_of is not None:
            changed = self._rewriter.visit(each.rule_of)
        elif self._seen.get(each.name) == self.graph.version:
            return False
        else:
            changed = each.run(self.graph, self.options)
            if each.is_done or not changed:
                self._seen[each.name] = self.graph.version
        if changed and self.observer is not None:
            self.observer(each, self.graph)
        return changed


def _active(level: int) -> tuple[list[Pass], list[Pass], list[Pass]]:
    """The passes of a level: those before the ones that repeat, these, and those behind."""
    active = [each for each in PASSES if each.level <= level]
    repeated = [i for i, each in enumerate(active) if each.repeats] or [len(active)]
    first, last = repeated[0], repeated[-1] + 1
    return active[:first], active[first:last], active[last:]
