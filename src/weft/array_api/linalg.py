"""Linear algebra by the standard: matrices are the last two axes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from weft._C import Tensor
from weft._runtime.public import weft
from weft.array_api._dtypes import same_dtype
from weft.array_api._shapes import Axes, axes_of
from weft.array_api._statistics import _sum_dtype
from weft.array_api._statistics import sum as _sum


class QR(NamedTuple):
    """qr: x = Q R."""

    Q: Tensor
    R: Tensor


class Eig(NamedTuple):
    """eig: complex, in no order."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class Eigh(NamedTuple):
    """eigh: in ascending order."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class Slogdet(NamedTuple):
    """slogdet: the determinant is sign * exp(logabsdet)."""

    sign: Tensor
    logabsdet: Tensor


class SVD(NamedTuple):
    """svd: x = U diag(S) Vh."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of matrices; a vector is a row on the left and a column on the right."""
    return weft.matmul(*same_dtype(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two axes exchanged. ValueError for fewer."""
    if x.dim() < 2:
        raise ValueError(f"matrix_transpose: expected at least 2 dimensions, got {x.dim()}")
    return x.mT


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sums of conj(x1) * x2 along an axis, which is counted in both from the end."""
    x1, x2 = same_dtype(x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(
            f"vecdot: expected axes of one size, got {x1.shape[axis]} and {x2.shape[axis]}"
        )
    first, second = weft.broadcast_tensors(x1.movedim(axis, -1), x2.movedim(axis, -1))
    return weft.sum(weft.conj(first) * second, -1, dtype=x1.dtype)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The sums of products over axes: the last and first `axes`, or those that two lists name."""
    return weft.tensordot(*same_dtype(x1, x2), dims=axes)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of every element of one vector with every one of the other."""
    first, second = same_dtype(x1, x2)
    return first.unsqueeze(-1) * second


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross products of vectors of 3 elements along an axis."""
    both = same_dtype(x1, x2)
    for x in both:
        axes_of("cross", x.dim(), axis)
    ndim = max(x.dim() for x in both)
    return weft.linalg.cross(*(x[(None,) * (ndim - x.dim())] for x in both), dim=axis)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A diagonal of each matrix."""
    return weft.diagonal(x, offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of a diagonal of each matrix."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=_sum_dtype(x, dtype))


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of each matrix: 1, -1, 2, -2, inf, -inf, "fro" or "nuc"."""
    return weft.linalg.matrix_norm(x, ord, (-2, -1), keepdims)


def vector_norm(
    x: Tensor, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """The norm of vectors along axes; None: of the flattened array."""
    if axis == ():
        return weft.abs(x) if ord != 0 else (x != 0).to(weft.abs(x).dtype)
    return weft.linalg.vector_norm(x, ord, axes_of("vector_norm", x.dim(), axis), keepdims)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are greater than rtol times the greatest."""
    return weft.linalg.matrix_rank(x, rtol=rtol)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse; singular values up to rtol times the greatest count as zero."""
    if rtol is None:
        rtol = math.prod([max(x.shape[-2:]), weft.finfo(x.dtype).eps])
    return weft.linalg.pinv(x, rtol=rtol)


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangle L with L Lᴴ = x, or its conjugate transpose."""
    return weft.linalg.cholesky(x, upper=upper)


def det(x: Tensor, /) -> Tensor:
    """The determinants."""
    return weft.linalg.det(x)


def slogdet(x: Tensor, /) -> Slogdet:
    """The signs of the determinants and the logarithms of their absolute values."""
    return Slogdet(*weft.linalg.slogdet(x))


def inv(x: Tensor, /) -> Tensor:
    """The inverses."""
    return weft.linalg.inv(x)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The matrices multiplied with themselves; of negative n the inverses."""
    return weft.linalg.matrix_power(x, n)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """What x1 has to be multiplied with to give x2: a vector where x2 has one axis, else
    matrices."""
    x1, x2 = same_dtype(x1, x2)
    if x2.dim() == 1:
        return weft.linalg.solve(x1, x2.expand(*x1.shape[:-2], -1).unsqueeze(-1)).squeeze(-1)
    batch = weft.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return weft.linalg.solve(x1.expand(*batch, -1, -1), x2.expand(*batch, -1, -1))


def qr(x: Tensor, /, *, mode: str = "reduced") -> QR:
    """An orthogonal and a triangular factor; mode "reduced" or "complete"."""
    return QR(*weft.linalg.qr(x, mode))


def eig(x: Tensor, /) -> Eig:
    """The eigenvalues and eigenvectors of square matrices, complex ones."""
    return Eig(*weft.linalg.eig(x))


def eigvals(x: Tensor, /) -> Tensor:
    """The eigenvalues of square matrices, complex ones."""
    return weft.linalg.eigvals(x)


def eigh(x: Tensor, /) -> Eigh:
    """The eigenvalues and eigenvectors of hermitian matrices."""
    return Eigh(*weft.linalg.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of hermitian matrices."""
    return weft.linalg.eigvalsh(x)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVD:
    """The singular values and their vectors."""
    return SVD(*weft.linalg.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values, the greatest first."""
    return weft.linalg.svdvals(x)


__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip
