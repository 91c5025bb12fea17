"""docs/tour.py: its sessions run as printed, and its numbers are those of the library."""

from __future__ import annotations

import doctest
import importlib.util
import itertools
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tour.py"


def _load_page() -> Any:
    spec = importlib.util.spec_from_file_location("tour", PAGE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tour"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


tour = _load_page()


@pytest.mark.parametrize("section", list(tour.__test__))
def test_sessions(section: str) -> None:
    runner = doctest.DocTestRunner()
    session = doctest.DocTestParser().get_doctest(
        tour.__test__[section], vars(tour).copy(), section, str(PAGE), 0
    )
    results = runner.run(session)
    assert results.attempted >= 2 and results.failed == 0


def test_it_needs_nothing_but_python() -> None:
    done = subprocess.run([sys.executable, "-I", "-S", str(PAGE)], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith(" 0 failed\n"), done.stdout


def test_it_stays_short_and_points_at_real_files() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len([line for line in text.splitlines() if line.strip()]) <= 1200
    paths = re.findall(r"(?:csrc|src|docs|tools)/[\w/{},]+(?:\.\w+)?", text)
    assert len(paths) >= 14
    for path in paths:
        before, _, rest = path.partition("{")
        names, _, after = rest.partition("}")
        for name in names.split(","):
            assert (ROOT / f"{before}{name}{after}").exists(), path


def their_dtype(dtype: Any) -> Any:
    return getattr(weft, dtype.name)


def theirs(value: Any) -> Any:
    """A tensor of the tour as one of weft, with the same layout."""
    if not isinstance(value, tour.Tensor):
        return value
    flat = weft.tensor(value.elements.tolist(), dtype=their_dtype(value.dtype))
    return flat.as_strided(value.layout.sizes, value.layout.strides, value.layout.offset)


OPERANDS = [tour.tensor(data, dtype) for data in (1, [1]) for dtype in tour.DTYPES] + [True, 2, 2.5]


@pytest.mark.parametrize("a, b", [*itertools.product(OPERANDS[:-3], OPERANDS)], ids=repr)
def test_promotion(a: Any, b: Any) -> None:
    assert weft.result_type(theirs(a), theirs(b)) == their_dtype(tour.result_type([a, b]))


VIEWS = {
    "transpose": st.tuples(st.integers(-3, 2), st.integers(-3, 2)),
    "unsqueeze": st.tuples(st.integers(-4, 3)),
    "expand": st.tuples(st.lists(st.integers(1, 3), max_size=4).map(tuple)),
}
CHAIN = st.lists(
    st.sampled_from(sorted(VIEWS)).flatmap(lambda name: st.tuples(st.just(name), VIEWS[name])),
    max_size=5,
)


@given(st.lists(st.integers(0, 3), max_size=3), CHAIN)
@examples(40)
def test_views(sizes: list[int], chain: list[tuple[str, tuple[Any, ...]]]) -> None:
    """The same layouts, and errors of the same class."""
    layout, tensor = tour.Layout.contiguous(sizes), weft.empty(sizes)
    for name, args in chain:
        try:
            layout = getattr(layout, name)(*args)
        except (IndexError, RuntimeError) as error:
            if name == "transpose" and not layout.sizes:
                return  # 0-d tensors have a dim 0, and -1, in the library only
            with pytest.raises(type(error)):
                getattr(tensor, name)(*args)
            return
        tensor = getattr(tensor, name)(*args)
        assert layout == (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())


ROWS = [row for row in tour.TABLE.values() if row.kind in ("pointwise", "reduce", "compose")]
EXACT = {"neg", "clone", "add", "sub", "mul", "div", "lt", "gt", "sum", "mean", "matmul"}  # IEEE's
NUMBERS = [0.5, -1.25, 3.0, 100.0, -0.1, 2.0**-20, 7.0, -8.0]


def operand(shape: tuple[int, ...], dtype: Any, turned: bool, first: int) -> Any:
    values = itertools.islice(itertools.cycle(NUMBERS[first:] + NUMBERS[:first]), math.prod(shape))
    result = tour.empty(shape, dtype)
    for i, value in enumerate(values):
        result.elements[i] = dtype.cast(value)
    return result.transpose(0, 1) if turned else result


# A mean or a matmul of integers is made of a sum here, which has another dtype.
CASES = [(row, dtype) for row in ROWS for dtype in tour.DTYPES[3 if row.kind == "compose" else 1 :]]


@pytest.mark.parametrize("row, dtype", CASES, ids=[f"{row.key}-{dtype}" for row, dtype in CASES])
def test_operators(row: Any, dtype: Any) -> None:
    """Strided, broadcast operands: results with the bits of the library, dtypes too."""
    first = operand((3, 5), dtype, True, 0)
    given: list[Any] = [first]
    if len(row.args) > 1 and row.kind != "reduce":
        number, square = row.key.endswith("Scalar"), row.name == "matmul"
        given.append(3 if number else operand((3, 2) if square else (5, 1), dtype, False, 3))
    ours = getattr(tour.Tensor, row.name)(*given)
    expected = getattr(weft, row.name)(*map(theirs, given))
    assert their_dtype(ours.dtype) == expected.dtype
    if row.name in EXACT:
        assert repr(ours.tolist()) == repr(expected.tolist())  # NaN among them
    else:
        weft.testing.assert_close(theirs(ours), expected)


FUNCTIONS = [
    lambda x, y: (x * y - x / y).sum(),
    lambda x, y: (-x).exp().sum(1) * 2.0,
    lambda x, y: (x @ y.transpose(0, 1)).tanh(),
    lambda x, y: ((x - 1.5) * (y.sum(0))).sigmoid(),
    lambda x, y: x.unsqueeze(0).expand((4, 2, 3)) * y + x,
    lambda x, y: (1 - x * x * x).mean(),
]


@pytest.mark.parametrize("f", FUNCTIONS, ids=range(len(FUNCTIONS)))
@pytest.mark.parametrize("order", (1, 2))
def test_gradients(f: Any, order: int) -> None:
    """Of `f`, then of the sum of that gradient."""
    found = []
    for make, module in ((tour.tensor, tour), (weft.tensor, weft)):
        dtype = module.float64
        x = make([[0.5, -1.25, 3.0], [0.25, 2.0, -0.75]], dtype=dtype, requires_grad=True)
        y = make([[1.5, 0.25, -2.0], [4.0, -0.5, 1.0]], dtype=dtype, requires_grad=True)
        f(x, y).sum().backward(create_graph=True)
        grads = [x.grad, y.grad]
        if order == 2:
            first = sum((g.sum() for g in grads if g is not None), start=make(0.0, dtype=dtype))
            if module is tour:
                x.autograd.grad = y.autograd.grad = None
            else:
                x.grad = y.grad = None
            first.backward()
            grads = [x.grad, y.grad]
        found.append([None if grad is None else grad.tolist() for grad in grads])
    ours, expected = found
    for one, other in zip(ours, expected):
        assert (one is None) == (other is None)
        if one is not None:
            weft.testing.assert_close(weft.tensor(one), weft.tensor(other))


SOURCES = {
    "zeros": "def f(x, n: int):\n    return x / (0.0 * (0.0 - 1.0)) - x / 0.0",
    "update": tour.UPDATE,
    "branch": "def f(x, n: int):\n    if n > 1:\n        x = x * n\n        n = n - 1\n    else:\n        x = -x\n    return x + n",
    "nested": "def f(x, n: int):\n    for i in range(n):\n        for j in range(i):\n            x = x * 0.5 + j\n    return x",
    "unrolled": "def f(x, n: int):\n    y = x\n    for i in range(3):\n        if i > 1:\n            y = y - x\n        x = x * (i + 1)\n    return y",
}


@pytest.mark.parametrize("name", SOURCES)
def test_graphs_are_graphs_of_the_library(name: str) -> None:
    graph = tour.script(SOURCES[name])
    for text in (str(graph), str(tour.optimize(graph))):
        if "weft::Fused" not in text:  # which have parameters in the library
            assert str(weft.jit.ir.parse_ir(text)) == f"{text}\n"


@pytest.mark.parametrize("name", sorted(set(SOURCES) - {"update"}))
@pytest.mark.parametrize("n", (0, 1, 2, 5))
def test_programs(name: str, n: int) -> None:
    """Saved, read again and run: the bits of weft's program, on float32 arithmetic."""
    program = tour.load(tour.save(tour.Lowering(tour.optimize(tour.script(SOURCES[name]))).program))
    plain = tour.Lowering(tour.script(SOURCES[name])).program
    x = [0.1, -3.0, 1e-3, 7.5]
    expected = weft.jit.CompilationUnit(SOURCES[name]).f(weft.tensor(x), n).tolist()
    assert program(tour.tensor(x), n).tolist() == plain(tour.tensor(x), n).tolist() == expected


def test_a_group_is_recorded_as_its_operators() -> None:
    program = tour.Lowering(tour.optimize(tour.script(tour.UPDATE))).program
    values = [0.3, -0.2, 1.0]
    grads = []
    for run in (program, weft.jit.CompilationUnit(tour.UPDATE.replace("weft.", "torch.")).update):
        module = tour if run is program else weft
        state = module.tensor(values, requires_grad=True)
        run(state, module.tensor([1.0, 2.0, -1.0]), 4).sum().backward()
        grads.append(weft.tensor(state.grad.tolist()))
    weft.testing.assert_close(*grads)


SAVED = tour.save(tour.Lowering(tour.optimize(tour.script(tour.UPDATE))).program)


@given(
    st.lists(
        st.tuples(st.integers(0, len(SAVED) - 1), st.integers(0, 255)), min_size=1, max_size=3
    ),
    st.integers(0, len(SAVED)),
)
@examples(100)
def test_damaged_programs(changes: list[tuple[int, int]], end: int) -> None:
    """A program, or ValueError."""
    data = bytearray(SAVED)
    for place, byte in changes:
        data[place] = byte
    for damaged in (bytes(data), bytes(data[:end])):
        try:
            assert isinstance(tour.load(damaged), tour.Program)
        except ValueError as error:
            assert str(error).startswith("load: expected a program")


@pytest.mark.parametrize(
    "body, expected",
    [
        ("while n > 0:\n        n = n - 1\n    return x", "an assignment to a name, if, or for"),
        ("i = n\n    for i in range(3):\n        x = x * i\n    return x * i", "that is new"),
        ("for i in range(3):\n        x = x * i\n    return x * i", "a known name"),
        ("if n:\n        x = -x\n    return x", "a bool"),
        ("return x.add(n, n)", r"add: expected .* got \(Tensor, int, int\)"),
        ("x[0] = 1\n    return x", "an assignment to a name"),
        ("return x.__class__", "a known name, a number"),
        ("n = n + 1", "a last statement that returns"),
    ],
)
def test_what_the_language_lacks_is_refused(body: str, expected: str) -> None:
    with pytest.raises(SyntaxError, match=f"script: line [23456]: expected .*{expected}"):
        tour.script(f"def f(x, n: int):\n    {body}")


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(ValueError, match="load: expected a program"):
        tour.load(tour.MAGIC + b"[" * 100_000)
