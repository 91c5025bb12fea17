"""Numbers that do not fit an integer dtype are refused, not wrapped."""

from __future__ import annotations

from typing import Any

import pytest

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
