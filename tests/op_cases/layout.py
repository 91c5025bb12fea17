"""Cases of entries laid out anew, and of writing at indices."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .spec import ALL, A, B, Fails, I, S, case, nonzero

_M = A((3, 4))


def _repeat(x: np.ndarray, repeats: Any, dim: int | None = None, **_: Any) -> np.ndarray:
    return np.repeat(x, repeats, dim)


case("repeat_interleave.self_int", [S(_M, 2), S(_M, 3, 1), S(_M, 0, 0), S(A(()), 2)], _repeat)
case("repeat_interleave.self_Tensor", [S(_M, I((3,), 0, 4), 0), S(_M, I((1,), 2, 3), 1), S(A((5,)), I((5,), 0, 3))], _repeat,
     fails=(Fails(S(_M, I((2,), 1, 2), 0), RuntimeError, "repeat_interleave: expected 3 repeats, got shape (2,)"),))  # fmt: skip
case("repeat_interleave.Tensor", [S(I((5,), 0, 4))], lambda r: np.repeat(np.arange(len(r)), r), grad=False)
case("tile", [S(_M, [2]), S(_M, [2, 1, 3]), S(A((2, 1, 3)), [2])], np.tile)
case("rot90", [S(_M), S(_M, 2), S(_M, -1), S(A((2, 3, 4)), 1, [1, 2]), S(_M, 4)], np.rot90,
     fails=(Fails(S(_M, 1, [0, -2]), RuntimeError, "rot90: expected two different dims, got (0, -2)"),))  # fmt: skip
case("fliplr", [S(_M)], np.fliplr, fails=(Fails(S(A((3,))), RuntimeError, "fliplr: expected at least 2 dims, got shape (3,)"),))
case("flipud", [S(_M), S(A((3,)))], np.flipud, fails=(Fails(S(A(())), RuntimeError, "flipud: expected at least 1 dim, got shape ()"),))
case("ravel", [S(_M), S(A(()))], np.ravel)
case("moveaxis.int", [S(A((2, 3, 4)), 0, -1)], np.moveaxis)
case("moveaxis.intlist", [S(A((2, 3, 4)), [0, 1], [2, 0])], np.moveaxis)
case("adjoint", [S(_M), S(A((2, 3, 4)))], lambda x: np.swapaxes(x, -1, -2))
case("trace", [S(_M), S(A((4, 4)))], np.trace, tolerance=4, fails=(Fails(S(A((3,))), RuntimeError, "trace: expected a matrix, got shape (3,)"),))
case("diag", [S(_M), S(_M, 1), S(A((3,))), S(A((3,)), -2)], np.diag)
case("diagflat", [S(_M), S(A((3,)), 1)], np.diagflat)


def _diag_embed(x: np.ndarray, offset: int = 0, dim1: int = -2, dim2: int = -1) -> np.ndarray:
    n = x.shape[-1] + abs(offset)
    y = np.zeros((*x.shape[:-1], n, n), x.dtype)
    at = np.arange(x.shape[-1])
    y[..., at + max(-offset, 0), at + max(offset, 0)] = x
    return np.moveaxis(y, (-2, -1), (dim1, dim2))


case("diag_embed", [S(_M), S(_M, 1), S(_M, -2, 0, 2)], _diag_embed)


def _block_diag(blocks: list[np.ndarray]) -> np.ndarray:
    blocks = [np.atleast_2d(b) for b in blocks]
    y = np.zeros(np.sum([b.shape for b in blocks], 0))
    row = column = 0
    for b in blocks:
        y[row : row + b.shape[0], column : column + b.shape[1]] = b
        row, column = row + b.shape[0], column + b.shape[1]
    return y


case("block_diag", [S([_M, A((2,)), A(()), A((2, 2))])], _block_diag)
for _name, _numpy in (("tril", np.tril_indices), ("triu", np.triu_indices)):
    case(f"{_name}_indices", [S(3, 4), S(4, 3, 1), S(3, 5, -1), S(0, 2)], lambda r, c, k=0, f=_numpy: np.stack(f(r, k, c)), grad=False)


# ---- in place ----
def _changes(expected: list[Any], *args: Any, **kwargs: Any) -> Any:
    def check(function: Any) -> None:
        x = weft.arange(6.0).reshape(2, 3)
        assert function(x, *args, **kwargs) is x
        assert x.tolist() == expected

    return check


case("tril_", check=_changes([[0, 0, 0], [3, 4, 0]]), grad=False)
case("triu_", check=_changes([[0, 1, 2], [0, 4, 5]]), grad=False)
case("fill_diagonal_", check=_changes([[9, 1, 2], [3, 9, 5]], 9.0), grad=False)
case("t_", check=_changes([[0, 3], [1, 4], [2, 5]]), grad=False)
case("transpose_", check=_changes([[0, 3], [1, 4], [2, 5]], 0, 1), grad=False)
case("unsqueeze_", check=_changes([[[0, 1, 2]], [[3, 4, 5]]], 1), grad=False)


def _squeezes(*args: Any) -> Any:
    def check(function: Any) -> None:
        x = weft.ones(2, 1, requires_grad=True)
        y = x * 2
        assert function(y, *args) is y
        assert tuple(y.shape) == (2,)
        y.sum().backward()
        assert x.grad.tolist() == [[2], [2]]

    return check


case("squeeze_", check=_squeezes(), grad=False)
case("squeeze_.dim", check=_squeezes(1), grad=False)
case("squeeze_.dims", check=_squeezes([0, 1]), grad=False)


# ---- written at indices ----
def _masked_scatter(x: np.ndarray, mask: np.ndarray, source: np.ndarray) -> np.ndarray:
    y = np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape)).copy()
    mask = np.broadcast_to(mask, y.shape)
    y[mask] = source.ravel()[: mask.sum()]
    return y


case("masked_scatter", [S(_M, B((3, 4)), A((12,))), S(_M, B((4,)), A((3, 5)))], _masked_scatter, dtypes=ALL)
case("masked_scatter_", check=_changes([[7, 1, 2], [3, 8, 5]], weft.tensor([[True, False, False], [False, True, False]]), weft.tensor([7.0, 8.0])),
     grad=False)  # fmt: skip


def _at(x: np.ndarray, dim: int, index: np.ndarray, value: Any) -> np.ndarray:
    y = np.moveaxis(x.copy(), dim, 0)
    y[index] = np.moveaxis(value, dim, 0) if np.ndim(value) else value
    return np.moveaxis(y, 0, dim)


_OUT = "expected index in [-3, 2] for dim 0, got 5"
case("index_copy", [S(_M, 0, I((1,), 0, 3), A((1, 4))), S(_M, 1, I((1,), 0, 4), A((3, 1)))], _at,
     fails=(Fails(S(_M, 0, I((1,), 0, 1), A((2, 4))), RuntimeError, "index_copy: expected a source of shape (1, 4), got (2, 4)"),))  # fmt: skip
case("index_fill.int_Scalar", [S(_M, 0, I((2,), 0, 3), 2.0), S(_M, 1, I((3,), 0, 4), -1)], _at)
case("index_fill.int_Tensor", [S(_M, 0, I((2,), 0, 3), A(())), S(_M, 1, I((1,), 0, 4), A(()))], _at)
_FIRST = weft.tensor([1])
case("index_copy_", check=_changes([[0, 1, 2], [7, 8, 9]], 0, _FIRST, weft.tensor([[7.0, 8.0, 9.0]])), grad=False)
case("index_fill_.int_Scalar", check=_changes([[0, 7, 2], [3, 7, 5]], 1, _FIRST, 7.0), grad=False)
case("index_fill_.int_Tensor", check=_changes([[0, 7, 2], [3, 7, 5]], 1, _FIRST, weft.tensor(7.0)), grad=False)

_FOLDS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def _scatter_reduce(x: np.ndarray, dim: int, index: np.ndarray, src: np.ndarray, reduce: str, *, include_self: bool = True) -> np.ndarray:
    y, count = x.copy(), np.full(x.shape, int(include_self))
    for place in np.ndindex(index.shape):
        target = (*place[: dim % x.ndim], index[place], *place[dim % x.ndim + 1 :])
        fold = _FOLDS.get(reduce, np.add)
        y[target] = fold(y[target], src[place]) if count[target] else src[place]
        count[target] += 1
    return y / np.maximum(count, 1) if reduce == "mean" else y


_INDEX = I((5, 4), 0, 3)
case("scatter_reduce.two",
     [S(_M, 0, _INDEX, A((5, 4)), how, include_self=own) for how in ("sum", "mean", "prod", "amax", "amin") for own in (True, False)],
     _scatter_reduce, domain=nonzero, tolerance=8,
     fails=(Fails(S(_M, 0, I((1, 4), 5, 6), A((1, 4)), "sum"), RuntimeError, "scatter_reduce: expected index in [0, 2] for dim 0, got 5"),))  # fmt: skip
case("scatter_reduce_.two", check=_changes([[0, 1, 2], [3, 4, 45]], 1, weft.tensor([[0], [2]]), weft.tensor([[1.0], [9.0]]), "prod"), grad=False)
case("take", [S(_M, I((5,), -12, 12)), S(_M, I((2, 3), 0, 12)), S(_M, I((), 0, 12))], lambda x, i: x.ravel()[i])


def _take_along(x: np.ndarray, index: np.ndarray, dim: int | None = None) -> np.ndarray:
    return np.take_along_axis(x, index, dim) if dim is not None else x.ravel()[index.ravel()]


case("take_along_dim", [S(_M, I((2, 4), 0, 3), 0), S(_M, I((3, 2), 0, 4), 1), S(_M, I((1, 4), 0, 3), 0), S(_M, I((6,), 0, 12))], _take_along)
