"""Cases of joining, splitting and indexing."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .spec import ALL, FLOATS, HALVES, A, B, Fails, I, S, case, distinct

_M = A((3, 4))

case("cat", [S([A((2, 3)), A((4, 3))]), S([A((2, 3)), A((2, 1))], 1), S([A((0,)), A((3,))]), S([A((5,))], -1)], np.concatenate, dtypes=ALL)
case("stack", [S([A((2, 3)), A((2, 3))]), S([A((2, 3)), A((2, 3))], -1), S([A(())])], np.stack, dtypes=ALL)


def _split(x: np.ndarray, size: int, dim: int = 0) -> list[np.ndarray]:
    return np.split(x, range(size, x.shape[dim], size), dim)


case("split.Tensor", [S(A((5, 2)), 2), S(A((2, 6)), 3, 1)], _split)
case("split_with_sizes", [S(A((5, 2)), [1, 4])], lambda x, sizes, dim=0: np.split(x, np.cumsum(sizes)[:-1], dim))
case("chunk", [S(A((5, 2)), 2), S(A((6,)), 3)], lambda x, n, dim=0: _split(x, -(-x.shape[dim] // n), dim))
case("unbind.int", [S(_M), S(_M, 1)], lambda x, dim=0: list(np.moveaxis(x, dim, 0)))
case("repeat", [S(A((2, 3)), [2, 1]), S(A((3,)), [2, 2])], np.tile)
case("flip", [S(_M, [0]), S(_M, [0, 1])], np.flip)
case("roll", [S(A((5,)), [2], [0]), S(_M, [1, -1], [0, 1])], np.roll)

# ---- indexing ----
_OUT = "expected index in [-3, 2] for dim 0, got 5"
_FROM_ZERO = "expected index in [0, 2] for dim 0, got 5"


def _index(x: np.ndarray, indices: list[Any]) -> np.ndarray:
    return x[tuple(indices)]


case("index.Tensor", [S(_M, [I((5,), -3, 3)]), S(_M, [I((2, 1), 0, 3), I((3,), 0, 4)]), S(_M, [B((3, 4))]), S(A((3, 4, 5)), [I((2,), 0, 3)])],
     _index, dtypes=ALL, fails=(Fails(S(_M, [I((2,), 5, 6)]), IndexError, f"index: {_OUT}"),))  # fmt: skip


def _index_put(x: np.ndarray, indices: list[Any], values: np.ndarray, accumulate: bool = False) -> np.ndarray:
    y = x.copy()
    if accumulate:
        np.add.at(y, tuple(indices), values)
    else:
        y[tuple(indices)] = values
    return y


case("index_put", [S(_M, [I((1,), 0, 3)], A((1, 4))), S(_M, [I((6,), 0, 3)], A((6, 4)), True), S(_M, [B((3, 4))], A(()))], _index_put,
     dtypes=FLOATS, fails=(Fails(S(_M, [I((2,), 5, 6)], A(())), IndexError, f"index_put_: {_OUT}"),))  # fmt: skip
case("index_select", [S(_M, 0, I((5,), 0, 3)), S(_M, 1, I((2,), 0, 4))], lambda x, d, i: np.take(x, i, d), dtypes=ALL,
     fails=(Fails(S(_M, 0, I((1,), 5, 6)), IndexError, f"index_select: {_FROM_ZERO}"),))  # fmt: skip
case("gather", [S(_M, 0, I((2, 4), 0, 3)), S(_M, 1, I((3, 6), 0, 4))], lambda x, d, i: np.take_along_axis(x, i, d), dtypes=ALL,
     fails=(Fails(S(_M, 0, I((2, 4), 5, 6)), RuntimeError, f"gather: {_FROM_ZERO}"),))  # fmt: skip


def _scatter_add(x: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> np.ndarray:
    y = x.copy()
    for where in np.ndindex(index.shape):
        target = list(where)
        target[dim] = index[where]
        y[tuple(target)] += source[where]
    return y


case("scatter_add", [S(_M, 0, I((2, 4), 0, 3), A((2, 4))), S(_M, 1, I((3, 6), 0, 4), A((3, 6)))], _scatter_add)


def _along_first(x: np.ndarray, dim: int, index: np.ndarray, source: Any) -> np.ndarray:
    y = x.copy()
    np.put_along_axis(y, index, source, dim)
    return y


case("scatter.src", [S(_M, 1, I((3, 1), 0, 4), A((3, 1)))], _along_first)
case("scatter.value", [S(_M, 1, I((3, 1), 0, 4), 2.0), S(_M, 0, I((1, 4), 0, 3), -1)], _along_first)


def _scatter_reduced(x: np.ndarray, dim: int, index: np.ndarray, source: Any, *, reduce: str) -> np.ndarray:
    y = x.copy()
    source = np.broadcast_to(source, index.shape)
    for place in np.ndindex(index.shape):
        target = (*place[:dim], index[place], *place[dim + 1 :])
        y[target] = y[target] + source[place] if reduce == "add" else y[target] * source[place]
    return y


case("scatter.reduce", [S(_M, 1, I((3, 2), 0, 4), A((3, 2)), reduce=how) for how in ("add", "multiply")], _scatter_reduced, parity=False,
     fails=(Fails(S(_M, 1, I((3, 2), 0, 4), A((3, 2)), reduce="mean"), RuntimeError, 'scatter: expected reduce "add" or "multiply", got "mean"'),))  # fmt: skip
case("scatter.value_reduce", [S(_M, 1, I((3, 2), 0, 4), 2.0, reduce=how) for how in ("add", "multiply")], _scatter_reduced, parity=False)
case("masked_select", [S(_M, B((3, 4))), S(A((0,)), B((0,)))], lambda x, m: x[m], dtypes=ALL)
case("nonzero", [S(_M), S(A((2, 3, 2))), S(A((0, 3)))], lambda x: np.argwhere(x), dtypes=ALL)


def _sort(x: np.ndarray, dim: int = -1, descending: bool = False) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-x if descending else x, axis=dim, kind="stable")
    return np.take_along_axis(x, order, dim), order


def _topk(x: np.ndarray, k: int, dim: int = -1, largest: bool = True) -> list[np.ndarray]:
    return [np.take(part, range(k), dim) for part in _sort(x, dim, largest)]


case("sort", [S(A((3, 9))), S(A((3, 4)), 0), S(A((11,)), descending=True)], _sort, domain=distinct, dtypes=FLOATS)
case("argsort", [S(A((3, 9))), S(A((3, 4)), 0, True)], lambda *a: _sort(*a)[1], domain=distinct)
case("argsort.stable", [S(A((3, 9)), stable=True), S(A((3, 4)), stable=False, dim=0)], lambda x, *, stable, dim=-1: _sort(x, dim)[1], domain=distinct)
case("topk", [S(A((3, 9)), 4), S(A((3, 4)), 2, 0, False)], _topk, domain=distinct)
case("embedding", [S(A((6, 3)), I((4,), 0, 6)), S(A((6, 3)), I((2, 3), 0, 6))], lambda w, i: w[i])


def _bag_sum(
    w: np.ndarray, i: np.ndarray, starts: np.ndarray, factors: np.ndarray | None = None, mean: bool = False, by_freq: bool = False
) -> np.ndarray:
    rows = w[i] if factors is None else w[i] * factors[:, None]
    sums = np.stack([part.sum(0) for part in np.split(rows, starts)[1:]])
    return sums / np.maximum(np.diff(starts, append=len(i)), 1)[:, None] if mean else sums


_STARTS = I((3,), 0, 1)  # three bags, of which two are empty
_BAGS = "embedding_bag: expected offsets that rise from 0 to at most 7, got"
case("_bag_sum", [S(A((6, 3)), I((7,), 0, 6), _STARTS), S(A((6, 5)), I((7,), 0, 6), _STARTS, A((7,))), S(A((6, 100)), I((70,), 0, 6), _STARTS, A((70,)), True),
                  S(A((6, 23)), I((7,), 0, 6), _STARTS, None, True, False), S(A((6, 0)), I((7,), 0, 6), _STARTS), S(A((0, 3)), I((0,), 0, 1), _STARTS)],
     _bag_sum, dtypes=FLOATS + HALVES, tolerance=40, parity=False,
     fails=(Fails(S(_M, I((2,), 5, 6), np.array([0])), RuntimeError, f"embedding_bag: {_FROM_ZERO}"),
            Fails(S(_M, I((2,), -1, 0), np.array([0])), RuntimeError, "embedding_bag: expected index in [0, 2] for dim 0, got -1"),
            Fails(S(_M, I((7,), 0, 3), np.array([1])), ValueError, f"{_BAGS} 1 behind 0"),
            Fails(S(_M, I((7,), 0, 3), np.array([0, 5, 4])), ValueError, f"{_BAGS} 4 behind 5"),
            Fails(S(_M, I((7,), 0, 3), np.array([0, 8])), ValueError, f"{_BAGS} 8 behind 0"),
            Fails(S(_M, I((7,), 0, 3), np.array([], np.int64)), ValueError, "embedding_bag: expected an offset, got none"),
            Fails(S(_M, I((7,), 0, 3), np.array([0]), A((6,))), RuntimeError, "embedding_bag: expected per_sample_weights of float32 and shape (7,), got float32 and (6,)"),
            Fails(S(A((3,)), I((7,), 0, 3), np.array([0])), RuntimeError, "embedding_bag: expected a 2-d weight, 1-d indices and offsets, got shapes (3,), (7,) and (1,)"),
            Fails(S(I((3, 4), 0, 9), I((7,), 0, 3), np.array([0])), NotImplementedError, "embedding_bag: expected a floating dtype, got int64")))  # fmt: skip
case("one_hot", [S(I((5,), 0, 4), 4)], lambda i, n: np.eye(n, dtype="int64")[i], grad=False)

# ---- in place and older names ----
case("split.sizes", [S(A((5, 2)), [1, 4])], lambda x, sizes, dim=0: np.split(x, np.cumsum(sizes)[:-1], dim))
case("tensor_split.sections", [S(A((7, 2)), 3)], lambda x, n, dim=0: np.array_split(x, n, dim))
case("tensor_split.indices", [S(A((7, 2)), [2, 5])], lambda x, at, dim=0: np.split(x, at, dim))
case("tensor_split.tensor_indices_or_sections", [S(A((7, 2)), I((2,), 1, 6)), S(A((7, 2)), I((), 2, 4))],
     lambda x, at, dim=0: np.array_split(x, at if at.ndim else int(at), dim), grad=False)  # fmt: skip
case("sort.stable", [S(A((3, 9)), stable=True), S(A((3, 4)), stable=True, dim=0)], lambda x, *, stable, dim=-1: _sort(x, dim), domain=distinct)


def _index_add(x: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray, *, alpha: float = 1) -> np.ndarray:
    y = np.moveaxis(x.copy(), dim, 0)
    np.add.at(y, index, alpha * np.moveaxis(source, dim, 0))
    return np.moveaxis(y, 0, dim)


case("index_add", [S(_M, 0, I((2,), 0, 3), A((2, 4))), S(_M, 1, I((3,), 0, 4), A((3, 3)), alpha=2)], _index_add)


def _writes(expected: list[list[float]], *args: Any, **named: Any) -> Any:
    """A check of a row that writes into a 2 x 3 matrix of zeros."""

    def check(function: Any) -> None:
        x = weft.zeros(2, 3)
        built = [[weft.tensor(i) for i in a] if isinstance(a, tuple) else weft.tensor(a) if isinstance(a, list) else a for a in args]
        assert function(x, *built, **named) is x
        assert x.tolist() == expected

    return check


case("index_put_", check=_writes([[0, 2, 0], [3, 0, 0]], ([0, 1], [1, 0]), [2.0, 3.0]), grad=False)
case("index_add_", check=_writes([[0, 0, 0], [4, 6, 8]], 0, [1, 1], [[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]]), grad=False)
case("scatter_.src", check=_writes([[0, 7, 0], [8, 0, 0]], 1, [[1], [0]], [[7.0], [8.0]]), grad=False)
case("scatter_.value", check=_writes([[0, 5, 0], [5, 0, 0]], 1, [[1], [0]], 5.0), grad=False)
case("scatter_.reduce", check=_writes([[0, 7, 0], [8, 0, 0]], 1, [[1], [0]], [[7.0], [8.0]], reduce="add"), grad=False)
case("scatter_.value_reduce", check=_writes([[0, 5, 0], [5, 0, 0]], 1, [[1], [0]], 5.0, reduce="add"), grad=False)
case("scatter_add_", check=_writes([[0, 3, 0], [0, 0, 9]], 1, [[1, 1], [2, 2]], [[1.0, 2.0], [4.0, 5.0]]), grad=False)
