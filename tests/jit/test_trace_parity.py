"""weft.jit.trace and torch.jit.trace on the same sources: results on other values and sizes, what is
refused, and where they warn."""

from __future__ import annotations

import inspect
import linecache
import textwrap
import types
import warnings
from typing import Any

import numpy as np
import pytest

import weft

pytestmark = pytest.mark.parity

# name: source of f, shapes of the example inputs, shapes of further calls
PROGRAMS: dict[str, tuple[str, list[Any], list[list[Any]]]] = {
    "chain": ("return (x * 2 + y).relu().sum(1)", [(2, 3), (2, 3)], [[(4, 5), (4, 5)]]),
    "shape": ("return x.reshape(x.shape[0], -1) + y.size(0)", [(2, 3, 4), (5,)], [[(3, 1, 2), (7,)]]),
    "heads": (
        "b, t, c = x.size()\n"
        "return x.view(b, t, 2, c // 2).transpose(1, 2).contiguous().view(b, -1)",
        [(2, 3, 4)], [[(1, 5, 8)], [(3, 1, 2)]],
    ),
    "scale": ("return x @ x.mT / x.size(-1) ** 0.5", [(2, 3)], [[(4, 7)]]),
    "zeros": ("return torch.zeros(x.shape[0], x.shape[1] * 2) + 1", [(2, 3)], [[(3, 5)]]),
    "arange": ("return torch.arange(x.size(1)) + x", [(2, 3)], [[(3, 5)]]),
    "new zeros": ("return x.new_zeros(x.size(0), 2)", [(2, 3)], [[(5, 3)]]),
    "write": ("y = x.clone()\ny[0] = 1\ny[:, 1] += 2\nreturn y", [(2, 3)], [[(2, 3)], [(4, 5)]]),
    "write input": ("x.add_(1)\nreturn x * 2", [(2, 3)], [[(2, 3)]]),
    "index": ("return x[:, 1:], x[-1], x[..., None], x[[0, 1]]", [(2, 3)], [[(4, 5)]]),
    "mask": ("return x.masked_fill(x > 0, 2.0)", [(2, 3)], [[(4, 5)]]),
    "where": ("return torch.where(x > 0, x, -x) + (x > 0).float()", [(2, 3)], [[(4, 5)]]),
    "cat": ("return torch.cat([x, y], 0), torch.stack([x, x], 1)", [(2, 3), (4, 3)], [[(1, 2), (5, 2)]]),
    "chunk": ("a, b = x.chunk(2, 1)\nreturn a * b", [(2, 4)], [[(3, 6)]]),
    "max": ("v, i = x.max(1)\nreturn v, i", [(2, 4)], [[(3, 6)]]),
    "list": ("return [x, x + 1]", [(2,)], [[(3,)]]),
    "tuple": ("return x + 1, (y, x * y)", [(2,), (2,)], [[(3,), (3,)]]),
    "convert": ("return x.double(), x.long(), x.to(torch.float16), x.type_as(y)", [(2,), (2,)], [[(3,), (3,)]]),
    "conv": ("return torch.nn.functional.conv2d(x, y, padding=1)", [(1, 2, 5, 5), (3, 2, 3, 3)],
             [[(2, 2, 7, 4), (1, 2, 3, 3)]]),
    "linear": ("return torch.nn.functional.linear(x, y)", [(2, 3), (4, 3)], [[(5, 6), (2, 6)]]),
    "softmax": ("return torch.nn.functional.softmax(x, -1) * x.mean()", [(2, 3)], [[(5, 6)]]),
    "einsum": ("return torch.einsum('ij,kj->ik', x, y)", [(2, 3), (4, 3)], [[(5, 6), (2, 6)]]),
    "expand": ("return x.expand(y.size(0), -1) + y", [(3,), (2, 3)], [[(5,), (4, 5)]]),
    "detach": ("return x.detach() * x", [(3,)], [[(5,)]]),
    "no grad": ("with torch.no_grad():\n    y = x * 2\nreturn y + x", [(3,)], [[(5,)]]),
    "if": ("if x.sum() > 0:\n    return x\nreturn -x", [(3,)], [[(3,)]]),
    "bool": ("return x if bool(x.sum() > 0) else -x", [(3,)], [[(3,)]]),
    "float": ("return x * float(x.sum())", [(3,)], []),
    "int": ("return x * int(x.sum())", [(3,)], []),
    "item": ("return x * x.sum().item()", [(3,)], []),
    "tolist": ("return x * x.tolist()[0]", [(3,)], []),
    "numpy": ("return x * float(x.numpy()[0])", [(3,)], []),
    "iterate": ("y = 0\nfor row in x:\n    y = y + row\nreturn y", [(3, 2)], [[(3, 4)]]),
    "len": ("return x * len(x)", [(3, 2)], [[(3, 4)]]),
    "range": ("for _ in range(x.size(0)):\n    x = x + 1\nreturn x", [(3, 2)], [[(3, 4)]]),
    "assert": ("assert x.size(0) == 3\nreturn x + 1", [(3, 2)], [[(3, 4)]]),
    "sqrt": ("import math\nreturn x / math.sqrt(x.size(-1))", [(3, 2)], [[(4, 2)]]),
}  # fmt: skip
# Where weft warns of more than PyTorch does, and why.
OTHER_WARNINGS = {"range": "PyTorch does not say that it has unrolled the loop"}
REFUSED = {
    "number": ("return x + n", lambda torch, x: (x, 3)),
    "none": ("return x", lambda torch, x: (x, None)),
    "mixed list as result": ("return [x, (x, x)]", lambda torch, x: (x,)),
    "empty list as result": ("return []", lambda torch, x: (x,)),
    "dict result": ("return {'a': x}", lambda torch, x: (x,)),
    "no tensor as result": ("return 'text'", lambda torch, x: (x,)),
    "weight": ("return x * torch.ones(3, requires_grad=True).detach().requires_grad_() * WEIGHT",
               lambda torch, x: (x,)),
}  # fmt: skip


