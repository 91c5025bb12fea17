"""Library functions in programs and traces, for other sizes than those of the example."""

from __future__ import annotations

import linecache
import pathlib
import types
import warnings
from typing import Any

import numpy as np
import pytest

import weft

TABLE = pathlib.Path(__file__).with_name("library_functions.txt")
ROWS = [
    [part.strip() for part in line.split(" | ")]
    for line in TABLE.read_text().splitlines()
    if line and not line.startswith("#")
]


def build(expression: str, count: int) -> Any:
    """The expression as a function of x, y and z."""
    filename = f"<library function: {expression}>"
    text = f"def f({', '.join('xyz'[:count])}):\n    return {expression}\n"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    module = types.ModuleType("library_function")
    vars(module).update(torch=weft, F=weft.nn.functional)
    exec(compile(text, filename, "exec"), vars(module))
    return module.f


def tensors(shapes: str, seed: int = 0) -> list[weft.Tensor]:
    random = np.random.default_rng(seed)
    sizes = [[int(n) for n in shape.split(",")] for shape in shapes.split(";")]
    return [weft.from_numpy(random.standard_normal(s).astype(np.float32)) for s in sizes]


def check(got: weft.Tensor, expected: weft.Tensor) -> None:
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got.numpy(), expected.numpy())


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_in_a_program(row: list[str]) -> None:
    expression, *shapes = row
    f = build(expression, len(tensors(shapes[0])))
    program = weft.jit.script(f)
    assert "prim::CallPython" not in str(program.inlined_graph)
    for given in shapes:
        for _ in range(2):  # as the frontend made it, and optimised
            check(program(*tensors(given)), f(*tensors(given)))


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_in_a_trace(row: list[str]) -> None:
    expression, *shapes = row
    f = build(expression, len(tensors(shapes[0])))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = weft.jit.trace(f, tuple(tensors(shapes[0])))
    for given in shapes:
        check(traced(*tensors(given, 1)), f(*tensors(given, 1)))
