"""scan and associative_scan: against loops in Python, and against PyTorch."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.autograd import gradcheck, gradgradcheck
from weft.func._scans import associative_scan, scan

#: associative functions of two slices
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "maximum": lambda a, b: a.maximum(b),
    "matmul": lambda a, b: a @ b,
    "affine": lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]),
}


def sample(size: int, seed: int = 0) -> weft.Tensor:
    return weft.tensor(np.random.default_rng(seed).normal(size=(size, 2, 2)))


def prefixes(function: Any, slices: list[Any], reverse: bool) -> list[Any]:
    done = list(itertools.accumulate(slices[::-1] if reverse else slices, function))
    return done[::-1] if reverse else done


@examples(40)
@given(st.integers(1, 12), st.sampled_from(sorted(FUNCTIONS)), st.booleans(), st.integers(-3, 2))
def test_associative_scan(size: int, name: str, reverse: bool, dim: int) -> None:
    function, x = FUNCTIONS[name], sample(size, size).movedim(0, dim)
    slices = list(x.movedim(dim, 0))
    if name == "affine":
        made = associative_scan(function, (x, 2 * x), dim, reverse)
        rows = prefixes(function, [(row, 2 * row) for row in slices], reverse)
        wanted = [weft.stack(list(each)).movedim(0, dim) for each in zip(*rows)]
        got = list(made)
    else:
        got = [associative_scan(function, x, dim, reverse, "generic")]
        wanted = [weft.stack(prefixes(function, slices, reverse)).movedim(0, dim)]
    for a, b in zip(got, wanted):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["mul", "matmul"])
@pytest.mark.parametrize("reverse", [False, True])
def test_gradients(name: str, reverse: bool) -> None:
    x = sample(5).requires_grad_()

    def scanned(x: weft.Tensor) -> weft.Tensor:
        return associative_scan(FUNCTIONS[name], x, 0, reverse)

    assert gradcheck(scanned, (x,)) and gradgradcheck(scanned, (x,))

    def carried(x: weft.Tensor, start: weft.Tensor) -> Any:
        return scan(lambda c, v: (c * v, c.sin() + v), start, x, reverse=reverse)

    assert gradcheck(carried, (x, sample(1)[0].requires_grad_()))


def test_number_of_calls() -> None:
    """Some 2 log2(n), not n."""
    calls: list[int] = []

    def add(a: weft.Tensor, b: weft.Tensor) -> weft.Tensor:
        calls.append(1)
        return a + b

    assert int(associative_scan(add, weft.arange(1000), 0)[-1]) == 499500
    assert len(calls) <= 20


@examples(30)
@given(st.integers(1, 6), st.booleans(), st.integers(0, 2))
def test_scan(size: int, reverse: bool, dim: int) -> None:
    x = sample(size).movedim(0, dim)
    start = {"sum": weft.zeros(2, 2, dtype=weft.float64), "count": weft.tensor(0)}

    def step(carry: Any, row: Any) -> Any:
        following = {"sum": carry["sum"] + row, "count": carry["count"] + 1}
        return following, (carry["sum"] * 2, row.sum())

    last, (doubled, sums) = scan(step, start, x, dim=dim, reverse=reverse)
    carry, results = start, []
    for row in list(x.movedim(dim, 0))[:: -1 if reverse else 1]:
        carry, result = step(carry, row)
        results.append(result)
    results = results[:: -1 if reverse else 1]
    assert int(last["count"]) == size and weft.equal(last["sum"], carry["sum"])
    assert weft.equal(doubled.movedim(dim, 0), weft.stack([each[0] for each in results]))
    assert weft.equal(sums, weft.stack([each[1] for each in results]))


def test_under_vmap() -> None:
    x = sample(4)
    got = weft.vmap(lambda row: associative_scan(FUNCTIONS["mul"], row, 0))(x)
    assert weft.allclose(got, x.cumprod(1))
    got = weft.vmap(lambda row: scan(lambda c, v: (c + v, c * v), row[0], row)[0])(x)
    assert weft.allclose(got, x[:, 0] + x.sum(1))


def _errors(lib: Any, scan: Any, associative_scan: Any) -> dict[str, tuple[Any, Any]]:
    x = lib.ones(3, 2)

    def add(a: Any, b: Any) -> Any:
        return a + b

    return {
        "no function": (ValueError, lambda: associative_scan(3, x, 0, combine_mode="generic")),
        "no mode": (ValueError, lambda: associative_scan(add, x, 0, combine_mode="fast")),
        "no reverse": (RuntimeError, lambda: associative_scan(add, x, 0, 1, "generic")),
        "nothing along dim": (
            ValueError,
            lambda: associative_scan(add, x[:0], 0, combine_mode="generic"),
        ),
        "a dim too far": (IndexError, lambda: associative_scan(add, x, 2, combine_mode="generic")),
        "no init": (RuntimeError, lambda: scan(lambda c, v: (c, v), [], x)),
        "init of numbers": (RuntimeError, lambda: scan(lambda c, v: (c, v), 0, x)),
        "no slices": (RuntimeError, lambda: scan(lambda c, v: (c, v), x[0], x[:0])),
        "scan of no function": (RuntimeError, lambda: scan(None, x[0], x)),
    }


def _names(lib: str) -> Any:
    if lib == "weft":
        return weft, scan, associative_scan
    torch = pytest.importorskip("torch")
    from torch._higher_order_ops.associative_scan import associative_scan as theirs_associative
    from torch._higher_order_ops.scan import scan as theirs

    return torch, theirs, theirs_associative


@pytest.mark.parametrize("lib", ["weft", pytest.param("torch", marks=pytest.mark.parity)])
@pytest.mark.parametrize("name", list(_errors(weft, scan, associative_scan)))
def test_errors(lib: str, name: str) -> None:
    kind, call = _errors(*_names(lib))[name]
    with pytest.raises(kind):
        call()


def test_own_errors() -> None:
    x = weft.ones(3)
    with pytest.raises(RuntimeError, match=r"scan: expected a carry like init, \[\(\(\), torch.fl"):
        scan(lambda c, v: (c.long(), v), x[0], x)
    with pytest.raises(RuntimeError, match="scan: expected a carry and a result"):
        scan(lambda c, v: c, x[0], x)
    with pytest.raises(RuntimeError, match="associative_scan: expected results like xs"):
        associative_scan(lambda a, b: (a, b), x, 0)
    with pytest.raises(ValueError, match=r"expected one size above 0 along dim 0, got \[3, 2\]"):
        associative_scan(lambda a, b: a, (x, x[:2]), 0)


@pytest.mark.parity
@pytest.mark.parametrize("reverse", [False, True])
def test_parity(reverse: bool) -> None:
    """Values and gradients."""
    found = []
    for lib in ("weft", "torch"):
        t, scan, associative_scan = _names(lib)
        x = t.tensor(sample(5).numpy(), requires_grad=True)
        prefix = associative_scan(FUNCTIONS["mul"], x, 1, reverse, "generic")
        start = t.ones(2, 2, dtype=t.float64, requires_grad=True)
        carry, rows = scan(lambda c, v: (c + v, c * v), start, x, reverse=reverse)
        (prefix.sum() + (rows * rows).sum() + carry.sum()).backward()
        found.append([each.detach().numpy() for each in (prefix, carry, rows, x.grad, start.grad)])
    for got, wanted in zip(*found):
        np.testing.assert_allclose(got, wanted, rtol=1e-9)


def test_where_programs_import_them() -> None:
    """Each in a module of its name, whose package has the function."""
    program = (
        "import weft.compat.torch, torch\n"
        "for name in 'associative_scan', 'cond', 'map', 'scan', 'while_loop':\n"
        "    space = {}\n"
        "    exec(f'from torch._higher_order_ops.{name} import {name} as a', space)\n"
        "    exec(f'from torch._higher_order_ops import {name} as b', space)\n"
        "    assert space['a'] is space['b'] and callable(space['a']), name\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