def build(name: str, body: str, torch: Any, **names: Any) -> Any:
    """The function over weft or PyTorch; its source is known to both."""
    filename = f"<trace parity: {name}>"
    arguments = {"number": "x, n", "none": "x, n"}.get(name, "x, y=None")
    text = f"def f({arguments}):\n{textwrap.indent(body, '    ')}\n"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    module = types.ModuleType("traced_source")
    vars(module).update(torch=torch, **names)
    exec(compile(text, filename, "exec"), vars(module))
    return module.f


def numbers(shape: Any, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 3.0, shape).astype(np.float32)


def run(name: str, torch: Any) -> tuple[list[Any], set[tuple[str, int]]]:
    """Results of the traced function, and the lines of its warnings."""
    body, shapes, others = PROGRAMS[name]
    function = build(name, body, torch)

    def inputs(wanted: list[Any], seed: int) -> tuple[Any, ...]:
        arrays = [numbers(shape, seed + i) for i, shape in enumerate(wanted)]
        return tuple(torch.from_numpy(array) for array in arrays)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traced = torch.jit.trace(function, inputs(shapes, 1), check_trace=False)
    lines = {(w.filename, w.lineno) for w in caught if w.category.__name__ == "TracerWarning"}
    results = [traced(*inputs(each, 7)) for each in [shapes, *others]]
    return results, lines


def same(a: Any, b: Any) -> None:
    if isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for one, other in zip(a, b):
            same(one, other)
        return
    assert str(a.dtype) == str(b.dtype)
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_and_warnings_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    expected, lines = run(name, torch)
    got, ours = run(name, weft)
    same(got, expected)
    if name == "list":  # PyTorch names a line of its own
        assert len(ours) == len(lines) == 1
    elif name in OTHER_WARNINGS:
        assert ours > lines
    else:
        assert ours == lines


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    body, arguments = REFUSED[name]
    for library in (torch, weft):
        weight = library.ones(3, requires_grad=True)
        function = build(name, body, library, WEIGHT=weight)
        with warnings.catch_warnings(), pytest.raises(RuntimeError):
            warnings.simplefilter("ignore")
            library.jit.trace(function, arguments(library, library.ones(3)))


def test_signatures_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    for name in ("trace", "trace_module"):
        ours = inspect.signature(getattr(weft.jit, name)).parameters
        theirs = inspect.signature(getattr(torch.jit, name)).parameters
        assert list(ours) == list(theirs)
        for key, parameter in theirs.items():
            if not key.startswith("_"):
                assert ours[key].default == parameter.default, key
    assert issubclass(weft.jit.TracerWarning, Warning)
    assert issubclass(weft.jit.TracingCheckError, Exception)
