"""Type comments and annotations name types without importing them, as in torch.jit."""

from __future__ import annotations

import importlib.util

import pytest

import weft

# Parameters, comment, schema.
COMMENTS = [
    ("x, n", "(Tensor, int) -> Tensor", "f(Tensor x, int n) -> Tensor"),
    ("x, n", "(Tensor, (int)) -> (Tensor)", "f(Tensor x, int n) -> Tensor"),
    ("x, n", "(Tensor, List[int]) -> Tensor", "f(Tensor x, int[] n) -> Tensor"),
    ("x, n=None", "(Tensor, Optional[float]) -> Tensor", "f(Tensor x, float? n=None) -> Tensor"),
    ("x, n", "(Tensor, Dict[str, Tensor]) -> Tensor", "f(Tensor x, Dict(str, Tensor) n) -> Tensor"),
    ("x, n", "(Tensor, Tuple[int, Tensor]) -> Tensor", "f(Tensor x, (int, Tensor) n) -> Tensor"),
    ("x, n", "(Tensor, Union[Tensor, str]) -> Tensor", "f(Tensor x, Union(Tensor, str) n) -> Tensor"),
    ("x, n", "(Tensor, Any) -> Tensor", "f(Tensor x, Any n) -> Tensor"),
    ("x, n", "(Tensor, number) -> Tensor", "f(Tensor x, Scalar n) -> Tensor"),
    ("x, n", "(Tensor, Device) -> Tensor", "f(Tensor x, Device n) -> Tensor"),
    ("x,  # type: Tensor\n      n  # type: (int)\n      ", "(...) -> (Tensor)",
     "f(Tensor x, int n) -> Tensor"),
]  # fmt: skip
BODIES = [
    "xs: List[int] = []",
    "xs = torch.jit.annotate(List[Optional[int]], [])",
    "assert isinstance(x, Tensor)",
]


def load(tmp_path, text, name="weft"):
    """The text as a module that imports nothing but torch."""
    path = tmp_path / f"{name}_types.py"
    path.write_text(f"import {name} as torch\n{text}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def comments(parameters, comment):
    return f"def f({parameters}):\n    # type: {comment}\n    return x\n"


@pytest.mark.parametrize(("parameters", "comment", "schema"), COMMENTS)
def test_type_comments(tmp_path, parameters, comment, schema):
    f = load(tmp_path, comments(parameters, comment)).f
    assert str(weft.jit.script(f).schema) == schema


@pytest.mark.parametrize("body", BODIES)
def test_names_in_bodies(tmp_path, body):
    f = load(tmp_path, f"def f(x):\n    {body}\n    return x\n").f
    assert weft.jit.script(f)(weft.ones(1)).item() == 1


def test_annotations_that_python_does_not_read(tmp_path):
    text = "def f(x: 'Tensor', n: 'Dict[str, List[int]]') -> 'Optional[Tensor]':\n    return x\n"
    f = weft.jit.script(load(tmp_path, text).f)
    assert str(f.schema) == "f(Tensor x, Dict(str, int[]) n) -> Tensor?"


def test_what_the_module_calls_so_goes_first(tmp_path):
    f = load(tmp_path, "Tensor = int\n" + comments("x", "(Tensor) -> Tensor")).f
    assert str(weft.jit.script(f).schema) == "f(int x) -> int"


@pytest.mark.parity
@pytest.mark.parametrize(("parameters", "comment", "schema"), COMMENTS)
def test_torch_reads_type_comments_so(tmp_path, parameters, comment, schema):
    torch = pytest.importorskip("torch")
    f = load(tmp_path, comments(parameters, comment), "torch").f
    if "(int)\n" in parameters:  # one with brackets of its own is refused there
        return
    assert str(torch.jit.script(f).schema) == schema
