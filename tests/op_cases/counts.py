"""Cases of searching and counting."""

from __future__ import annotations

from typing import Any

import numpy as np

from .spec import FLOATS, A, Fails, I, S, case, distinct

_SORTED = A((9,), lambda rng, shape: np.sort(distinct(rng, shape), -1))
_ROWS = A((3, 7), lambda rng, shape: np.sort(distinct(rng, shape), -1))


def _search(sequence: np.ndarray, values: Any, *, right: bool = False, side: str | None = None, **_: Any) -> Any:
    where = side or ("right" if right else "left")
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, where)
    return np.stack([np.searchsorted(row, value, where) for row, value in zip(sequence, values)])


_LONG = (*FLOATS, "int64")
case("searchsorted.Tensor", [S(_SORTED, A((3, 4))), S(_ROWS, A((3, 4)), right=True), S(_SORTED, A(()), side="right")], _search, dtypes=_LONG,
     fails=(Fails(S(_SORTED, A((2,)), side="up"), RuntimeError, 'searchsorted: expected side "left" or "right", got "up"'),))  # fmt: skip
case("searchsorted.Scalar", [S(_SORTED, 0.5), S(_SORTED, -1, right=True)], _search, dtypes=_LONG)
case("bucketize.Tensor", [S(A((3, 4)), _SORTED), S(A((3, 4)), _SORTED, right=True)], lambda x, b, **k: _search(b, x, **k), dtypes=_LONG)
case("bucketize.Scalar", [S(0.5, _SORTED)], lambda x, b: _search(b, x), dtypes=_LONG)


def _bincount(x: np.ndarray, weights: Any = None, minlength: int = 0) -> np.ndarray:
    return np.bincount(x, weights, minlength)


case("bincount", [S(I((20,), 0, 6)), S(I((20,), 0, 6), minlength=9), S(I((0,), 0, 1)), S(I((9,), 0, 4), A((9,)))], _bincount, tolerance=8, grad=False)


def _histc(x: np.ndarray, bins: int = 100, min: float = 0, max: float = 0) -> np.ndarray:
    low, high = (min, max) if min != max else (x.min(), x.max())
    return np.histogram(x, bins, (low, high))[0].astype("float64")


case("histc", [S(A((40,)), 7), S(A((40,)), 5, -2, 2), S(A((3, 4)))], _histc,
     fails=(Fails(S(A((3,)), 0), RuntimeError, "histc: expected bins > 0, got 0"),))  # fmt: skip


def _few(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(0, 4, shape) / 4


def _unique(x: np.ndarray, sorted: bool = True, inverse: bool = False, counts: bool = False, dim: int | None = None) -> Any:
    found, back, count = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    none = np.zeros(0, "int64")
    return found, back.reshape(x.shape if dim is None else -1) if inverse else none, count if counts else none


case("_unique2", [S(A((4, 5)), True, True, True), S(A((30,))), S(A((0,)), True, True)], _unique, domain=_few, grad=False, dtypes=(*FLOATS, "int64", "bool"))
case("unique_dim", [S(A((9, 2)), 0, True, True, True), S(A((2, 9)), 1, True, True, True)], lambda x, d, *a: _unique(x, *a, dim=d), domain=_few, grad=False,
     dtypes=(*FLOATS, "int64"))  # fmt: skip


def _runs(x: np.ndarray, inverse: bool = False, counts: bool = False, dim: int | None = None) -> Any:
    items = x.ravel() if dim is None else np.moveaxis(x, dim, 0)
    starts = [i == 0 or not np.array_equal(items[i], items[i - 1]) for i in range(len(items))]
    places = np.flatnonzero(starts)
    back = np.cumsum(starts) - 1
    values = items[places] if dim is None else np.moveaxis(items[places], 0, dim)
    none = np.zeros(0, "int64")
    found = np.diff(np.append(places, len(items)))
    return values, back.reshape(x.shape if dim is None else -1) if inverse else none, found if counts else none


case("unique_consecutive", [S(A((3, 9)), True, True), S(A((12, 1)), True, True, 0)], _runs, domain=_few, grad=False, dtypes=(*FLOATS, "int64"))


def _isin(x: Any, tests: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    return np.isin(x, tests, assume_unique, invert)


case("isin.Tensor_Tensor", [S(A((4, 5)), A((3,))), S(A((4, 5)), A((0,))), S(A((7,)), A((2, 2)), invert=True)], _isin, domain=_few,
     dtypes=(*FLOATS, "int64"))  # fmt: skip
case("isin.Tensor_Scalar", [S(A((4, 5)), 0.25), S(A((4, 5)), 1, invert=True)], _isin, domain=_few)
case("isin.Scalar_Tensor", [S(0.25, A((4, 5))), S(7, A((4, 5)), invert=True)], _isin, domain=_few)
