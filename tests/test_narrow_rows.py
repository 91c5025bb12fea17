"""Reductions of a dim in front of few columns: blocks of them span several places along the row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft

# Exact in float64 for small integers, and so in float32 where sums stay below 2^24.
REDUCTIONS: dict[str, Any] = {
    "sum": lambda x, a: x.sum(axis=a),
    "amax": lambda x, a: x.max(axis=a),
    "prod": lambda x, a: np.sign(x).prod(axis=a),
    "count_nonzero": lambda x, a: np.count_nonzero(x, axis=a),
}


@st.composite
def blocks(draw: st.DrawFn) -> tuple[Any, bool]:
    """Integers of shape (blocks, more, length, columns), and whether the blocks are turned."""
    sizes = (
        draw(st.integers(1, 4)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 1100)),
        draw(st.integers(1, 40)),
    )
    seed = draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed).integers(-9, 10, sizes), draw(st.booleans())


@settings(max_examples=60, deadline=None)
@given(given=blocks(), name=st.sampled_from(sorted(REDUCTIONS)), dtype=st.sampled_from("fdq"))
def test_blocks_of_few_columns(given: tuple[Any, bool], name: str, dtype: str) -> None:
    values, turned = given
    values = np.sign(values) if name == "prod" else values
    array = values.astype(dtype)
    x = weft.from_numpy(array)
    if turned:
        x, array = x.transpose(0, 1), array.swapaxes(0, 1)
    np.testing.assert_array_equal(getattr(x, name)(-2).numpy(), REDUCTIONS[name](array, -2))


@pytest.mark.parametrize("name", ["softmax", "logsumexp", "var"])
@pytest.mark.parametrize("sizes", [(3, 700, 5), (2, 3, 400, 4), (5, 130, 64), (4, 1025, 2)])
def test_several_passes_over_blocks(name: str, sizes: tuple[int, ...]) -> None:
    """Against the same rows laid one after another."""
    x = weft.from_numpy(np.random.default_rng(0).standard_normal(sizes))
    result = getattr(x, name)(-2)
    rows = getattr(x.transpose(-1, -2).contiguous(), name)(-1)
    expected = rows.transpose(-1, -2) if name == "softmax" else rows
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-12)
