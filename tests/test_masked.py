"""weft.masked beside NumPy's masked arrays, and where a mask keeps nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import masked

X = np.array([[3.0, -1.0, 2.5, 0.5], [4.0, 1.0, -2.0, 7.0], [0.5, 6.0, 1.5, -3.0]])
KEPT = np.array([[True, False, True, True], [False, True, True, False], [True, True, True, False]])
ARRAY = np.ma.array(X, mask=~KEPT)
#: by function: its other arguments, and what NumPy gives along dimension 1
CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "sum": ({"dim": 1}, ARRAY.sum(1)),
    "prod": ({"dim": 1}, ARRAY.prod(1)),
    "amax": ({"dim": 1}, ARRAY.max(1)),
    "amin": ({"dim": 1}, ARRAY.min(1)),
    "argmax": ({"dim": 1}, ARRAY.argmax(1)),
    "argmin": ({"dim": 1}, ARRAY.argmin(1)),
    "mean": ({"dim": 1}, ARRAY.mean(1)),
    "var": ({"dim": 1}, ARRAY.var(1, ddof=1)),
    "std": ({"dim": 1, "unbiased": False}, ARRAY.std(1)),
    "norm": ({"dim": 1}, (ARRAY**2).sum(1) ** 0.5),
    "logsumexp": ({"dim": 1}, np.log(np.exp(ARRAY).sum(1))),
    "median": (
        {"dim": 1},
        [np.sort(row[keep])[(keep.sum() - 1) // 2] for row, keep in zip(X, KEPT)],
    ),
    "cumsum": ({"dim": 1}, ARRAY.filled(0).cumsum(1)),
    "cumprod": ({"dim": 1}, ARRAY.filled(1).cumprod(1)),
    "softmax": ({"dim": 1}, (np.exp(ARRAY) / np.exp(ARRAY).sum(1)[:, None]).filled(0)),
    "softmin": ({"dim": 1}, (np.exp(-ARRAY) / np.exp(-ARRAY).sum(1)[:, None]).filled(0)),
    "normalize": ({"ord": 1, "dim": 1}, (ARRAY / abs(ARRAY).sum(1)[:, None]).filled(0)),
}


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_masked_arrays(name: str) -> None:
    options, expected = CASES[name]
    x, mask = weft.tensor(X), weft.tensor(KEPT)
    got = getattr(masked, name)(x, mask=mask, **options)
    np.testing.assert_allclose(got.numpy(), np.asarray(expected), rtol=1e-12)
    free = getattr(masked, name)(x, mask=weft.ones(4, dtype=weft.bool), **options)
    np.testing.assert_allclose(
        getattr(masked, name)(x, **options).numpy(), free.numpy(), rtol=1e-12
    )


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("arg")])
def test_what_is_masked_out_has_no_gradient(name: str) -> None:
    options, _ = CASES[name]
    x = weft.tensor(np.where(KEPT, X, np.inf), requires_grad=True)
    getattr(masked, name)(x, mask=weft.tensor(KEPT), **options).sum().backward()
    assert x.grad.isfinite().all() and not x.grad[~weft.tensor(KEPT)].any()


def test_nothing_is_kept() -> None:
    x, none = weft.tensor([1.0, 2.0]), weft.tensor([False])
    assert masked.sum(x, mask=none).item() == 0 and masked.prod(x, mask=none).item() == 1
    assert masked.amax(x, mask=none).item() == -weft.inf
    assert masked.amin(x.int(), mask=none).item() == weft.iinfo(weft.int32).max
    assert masked.mean(x, mask=none).isnan() and masked.softmax(x, 0, mask=none).isnan().all()
    assert masked.norm(x, -weft.inf, mask=none).item() == weft.inf


def test_dtypes_are_pytorchs() -> None:
    x = weft.tensor([1, 2], dtype=weft.int32)
    assert masked.sum(x).dtype == weft.int64 and masked.cumsum(x, 0).dtype == weft.int32
    assert masked.argmax(weft.ones(2)).dtype == weft.float32
    assert (
        masked.var(x).dtype == weft.float32
        and masked.sum(x, dtype=weft.float64).dtype == weft.float64
    )
    with pytest.raises(ValueError, match="mean: expected a floating or complex dtype"):
        masked.mean(x)


def test_refuses() -> None:
    x = weft.ones(2)
    with pytest.raises(TypeError, match="sum: expected mask as a tensor, got list"):
        masked.sum(x, mask=[True, False])
    with pytest.raises(IndexError, match="sum: expected a mask of 1 dims at most, got 2"):
        masked.sum(x, mask=weft.ones(2, 2))
    with pytest.raises(NotImplementedError, match="amax: expected no mask for bools, got one"):
        masked.amax(x.bool(), mask=x)
    with pytest.raises(
        ValueError, match="median: expected a mask that keeps something of each row"
    ):
        masked.median(x.int(), mask=weft.zeros(2))
    with pytest.raises(RuntimeError, match="var: expected unbiased or correction, got both"):
        masked.var(x, None, True, correction=1)
