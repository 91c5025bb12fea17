"""Numbers that do not fit a dtype are refused: integers do not wrap, floats do not become infinite."""

from __future__ import annotations

from typing import Any

import pytest
from libraries import both

import weft
from weft.nn import functional as F

MASK = weft.tensor([True, False])
FIRST = weft.tensor([0])


def zeros(dtype: str) -> Any:
    return weft.zeros(2, dtype=getattr(weft, dtype))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: zeros("uint8").masked_fill(MASK, 300), "masked_fill: .* fits in uint8, got 300"),
        (lambda: zeros("uint8").masked_fill_(MASK, 300), "masked_fill: .* fits in uint8, got 300"),
        (lambda: zeros("int8").masked_fill(MASK, -129), "masked_fill: .* fits in int8, got -129"),
        (
            lambda: zeros("uint8").masked_fill(MASK, weft.tensor(300)),
            "masked_fill: .* fits in uint8, got 300",
        ),
        (lambda: zeros("uint8").index_fill(0, FIRST, 300), "index_fill: .* fits in uint8, got 300"),
        (
            lambda: zeros("int16").index_fill_(0, FIRST, weft.tensor(40000)),
            "index_fill: .* fits in int16, got 40000",
        ),
        (lambda: F.hardtanh(zeros("uint8")), "hardtanh: expected limits of at least 0 for uint8"),
        (lambda: F.hardtanh(zeros("int8"), -300, 3), "hardtanh: .* fits in int8, got -300"),
        (lambda: MASK**-1, "pow: expected an exponent >= 0 for an integer tensor, got -1"),
    ],
)
def test_values_beyond_the_dtype_are_refused(call: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        call()


def test_values_that_fit_pass() -> None:
    assert zeros("uint8").masked_fill(MASK, -1).tolist() == [255, 0]  # as PyTorch's
    assert zeros("int8").masked_fill(MASK, -128).tolist() == [-128, 0]
    assert zeros("bool").masked_fill(MASK, 2).tolist() == [True, False]
    assert zeros("float32").masked_fill(MASK, float("inf")).tolist() == [float("inf"), 0]
    assert zeros("int64").index_fill(0, FIRST, 2**40).tolist() == [2**40, 0]
    assert F.relu6(weft.tensor([1, 200], dtype=weft.uint8)).tolist() == [1, 6]
    value = weft.tensor(2.0, requires_grad=True)
    zeros("float32").masked_fill(MASK, value).sum().backward()
    assert value.grad.item() == 1


#: calls with a number that is written into a tensor, or chosen beside one
WRITES: dict[str, Any] = {
    "masked_fill": lambda lib, x, n: x.masked_fill(lib.tensor([True, False]), n),
    "index_fill": lambda lib, x, n: x.index_fill(0, lib.tensor([0]), n),
    "scatter": lambda lib, x, n: x.scatter(0, lib.tensor([0]), n),
    "pad": lambda lib, x, n: lib.nn.functional.pad(x, (1, 0), value=n),
    "threshold": lambda lib, x, n: lib.nn.functional.threshold(x, 1, n),
    "clamp": lambda lib, x, n: x.clamp(n),
    "clamp_max": lambda lib, x, n: x.clamp(max=n),
    "where": lambda lib, x, n: lib.where(x == 0, n, x),
    "full": lambda lib, x, n: lib.full((2,), n, dtype=x.dtype),
    "fill_": lambda lib, x, n: x.fill_(n),
    "assignment": lambda lib, x, n: x.__setitem__(0, n),
}


@both
@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(("dtype", "number"), [("int8", 300), ("int32", 2**40), ("float32", 1e39)])
def test_numbers_beyond_the_dtype_are_refused(lib: Any, name: str, dtype: str, number: Any) -> None:
    x = lib.zeros(2, dtype=getattr(lib, dtype))
    with pytest.raises(RuntimeError):
        WRITES[name](lib, x, number)
    assert not x.any()


@both
@pytest.mark.parametrize("name", WRITES)
def test_numbers_beyond_float16(lib: Any, name: str) -> None:
    """The mask of attention: -1e9 is infinite in float16. A choice lets it be."""
    x = lib.zeros(2, dtype=lib.float16)
    if name in ("where", "assignment"):
        result = WRITES[name](lib, x, -1e9)
        assert (x if result is None else result)[0].item() == float("-inf")
    else:
        with pytest.raises(RuntimeError):
            WRITES[name](lib, x, -1e9)
    WRITES[name](lib, x, float("inf"))
    assert lib.full((1,), 1e5, dtype=lib.float16).item() == float("inf")


@both
def test_bounds_of_integers_lose_their_fractions(lib: Any) -> None:
    assert lib.linspace(4.3, -3, 8, dtype=lib.int64).tolist() == [4, 3, 2, 1, 0, -1, -2, -3]
    assert lib.linspace(0, 2.9, 5, dtype=lib.uint8).tolist() == [0, 0, 1, 1, 2]
    assert lib.logspace(0, 1.2, 2, dtype=lib.int32).tolist() == [1, 10]
    assert lib.logspace(1.9, 2.9, 1, dtype=lib.int32).tolist() == [79]
    found = lib.logspace(0, 2 + 1j, 3)
    assert found.dtype == lib.complex64
    assert abs(found[2].item() - 10 ** (2 + 1j)) < 1e-3
