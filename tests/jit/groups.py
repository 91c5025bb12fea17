"""Fusion groups of scripted functions, for tests."""

from __future__ import annotations

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
    inner, edges, depends = None, [], []
    if spec.backward is not None:
        inner = make(spec.backward.group)
        edges, depends = list(spec.backward.edges), list(spec.backward.depends)
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
        spec.dropped,
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
