"""Cases of the view operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from .spec import ALL, A, Fails, I, S, case

_M = A((3, 4))
_C = A((2, 3, 4))


def _fails(op: str, sample: S, text: str, error: type[Exception] = RuntimeError) -> tuple[Fails, ...]:
    return (Fails(sample, error, f"{op}: {text}"),)


case("view", [S(_M, [2, 6]), S(_M, [-1]), S(_M, [3, 2, 2]), S(A((0, 3)), [0, 9]), S(A(()), [1])], np.reshape, dtypes=ALL, layouts=False,
     fails=_fails("view", S(A((6,)), [4]), "expected a size of 6 elements, got shape (4,)"))  # fmt: skip
case("reshape", [S(_M, [2, 6]), S(_M, [-1]), S(_C, [6, 4]), S(A((0, 3)), [3, 0])], np.reshape, dtypes=ALL,
     fails=_fails("reshape", S(A((6,)), [4]), "expected a size of 6 elements, got shape (4,)"))  # fmt: skip
case("transpose.int", [S(_M, 0, 1), S(_C, -1, 0), S(A((0, 3)), 0, 1)], np.swapaxes, dtypes=ALL,
     fails=_fails("transpose", S(_M, 0, 2), "expected dim in [-2, 1], got 2", IndexError))  # fmt: skip
case("t", [S(_M), S(A((4,))), S(A(()))], np.transpose)
case("permute", [S(_C, [2, 0, 1]), S(_C, [-1, 1, 0])], np.transpose, dtypes=ALL)
case("squeeze", [S(A((1, 3, 1))), S(A((2,))), S(A((1,)))], np.squeeze)
case("squeeze.dim", [S(A((1, 3, 1)), 0), S(A((1, 3, 1)), -1), S(A((2, 3)), 0)], lambda x, d: np.squeeze(x, d) if x.shape[d] == 1 else x)
case("unsqueeze", [S(_M, 0), S(_M, -1), S(A(()), 0)], np.expand_dims, dtypes=ALL,
     fails=_fails("unsqueeze", S(_M, 3), "expected dim in [-3, 2], got 3", IndexError))  # fmt: skip
case("select.int", [S(_M, 0, 1), S(_C, -1, -2)], lambda x, d, i: np.take(x, i, d), dtypes=ALL,
     fails=_fails("select", S(_M, 0, 3), "expected index in [-3, 2] for dim 0, got 3", IndexError))  # fmt: skip


def _slice(x: np.ndarray, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> np.ndarray:
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


case("slice.Tensor", [S(_M, 0, 1), S(_M, 1, 0, 4, 2), S(_M, 1, -3, -1), S(_M, 0, 2, 1), S(_M, 0, 0, 99)], _slice, dtypes=ALL)
case("narrow", [S(_M, 1, 1, 2), S(_M, 0, -2, 1)], lambda x, d, s, n: _slice(x, d, s % x.shape[d], s % x.shape[d] + n), dtypes=ALL)


def _expand(x: np.ndarray, size: Any) -> np.ndarray:
    lead = len(size) - x.ndim
    return np.broadcast_to(x, [x.shape[i - lead] if s == -1 else s for i, s in enumerate(size)])


case("expand", [S(A((3, 1)), [3, 4]), S(A((4,)), [2, 3, 4]), S(A((1, 4)), [-1, 4]), S(A(()), [2])], _expand, dtypes=ALL)
case("expand_as", [S(A((3, 1)), A((3, 4)))], lambda x, y: np.broadcast_to(x, y.shape))
case("flatten.using_ints", [S(_C), S(_C, 1), S(_C, 0, 1), S(A(()))],
     lambda x, a=0, b=-1: x.reshape(x.shape[: a % max(x.ndim, 1)] + (-1,) + x.shape[b % max(x.ndim, 1) + 1 :]))  # fmt: skip
case("unflatten.int", [S(A((6, 4)), 0, [2, 3]), S(A((6, 4)), 0, [2, -1])], lambda x, d, s: x.reshape(tuple(s) + x.shape[1:]))
case("diagonal", [S(_M), S(_M, 1), S(_C, -1, 1, 2)], np.diagonal)
case("movedim.int", [S(_C, 0, 2), S(_C, -1, 0)], np.moveaxis)
case("movedim.intlist", [S(_C, [0, 1], [2, 0])], np.moveaxis)
case("unfold", [S(A((10,)), 0, 3, 2), S(A((3, 6)), 1, 4, 1)],
     lambda x, d, n, s: np.moveaxis(np.lib.stride_tricks.sliding_window_view(x, n, d), -1, -1)[(slice(None),) * d + (slice(None, None, s),)])  # fmt: skip
case("as_strided", [S(A((3, 4)), [2, 2], [1, 2]), S(A((12,)), [3, 5], [2, 1], 1)],
     lambda x, size, stride, offset=0: np.array([[x.ravel()[offset + i * stride[0] + j * stride[1]] for j in range(size[1])] for i in range(size[0])]),
     layouts=False)  # fmt: skip
_Z = ("complex64",)  # gradients, and complex128: tests/test_view_dtype.py


def _parts(x: np.ndarray) -> np.ndarray:
    return np.stack([x.real, x.imag], -1)


case("view_as_real", [S(_M), S(A(())), S(A((0, 3)))], _parts, dtypes=_Z, grad=False,
     fails=_fails("view_as_real", S(I((2,), 0, 3)), "expected a complex tensor, got int64"))  # fmt: skip
case("imag", [S(_M), S(A(()))], np.imag, dtypes=_Z, grad=False,
     fails=_fails("imag", S(I((2,), 0, 3)), "expected a complex tensor, got int64"))  # fmt: skip
case("view_as_complex", [S(A((3, 2))), S(A((2, 3, 2))), S(A((1, 2)))], lambda x: x[..., 0] + 1j * x[..., 1],
     dtypes=("float32", "float64"), layouts=False,
     fails=_fails("view_as_complex", S(A((2, 3))), "expected a last dimension of size 2, got shape (2, 3)"))  # fmt: skip
def _view_dtype(function: Any) -> None:
    import weft

    z = weft.tensor([1 + 2j, 3 - 4j], dtype=weft.complex64, requires_grad=True)
    parts = function(z * 1, weft.float32)
    assert parts.tolist() == [1, 2, 3, -4] and parts.requires_grad
    parts.sum().backward()
    assert z.grad.tolist() == [1 + 1j, 1 + 1j]
    y = weft.ones(4, requires_grad=True) * 1
    whole = function(y, weft.complex64)
    whole.mul_(2j)
    assert y.tolist() == [-2, 2, -2, 2] and whole.data_ptr() == y.data_ptr()
    assert not function(y, weft.int32).requires_grad
    assert function(y, weft.float32).requires_grad


case("view.dtype", check=_view_dtype, grad=False)
case("detach", [S(_M)], lambda x: x, grad=False)
case("alias", [S(_M)], lambda x: x)
case("broadcast_to", [S(A((3, 1)), [3, 4]), S(A((4,)), [2, 3, 4])], _expand)
case("reshape_as", [S(_M, A((2, 6)))], lambda x, y: x.reshape(y.shape))
case("view_as", [S(_M, A((2, 6)))], lambda x, y: x.reshape(y.shape), layouts=False)
case("squeeze.dims", [S(A((1, 3, 1)), [0, 2]), S(A((1, 3, 1)), [0, 1])], lambda x, d: np.squeeze(x, tuple(i for i in d if x.shape[i] == 1)))
case("swapaxes", [S(_C, 0, 2)], np.swapaxes)
