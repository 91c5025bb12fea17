"""Linear algebra over batches of matrices: `torch.linalg`."""

from __future__ import annotations

import math
from typing import Any

import weft
from weft import Tensor

_aten = weft._C._aten

# What a singular or an indefinite matrix raises.
LinAlgError = RuntimeError

inv = _aten.linalg_inv
det = _aten.linalg_det
slogdet = _aten.linalg_slogdet
solve = _aten.linalg_solve
solve_triangular = _aten.linalg_solve_triangular
cholesky = _aten.linalg_cholesky
eigh = _aten.linalg_eigh
eigvalsh = _aten.linalg_eigvalsh
qr = _aten.linalg_qr
svd = _aten.linalg_svd
svdvals = _aten.linalg_svdvals
cross = _aten.linalg_cross
matrix_power = _aten.matrix_power
matmul = _aten.matmul


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices."""
    return A.diagonal(offset, dim1, dim2)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Products summed along `dim`, x conjugated."""
    return (x.conj() * y).sum(dim)


def vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of order `ord` over `dim` (None: all), as of one long vector."""
    dims = [dim] if isinstance(dim, int) else dim
    return _aten.linalg_vector_norm(x, ord, dims, keepdim, dtype=dtype)


def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of matrices: "fro", "nuc", 2, -2, 1, -1, inf or -inf."""
    x = A if dtype is None else A.to(dtype)
    rows, columns = (d % x.dim() for d in dim)
    if ord == "fro":
        return vector_norm(x, 2, [rows, columns], keepdim)
    if ord in ("nuc", 2, -2):
        values = svdvals(x.movedim((rows, columns), (-2, -1)))
        result = values.sum(-1) if ord == "nuc" else values[..., 0 if ord == 2 else -1]
    elif ord in (1, -1, math.inf, -math.inf):
        along, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = x.abs().sum(along, keepdim=True)
        result = sums.amax(other, True) if ord > 0 else sums.amin(other, True)
        result = result.squeeze([rows, columns])
    else:
        raise ValueError(
            f"matrix_norm: expected ord 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}"
        )
    return result.unsqueeze(min(rows, columns)).unsqueeze(max(rows, columns)) if keepdim else result


def norm(
    A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """vector_norm, or matrix_norm where `ord` is given for two dimensions."""
    dims = A.dim() if dim is None else 1 if isinstance(dim, int) else len(dim)
    if ord is not None and (dims == 2 or (dim is None and isinstance(ord, str))):
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def multi_dot(tensors: Any) -> Tensor:
    """The product of several matrices, from left to right."""
    result, *rest = tensors
    for tensor in rest:
        result = result @ tensor
    return result


def pinv(A: Tensor, *, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse, by the singular values above rtol times the greatest.

    Raises NotImplementedError for hermitian=True, which would read one triangle only.
    """
    if hermitian:
        raise NotImplementedError("pinv: expected hermitian=False, got True")
    u, s, vh = svd(A, False)
    if rtol is None:
        rtol = max(A.shape[-2:]) * weft.finfo(A.dtype).eps
    small = s <= rtol * s.amax([-1], True)
    inverse = s.masked_fill(small, 1).reciprocal().masked_fill(small, 0)
    return (vh.mT * inverse.unsqueeze(-2)) @ u.mT


def matrix_rank(A: Tensor, *, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """How many singular values lie above rtol times the greatest."""
    s = svdvals(A)
    if rtol is None:
        rtol = max(A.shape[-2:]) * weft.finfo(A.dtype).eps
    return (s > rtol * s.amax([-1], True)).sum(-1)


def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number: how much the solution of a system may grow errors."""
    if p is None or p == 2:
        s = svdvals(A)
        return s[..., 0] / s[..., -1]
    return matrix_norm(A, p) * matrix_norm(inv(A), p)


def lstsq(A: Tensor, B: Tensor) -> Any:
    """The X that makes the length of A @ X - B least, through the pseudo-inverse."""
    return (pinv(A) @ B,)


def inv_ex(A: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """inv, and 0 for each matrix."""
    return inv(A), weft.zeros(A.shape[:-2], dtype=weft.int32)


def cholesky_ex(
    A: Tensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    """cholesky, and 0 for each matrix."""
    return cholesky(A, upper=upper), weft.zeros(A.shape[:-2], dtype=weft.int32)
