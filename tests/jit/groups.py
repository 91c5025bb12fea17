"""Fusion groups of scripted functions, for tests."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import weft
from weft import _C
from weft.jit import pipeline
from weft.jit.codegen import tiles
from weft.jit.codegen.rows import RowResult
from weft.jit.native import compiler
from weft.jit.passes.options import Options


def make(spec: Any) -> Any:
    """The runtime's group of a GroupSpec."""
    inner, edges, depends, saved = None, [], [], []
    if spec.backward is not None:
        inner = make(spec.backward.group)
        edges, depends = list(spec.backward.edges), list(spec.backward.depends)
        saved = list(spec.backward.saved)
    steps = [
        (op if isinstance(op, str) else tuple(op), list(tensors), list(numbers))
        for op, tensors, numbers in spec.steps
        if not isinstance(op, RowResult)
    ]
    return _C._FusedGroup(
        spec.input_count,
        list(spec.constants),
        steps,
        list(spec.outputs),
        inner,
        edges,
        depends,
        spec.squeezed,
        saved,
    )


def optimised(function: Any, gradients: bool = True) -> Any:
    """The graph of a function, scripted and optimised."""
    graph = weft.jit.script(function).graph.copy()
    pipeline.optimize_graph(graph, 2, Options(gradients=gradients), None)
    return graph


def only_group(graph: Any) -> Any:
    """The one group of a graph, those within it aside."""
    found = [node for node in graph.block.nodes if node.kind == tiles.FUSED]
    assert len(found) == 1, str(graph)
    return found[0]


def group_of(function: Any) -> Any:
    """The GroupSpec of a function that is one group."""
    return tiles.spec(only_group(optimised(function)))


# Whether tests ask for native code, too: everything holds without it.
NATIVE = [False, True] if compiler.available() else [False]
needs_native = pytest.mark.skipif(not compiler.available(), reason="needs llvmlite")


def compile_now(group: Any, dtype: Any = weft.float32, masks: int = 0, ints: int = 0) -> None:
    """Native code for a group. Without llvmlite the rest of the test is skipped."""
    if not compiler.available():
        pytest.skip("needs llvmlite")
    assert compiler.serve(group, dtype, masks, ints), compiler.failures[-1]


def run_group(function: Any, native: Any = None, **named: Any) -> Any:
    """What the one group of a function gives for these arguments; None where it does not apply.
    `native`: a dtype: as native code for tensors of it."""
    node = only_group(optimised(function))
    made = make(tiles.spec(node))
    args = [named[value.name] for value in node.inputs]
    if native is not None:
        masks, ints = (
            sum(1 << i for i, a in enumerate(args) if getattr(a, "dtype", None) == dtype)
            for dtype in (weft.bool, weft.int64)
        )
        compile_now(made, native, masks, ints)
    return made.run(args)


def bits(tensor: Any) -> bytes | None:
    """The elements to the last bit."""
    return None if tensor is None else tensor.detach().contiguous().reshape(-1).numpy().tobytes()


def assert_same_sums(got: Any, wanted: Any, reduced: int = 1, scale: float = 1.0) -> None:
    """Gradients that are the same up to the order of addition: an error of eps for each of 32
    places at most that read an input. `reduced`: elements that each value is the sum of besides, of
    random signs, so that the magnitudes come to about the root of their number more. `scale`: the
    size of terms that may cancel."""
    assert (got is None) == (wanted is None)
    if got is None:
        return
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    eps = weft.finfo(got.dtype).eps
    got, wanted = got.detach().double(), wanted.detach().double()
    finite = wanted.isfinite()
    assert bits(finite) == bits(got.isfinite())
    assert bits(wanted.masked_fill(finite, 0.0)) == bits(got.masked_fill(finite, 0.0))
    got, wanted = (g.masked_fill(~finite, 0.0) for g in (got, wanted))
    if wanted.numel() > 0:
        bound = 32 * math.sqrt(reduced) * eps * max(scale, float(wanted.abs().max()))
        assert float((got - wanted).abs().max()) <= bound


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Runs with so many threads."""
    before = weft.get_num_threads()
    weft.set_num_threads(count)
    try:
        yield
    finally:
        weft.set_num_threads(before)


# Groups with row operators, beside the operators one by one -----------------------------------------

SHAPES = [
    ((5, 7), (5, 7)),
    ((40, 30), (30,)),
    ((2, 9, 33), (9, 1)),
    ((600, 12), (600, 12)),  # short rows: many at once
    ((130, 700), (700,)),
    ((3, 20_000), (3, 20_000)),  # long rows
    ((1, 150_000), (150_000,)),
    ((65, 1031), (65, 1)),
    ((5000,), ()),
]


def inputs(shapes: Any, dtype: Any, grad: bool = False, seed: int = 0) -> list[Any]:
    weft.manual_seed(seed)
    return [weft.randn(s, dtype=dtype).requires_grad_(grad) for s in shapes]


def results(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


@pytest.fixture(autouse=True)
def no_other_requests() -> None:
    """Groups of other tests may have asked for code while the compiling thread was busy."""
    while _C._fused_requests(0.0) is not None:
        pass


def compile_parts() -> None:
    """Serves what groups have asked for."""
    while (request := _C._fused_requests(0.0)) is not None:
        compile_now(*request)


def check_results(made: Any, function: Any, shapes: Any, dtype: Any, native: bool) -> None:
    """The bits and the layouts of the operators; `native`: before native code comes, and after."""
    args = inputs(shapes, dtype)
    wanted = results(function(*args))
    for _ in range(3 if native else 1):
        got = made.run(args)
        assert got is not None
        assert [(g.shape, g.stride()) for g in got] == [(w.shape, w.stride()) for w in wanted]
        assert [bits(g) for g in got] == [bits(w) for w in wanted]
        if native:
            compile_parts()


def check_gradients(
    made: Any, function: Any, shapes: Any, dtype: Any, native: bool = False
) -> None:
    """The bits of the operators; their gradients up to the order of addition."""
    mine, others = (inputs(shapes, dtype, grad=True) for _ in range(2))
    seeds = [weft.randn(w.shape, dtype=dtype) for w in results(function(*others))]
    for _ in range(3 if native else 1):
        got, wanted = made.run(mine), results(function(*others))
        assert got is not None
        assert [bits(g) for g in got] == [bits(w) for w in wanted]
        assert all(g.grad_fn.name() == "FusedBackward" for g in got)
        compare_gradients(got, mine, wanted, others, seeds)
        if native:
            compile_parts()


def compare_gradients(got: Any, mine: Any, wanted: Any, others: Any, seeds: Any) -> None:
    a = weft.autograd.grad(got, mine, seeds)
    b = weft.autograd.grad(wanted, others, seeds)
    scale = max([1.0, *(float(w.abs().max()) for w in b if w.numel() > 0)])
    for g, w in zip(a, b):
        assert_same_sums(g, w, max(v.numel() for v in mine) // max(w.numel(), 1), scale)


def check_second_gradients(function: Any, **tolerance: float) -> None:
    """Gradients of gradients; these are sums in another order."""
    made = make(group_of(function))
    shapes = [(6, 20), (6, 20)]
    mine, others = (inputs(shapes, weft.float64, grad=True) for _ in range(2))
    got, wanted = made.run(mine), results(function(*others))
    seeds = [weft.randn(w.shape, dtype=weft.float64) for w in wanted]
    a = weft.autograd.grad(got, mine, seeds, create_graph=True)
    b = weft.autograd.grad(wanted, others, seeds, create_graph=True)
    for g, w in zip(a, b):
        assert_same_sums(g, w)
    again = weft.autograd.grad([g.sin().sum() for g in a], mine)
    expected = weft.autograd.grad([g.sin().sum() for g in b], others)
    for g, w in zip(again, expected):
        assert weft.allclose(g, w, **tolerance)
