"""Cases of views as copies and of copies with one part written anew."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .spec import ALL, A, Fails, I, S, case, distinct
from .viewing import _expand, _slice

_M, _C = A((3, 4)), A((2, 3, 4))

for _name, _samples, _ref in (
    ("alias_copy", [S(_M)], np.copy),
    ("detach_copy", [S(_M)], np.copy),
    ("t_copy", [S(_M), S(A((4,)))], np.transpose),
    ("transpose_copy.int", [S(_C, -1, 0)], np.swapaxes),
    ("permute_copy", [S(_C, [2, 0, 1])], np.transpose),
    ("squeeze_copy", [S(A((1, 3, 1)))], np.squeeze),
    ("squeeze_copy.dim", [S(A((1, 3, 1)), 0)], np.squeeze),
    ("squeeze_copy.dims", [S(A((1, 3, 1)), [0, 2])], lambda x, d: np.squeeze(x, tuple(d))),
    ("unsqueeze_copy", [S(_M, -1)], np.expand_dims),
    ("expand_copy", [S(A((3, 1)), [2, 3, 4])], _expand),
    ("select_copy.int", [S(_C, 1, -2)], lambda x, d, i: np.take(x, i, d)),
    ("slice_copy.Tensor", [S(_M, 1, 0, 4, 2)], _slice),
    ("narrow_copy", [S(_M, 1, 1, 2)], lambda x, d, s, n: _slice(x, d, s, s + n)),
    ("diagonal_copy", [S(_M, 1), S(_C, -1, 1, 2)], np.diagonal),
    ("unfold_copy", [S(A((10,)), 0, 3, 2)], lambda x, d, n, s: np.lib.stride_tricks.sliding_window_view(x, n, d)[::s]),
):
    case(_name, _samples, _ref, dtypes=ALL, grad=_name != "detach_copy")


def _as_integers(function: Any) -> None:
    x = weft.tensor([1.0, -2.0])
    got = function(x, weft.int32)
    assert got.tolist() == [0x3F800000, -0x40000000] and got.data_ptr() != x.data_ptr()


case("view_copy", [S(_M, [2, 6])], np.reshape, dtypes=ALL, layouts=False)
case("view_copy.dtype", check=_as_integers, grad=False)
case("as_strided_copy", [S(A((12,)), [3, 2], [2, 1], 1)], lambda x, size, stride, offset: np.stack([x[1 + 2 * i : 3 + 2 * i] for i in range(3)]),
     dtypes=ALL, layouts=False)  # fmt: skip


def _written(place: Any) -> Any:
    """A reference: a copy with src in the view that place(copy, ...) gives."""

    def reference(x: np.ndarray, src: np.ndarray, *args: Any) -> np.ndarray:
        y = x.copy()
        place(y, *args)[...] = src
        return y

    return reference


def _diagonal(x: np.ndarray, *args: int) -> np.ndarray:
    view = np.diagonal(x, *args)
    view.flags.writeable = True
    return view


_SHAPES = "expected src of shape (4,), got (3,)"
case("select_scatter", [S(_M, A((4,)), 0, 1), S(_C, A((2, 4)), 1, -1)], _written(lambda y, d, i: np.moveaxis(y, d, 0)[i]), dtypes=ALL,
     fails=(Fails(S(_M, A((3,)), 0, 1), RuntimeError, f"select_scatter: {_SHAPES}"),))  # fmt: skip
case("slice_scatter", [S(_M, A((3, 2)), 1, 0, 4, 2), S(_M, A((2, 4)), 0, 1)], _written(_slice), dtypes=ALL,
     fails=(Fails(S(_M, A((4,)), 0, 1), RuntimeError, "slice_scatter: expected src of shape (2, 4), got (4,)"),))  # fmt: skip
case("diagonal_scatter", [S(_M, A((3,))), S(_C, A((2, 2)), -1, 1, 2)], _written(_diagonal), dtypes=ALL,
     fails=(Fails(S(_M, A((4,))), RuntimeError, "diagonal_scatter: expected src of shape (3,), got (4,)"),))  # fmt: skip


def _put(x: np.ndarray, index: np.ndarray, source: np.ndarray, accumulate: bool = False) -> np.ndarray:
    y = x.ravel().copy()
    if accumulate:
        np.add.at(y, index.ravel(), source.ravel())
    else:
        y[index.ravel()] = source.ravel()
    return y.reshape(x.shape)


case("put", [S(_M, I((1, 1), -12, 12), A((1, 1))), S(_M, I((5,), 0, 12), A((5,)), True)], _put,
     fails=(Fails(S(_M, I((2,), 0, 3), A((3,))), RuntimeError, "put: expected as many elements of source as of index, got 3 and 2"),))  # fmt: skip
case("fill.Scalar", [S(_M, 2.5)], lambda x, v: np.full_like(x, v))
case("fill.Tensor", [S(_M, A(()))], lambda x, v: np.full_like(x, v))
case("argwhere", [S(_M), S(A((0, 2)))], np.argwhere, dtypes=ALL, grad=False)
case("msort", [S(_M), S(A((5,))), S(A((4, 2, 3)))], lambda x: np.sort(x, 0), domain=distinct)


def _renorm(x: np.ndarray, p: float, dim: int, maxnorm: float) -> np.ndarray:
    rows = np.moveaxis(x, dim, 0)
    norms = (np.abs(rows) ** p).sum(tuple(range(1, x.ndim)), keepdims=True) ** (1 / p)
    return np.moveaxis(rows * np.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1), 0, dim)


case("renorm", [S(_M, 2, 0, 1.5), S(_C, 1, -1, 4.0), S(_M, 3, 1, 100.0)], _renorm, tolerance=20,
     fails=(Fails(S(A((4,)), 2, 0, 1.0), RuntimeError, "renorm: expected at least 2 dims, got shape (4,)"),))  # fmt: skip


def _changes(expected: list[Any], *args: Any) -> Any:
    def check(function: Any) -> None:
        x = weft.tensor([[0.0, 3.0], [4.0, 0.0]])
        assert function(x, *args) is x
        np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)

    return check


case("put_", check=_changes([[7, 3], [4, 8]], weft.tensor([0, 3]), weft.tensor([7.0, 8.0])), grad=False)
case("renorm_", check=_changes([[0, 2], [2, 0]], 2, 0, 2.0), grad=False)
