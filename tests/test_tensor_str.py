"""Printing: PyTorch's notation, word for word."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    weft.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: weft.tensor([1.0, 2.5]), "tensor([1.0000, 2.5000])"),
        (lambda: weft.tensor([1.0, 2.0]), "tensor([1., 2.])"),
        (lambda: weft.tensor(3.14159), "tensor(3.1416)"),
        (lambda: weft.tensor(3), "tensor(3)"),
        (lambda: weft.tensor([True, False]), "tensor([ True, False])"),
        (lambda: weft.tensor([]), "tensor([])"),
        (lambda: weft.tensor([], dtype=weft.int64), "tensor([], dtype=torch.int64)"),
        (lambda: weft.empty(0, 3), "tensor([], size=(0, 3))"),
        (lambda: weft.tensor([1, -20]), "tensor([  1, -20])"),
        (lambda: weft.tensor([1e10, 1.0]), "tensor([1.0000e+10, 1.0000e+00])"),
        (lambda: weft.tensor([1e-5]), "tensor([1.0000e-05])"),
        (lambda: weft.tensor([float("nan"), 1.0]), "tensor([nan, 1.])"),
        (lambda: weft.tensor([float("inf"), -1.5]), "tensor([    inf, -1.5000])"),
        (lambda: weft.tensor([1 + 2j, -1j]), "tensor([1.+2.j, -0.-1.j])"),
        (lambda: weft.ones(2, dtype=weft.float64), "tensor([1., 1.], dtype=torch.float64)"),
        (lambda: weft.ones(2, dtype=weft.int8), "tensor([1, 1], dtype=torch.int8)"),
        (lambda: weft.ones(2, requires_grad=True), "tensor([1., 1.], requires_grad=True)"),
        (lambda: weft.tensor([[1, 2], [3, 4]]), "tensor([[1, 2],\n        [3, 4]])"),
        (
            lambda: weft.ones(2, requires_grad=True) + weft.ones(2),
            "tensor([2., 2.], grad_fn=<AddBackward0>)",
        ),
        (
            lambda: weft.nn.Parameter(weft.ones(2)),
            "Parameter containing:\ntensor([1., 1.], requires_grad=True)",
        ),
        (
            lambda: weft.arange(2000).reshape(2, 1000),
            "tensor([[   0,    1,    2,  ...,  997,  998,  999],\n"
            "        [1000, 1001, 1002,  ..., 1997, 1998, 1999]])",
        ),
    ],
)
def test_text(make: Any, text: str) -> None:
    assert repr(make()) == text
    assert str(make()) == text


def test_options() -> None:
    x = weft.tensor([1.23456789, 1000.5])
    weft.set_printoptions(precision=2)
    assert repr(x) == "tensor([   1.23, 1000.50])"
    weft.set_printoptions(sci_mode=True)
    assert "e+00" in repr(x)
    weft.set_printoptions(profile="full")
    assert "..." not in repr(weft.zeros(2000))
    with pytest.raises(ValueError):
        weft.set_printoptions(profile="other")


def random_array(rng: random.Random) -> np.ndarray[Any, Any]:
    shape = tuple(rng.choice([0, 1, 2, 3, 7, 12]) for _ in range(rng.randint(0, 4)))
    kind = rng.choice(
        ["float32", "float64", "float16", "int64", "int32", "bool", "complex64", "uint8"]
    )
    values = np.random.default_rng(rng.randint(0, 10**9)).standard_normal((*shape, 2))
    values *= 10.0 ** rng.choice([-6, -3, 0, 0, 0, 2, 4, 9])
    if rng.random() < 0.3:
        values = np.round(values)
    if rng.random() < 0.2:
        values[values > 0] = rng.choice([np.inf, np.nan, 0.0])
    if kind == "complex64":
        with np.errstate(all="ignore"):
            return (values[..., 0] + 1j * values[..., 1]).astype(kind)
    with np.errstate(all="ignore"):
        limit = 60000 if kind == "float16" else 1e30
        if kind in ("int64", "int32", "uint8"):
            values, limit = np.nan_to_num(values), 100
        return np.clip(values[..., 0], -limit if kind != "uint8" else 0, limit).astype(kind)


@pytest.mark.parity
@pytest.mark.parametrize("seed", range(150))
def test_same_as_torch(seed: int) -> None:
    torch = pytest.importorskip("torch")
    rng = random.Random(seed)
    array = random_array(rng)
    if rng.random() < 0.1:
        array = np.tile(array, (40, *([1] * (array.ndim - 1)))) if array.ndim else array
    options = {}
    if rng.random() < 0.3:
        options = {
            "precision": rng.choice([1, 2, 6]),
            "linewidth": rng.choice([40, 120]),
            "edgeitems": 2,
        }
    if rng.random() < 0.15:
        options["threshold"] = 10
    if rng.random() < 0.1:
        options["sci_mode"] = rng.random() < 0.5
    try:
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**options)
        weft.set_printoptions(**options)
        assert repr(weft.tensor(array)) == repr(torch.tensor(array))
    finally:
        torch.set_printoptions(profile="default")


def test_options_of_a_block() -> None:
    from weft.compat.overlay import _tensor_str

    before = _tensor_str.get_printoptions()
    assert before["precision"] == 4 and before["sci_mode"] is None
    with pytest.raises(KeyError), _tensor_str.printoptions(precision=1, profile="short"):
        assert str(weft.tensor([0.125])) == "tensor([0.1])"
        assert _tensor_str.get_printoptions()["edgeitems"] == 2
        raise KeyError
    assert _tensor_str.get_printoptions() == before
