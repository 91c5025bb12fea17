"""Cases of running values, order statistics, special functions, and reductions over NaN."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import weft

from .spec import FLOATS, WIDE_FLOATS, A, Fails, S, case, distinct, nonzero, normal, positive, unit

_M = A((3, 4))
_ONE = [S(_M, 0), S(A((2, 3, 5)), -1), S(A((7,)), 0), S(A(()), 0), S(A((0, 3)), 1)]
_DIM = "expected dim in [-2, 1], got 2"


def _with_zeros(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return nonzero(rng, shape) * (rng.random(shape) < 0.7)


case("cumprod", [*_ONE[:4], S(A((6,), _with_zeros), 0), S(A((3, 5), _with_zeros), 1)], lambda x, d: np.cumprod(x, d).reshape(x.shape),
     domain=nonzero, tolerance=8, fails=(Fails(S(A((2, 3)), 2), IndexError, f"cumprod: {_DIM}"),))  # fmt: skip


def _running(function: Any) -> Any:
    def run(x: np.ndarray, dim: int) -> Any:
        if x.ndim == 0 or x.size == 0:
            return x, np.zeros(x.shape, "int64")
        values = function.accumulate(x, dim)
        place = np.arange(x.shape[dim]).reshape([-1 if d == dim % x.ndim else 1 for d in range(x.ndim)])
        return values, np.maximum.accumulate(np.where(x == values, place, 0), dim)

    return run


case("cummax", _ONE, _running(np.maximum), domain=distinct, dtypes=(*WIDE_FLOATS, "int64"))
case("cummin", _ONE, _running(np.minimum), domain=distinct, dtypes=(*WIDE_FLOATS, "int64"))
case("logcumsumexp", _ONE[:4], lambda x, d: np.logaddexp.accumulate(x, d) if x.ndim else x, tolerance=8)


def _diff(x: np.ndarray, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> np.ndarray:
    ends = {"prepend": prepend, "append": append}
    return np.diff(x, n, dim, **{k: v for k, v in ends.items() if v is not None})


case("diff", [S(_M), S(_M, 2, 0), S(_M, 1, 1, A((3, 2)), A((3, 1))), S(A((1,)))], _diff, fails=(
    Fails(S(A(())), RuntimeError, "diff: expected at least 1 dim, got a 0-d tensor"),))  # fmt: skip


def _holes(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.where(rng.random(shape) < 0.3, np.nan, normal(rng, shape))


def _over(function: Any) -> Any:
    def run(x: np.ndarray, dim: Any = None, keepdim: bool = False) -> np.ndarray:
        return function(x, axis=None if dim is None else tuple(dim), keepdims=keepdim)

    return run


case("nansum", [S(_M), S(A((3, 40), _holes), [1], True), S(A((4, 30), _holes))], _over(np.nansum), tolerance=8)
case("nanmean", [S(_M), S(A((3, 40), _holes), [1], True), S(A((4, 30), _holes))], _over(np.nanmean), tolerance=8)


def _spread(root: bool) -> Any:
    def run(x: np.ndarray, *args: Any, unbiased: bool = True, correction: float | None = None, keepdim: bool = False) -> Any:
        dim = tuple(args[0]) if args else None
        ddof = (int(unbiased) if len(args) < 2 else int(args[1])) if correction is None else correction
        return (np.std if root else np.var)(x, axis=dim, ddof=ddof, keepdims=keepdim), np.mean(x, axis=dim, keepdims=keepdim)

    return run


for _name, _root in (("var_mean", False), ("std_mean", True)):
    case(_name, [S(_M), S(_M, unbiased=False)], _spread(_root), tolerance=8)
    case(f"{_name}.dim", [S(_M, [0]), S(_M, [1], False)], _spread(_root), tolerance=8)
    case(f"{_name}.correction", [S(_M, [1], correction=0), S(_M, correction=2, keepdim=True)], _spread(_root), tolerance=8)


def _aminmax(x: np.ndarray, *, dim: int | None = None, keepdim: bool = False) -> Any:
    return np.min(x, dim, keepdims=keepdim), np.max(x, dim, keepdims=keepdim)


case("aminmax", [S(_M), S(_M, dim=1), S(_M, dim=0, keepdim=True)], _aminmax, domain=distinct)


def _kth(x: np.ndarray, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    index = np.expand_dims(np.take(np.argsort(x, dim, kind="stable"), k - 1, dim), dim)
    values = np.take_along_axis(x, index, dim)
    return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))


def _median_of_nothing(function: Any) -> None:
    assert math.isnan(function(weft.empty(0, 3)))
    text = r"median: expected a non-empty row, got shape \(0, 3\)"
    with pytest.raises(RuntimeError, match=text):
        function(weft.empty(0, 3, dtype=weft.int64))


def _median(x: np.ndarray, dim: int | None = None, keepdim: bool = False) -> Any:
    if dim is None:
        return np.sort(x.ravel())[(x.size - 1) // 2]
    return _kth(x, (x.shape[dim] + 1) // 2, dim, keepdim)


for _name in ("median", "nanmedian"):
    case(_name, [S(_M), S(A((7,))), S(A(()))], _median, domain=distinct, dtypes=(*WIDE_FLOATS, "int64"), check=_median_of_nothing)
    case(f"{_name}.dim", [S(_M, 0), S(_M, 1, True), S(A((2, 5, 3)), -2)], _median, domain=distinct, dtypes=(*FLOATS, "int64"),
         fails=(Fails(S(A((2, 0)), 1), IndexError, f"{_name}: expected a non-empty row, got shape (2, 0)"),))  # fmt: skip
case("kthvalue", [S(_M, 2), S(_M, 1, 0, True), S(A((5,)), 5)], _kth, domain=distinct,
     fails=(Fails(S(_M, 5), RuntimeError, "kthvalue: expected k in [1, 4], got 5"),))  # fmt: skip


def _few(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(0, 3, shape) / 3


def _mode(x: np.ndarray, dim: int = -1, keepdim: bool = False) -> Any:
    rows = np.moveaxis(x, dim, -1)
    values, places = np.empty(rows.shape[:-1], x.dtype), np.empty(rows.shape[:-1], "int64")
    for at in np.ndindex(rows.shape[:-1]):
        found, counts = np.unique(rows[at], return_counts=True)
        values[at] = found[np.argmax(counts)]
        places[at] = np.flatnonzero(rows[at] == values[at])[-1]
    return (np.expand_dims(values, dim), np.expand_dims(places, dim)) if keepdim else (values, places)


case("mode", [S(A((3, 9))), S(A((8, 3)), 0, True)], _mode, domain=_few, dtypes=(*FLOATS, "int64"), grad=False)


# ---- special functions ----
def _by_mpmath(name: str, *first: Any) -> Any:
    def run(*args: Any) -> np.ndarray:
        import mpmath

        function = getattr(mpmath, name)
        x = np.asarray(args[-1])
        values = [float(mpmath.re(function(*args[:-1], *first, mpmath.mpf(float(v))))) for v in x.ravel()]
        return np.array(values).reshape(x.shape)

    return run


_SPREAD = [S(_M), S(A(())), S(A((0, 3))), S(A((17,)))]
_BELOW = S(A((40,), lambda rng, shape: -rng.uniform(0.1, 0.9, shape) - rng.integers(0, 5, shape)))
case("lgamma", [*_SPREAD, S(A((40,), lambda rng, shape: rng.uniform(0.1, 60, shape)))], np.vectorize(math.lgamma, otypes=["float64"]),
     domain=positive, tolerance=8)  # fmt: skip
case("digamma", [*_SPREAD, _BELOW], _by_mpmath("digamma"), domain=positive, tolerance=30)
case("polygamma", [S(1, _M), S(2, _M), S(4, A((7,))), S(0, A((7,)))], _by_mpmath("polygamma"), domain=positive, tolerance=30,
     parity=False)  # PyTorch's is less exact  # fmt: skip
case("erfinv", [*_SPREAD, S(A((50,), lambda rng, shape: rng.uniform(-1, 1, shape) * 0.999))],
     np.vectorize(lambda y: NormalDist().inv_cdf((float(y) + 1) / 2) / math.sqrt(2), otypes=["float64"]), domain=unit, tolerance=300)  # fmt: skip


def _mvlgamma(x: np.ndarray, p: int) -> np.ndarray:
    steps = [np.vectorize(math.lgamma, otypes=["float64"])(x - i / 2) for i in range(p)]
    return np.asarray(sum(steps) + p * (p - 1) / 4 * math.log(math.pi))


_ABOVE = A((3, 4), lambda rng, shape: rng.uniform(1.1, 9, shape))
case("mvlgamma", [S(_ABOVE, 1), S(_ABOVE, 3)], _mvlgamma, tolerance=20,
     fails=(Fails(S(_ABOVE, 0), RuntimeError, "mvlgamma: expected p >= 1, got 0"),))  # fmt: skip
case("i0", [*_SPREAD, S(A((30,), lambda rng, shape: rng.uniform(-60, 60, shape)))], _by_mpmath("besseli", 0), tolerance=8)
case("special_i1", [*_SPREAD, S(A((30,), lambda rng, shape: rng.uniform(-60, 60, shape)))], _by_mpmath("besseli", 1), tolerance=8)
