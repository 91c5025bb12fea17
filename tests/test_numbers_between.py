"""Numbers before or between tensors, the order from before keywords, in both libraries."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from libraries import both

import weft

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # one a process: see below

# the old call, and the same with keywords
Calls = tuple[Callable[..., Any], Callable[..., Any]]
SUMS: dict[str, Calls] = {
    "add": (lambda lib, x, y: lib.add(x, 2, y), lambda lib, x, y: lib.add(x, y, alpha=2)),
    "sub": (lambda lib, x, y: lib.sub(x, 2.5, y), lambda lib, x, y: lib.sub(x, y, alpha=2.5)),
    "add_other": (
        lambda lib, x, y: lib.add(x, 2, other=y), lambda lib, x, y: lib.add(x, y, alpha=2),
    ),
    "add_tensor": (
        lambda lib, x, y: x.add(lib.tensor(2.0), y), lambda lib, x, y: lib.add(x, y, alpha=2),
    ),
    "add_out": (
        lambda lib, x, y: lib.add(x, 2, y, out=lib.empty(2, 2)),
        lambda lib, x, y: lib.add(x, y, alpha=2),
    ),
    "method": (lambda lib, x, y: x.sub(2, y), lambda lib, x, y: x.sub(y, alpha=2)),
    "add_": (lambda lib, x, y: x.clone().add_(-2, y), lambda lib, x, y: x.add(y, alpha=-2)),
    "sub_": (lambda lib, x, y: x.clone().sub_(2, y), lambda lib, x, y: x.sub(y, alpha=2)),
    "addcmul": (
        lambda lib, x, y: lib.addcmul(x, 0.5, y, y), lambda lib, x, y: x.addcmul(y, y, value=0.5),
    ),
    "addcmul_name": (
        lambda lib, x, y: lib.addcmul(x, 0.5, y, tensor2=y),
        lambda lib, x, y: x.addcmul(y, y, value=0.5),
    ),
    "addcmul_": (
        lambda lib, x, y: x.clone().addcmul_(0.5, y, y),
        lambda lib, x, y: x.addcmul(y, y, value=0.5),
    ),
    "addcdiv": (
        lambda lib, x, y: x.addcdiv(-0.5, y, x), lambda lib, x, y: x.addcdiv(y, x, value=-0.5),
    ),
    "addcdiv_": (
        lambda lib, x, y: x.clone().addcdiv_(-0.5, y, x),
        lambda lib, x, y: x.addcdiv(y, x, value=-0.5),
    ),
}  # fmt: skip

PRODUCTS = {
    "addmm": lambda x, y: (x, y, x),
    "addmv": lambda x, y: (x[0], y, x[1]),
    "addr": lambda x, y: (x, y[0], x[1]),
    "addbmm": lambda x, y: (x, y[None], x[None]),
    "baddbmm": lambda x, y: (x[None], y[None], x[None]),
}


def pair(lib: Any) -> Any:
    return lib.tensor([[1.0, 2], [3, 4]]), lib.tensor([[5.0, 6], [7, 8]])


@both
@pytest.mark.parametrize("name", SUMS)
def test_sums(lib: Any, name: str) -> None:
    old, new = SUMS[name]
    assert old(lib, *pair(lib)).tolist() == new(lib, *pair(lib)).tolist()


@both
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(lib: Any, name: str) -> None:
    """beta stands before the first tensor of a function and after that of a method, alpha next."""
    first, left, right = PRODUCTS[name](*pair(lib))
    function = getattr(lib, name)
    scaled = function(first, left, right, beta=2).tolist()
    both_scaled = function(first, left, right, beta=2, alpha=3).tolist()
    assert function(2, first, left, right).tolist() == scaled
    assert function(2, first, 3, left, right).tolist() == both_scaled
    assert function(2, first, 3, left, right, out=lib.empty_like(first)).tolist() == both_scaled
    for method in (name, f"{name}_"):
        assert getattr(first.clone(), method)(2, left, right).tolist() == scaled
        assert getattr(first.clone(), method)(2, 3, left, right).tolist() == both_scaled


@both
def test_gradients_and_subclasses(lib: Any) -> None:
    class Named(lib.Tensor):  # type: ignore[misc, name-defined]
        pass

    x, y = (tensor.requires_grad_() for tensor in pair(lib))
    x.add(2, y).addcmul(0.5, x, y).sum().backward()
    assert x.grad.tolist() == (1 + 0.5 * y).tolist() and y.grad.tolist() == (2 + 0.5 * x).tolist()
    kept = lib.ones(2).as_subclass(Named).add(2, lib.ones(2).as_subclass(Named))
    assert type(kept) is Named and kept.tolist() == [3, 3]
    assert lib.ones(2, dtype=lib.int64).add_(2, lib.ones(2, dtype=lib.int64)).tolist() == [3, 3]


WRONG: dict[str, Callable[..., Any]] = {
    "number last": lambda lib, x, y: x.add(y, 2),
    "twice": lambda lib, x, y: x.add(2, y, alpha=3),
    "numbers last": lambda lib, x, y: lib.addmm(x, y, y, 2, 3),
    "too many": lambda lib, x, y: lib.addmm(2, 3, 4, x, y, y),
    "numbers together": lambda lib, x, y: lib.addmm(2, 3, x, y, y),
    "not between": lambda lib, x, y: x.addmm(2, y, 3, y),
    "text": lambda lib, x, y: x.add("a", y),
    "no tensor": lambda lib, x, y: lib.addcmul(2, 3, y, y),
}


@both
@pytest.mark.parametrize("name", WRONG)
def test_wrong(lib: Any, name: str) -> None:
    with pytest.raises(TypeError):
        WRONG[name](lib, *pair(lib))


@pytest.mark.filterwarnings("default")
def test_a_process_is_warned_once() -> None:
    program = """
        import warnings, weft
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            weft.ones(1).add(weft.ones(1), alpha=2)
            assert not caught
            weft.ones(1).addcmul_(2, weft.ones(1), weft.ones(1))
            weft.ones(1).add(2, weft.ones(1))
        text = "addcmul_: numbers before or between the tensors are deprecated: give 'value' by"
        assert [str(warning.message)[: len(text)] for warning in caught] == [text]
        assert caught[0].category is UserWarning
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


def test_traces_record_keywords() -> None:
    traced = weft.jit.trace(lambda x, y: x.addcmul(0.5, x, y), (weft.ones(2), weft.ones(2)))
    assert traced(weft.full((2,), 2.0), weft.ones(2)).tolist() == [3, 3]
