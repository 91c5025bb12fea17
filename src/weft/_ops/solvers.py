"""Inverses, determinants, and linear systems."""

from __future__ import annotations

from typing import Any

from weft._ops.table import backward_of, backward_op, body_of, op, ops

op(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    doc="The inverse of the matrices, and for each 0 or the number of a zero pivot (int32): the "
    "inverse of a singular one is NaN, unless check_errors raises LinAlgError.",
    grad={"A": "-(result0.mH.matmul(grads[0]).matmul(result0.mH))"},
    tags=("autocast_float32",),
    out="inverse",
    shape="each(A, A[:-2])",
)
op(
    "linalg_inv(Tensor A) -> Tensor",
    doc="The inverse of the matrices.",
    compose="linalg_inv_ex(A, check_errors=True)[0]",
    tags=("autocast_float32",),
    out="out",
)
op(
    "inverse(Tensor self) -> Tensor",
    doc="The inverse of the matrices.",
    compose="linalg_inv(self)",
    tags=("autocast_float32",),
    out="out",
)
op(
    "linalg_det(Tensor A) -> Tensor",
    doc="The determinant of the matrices.",
    grad={"A": "_det_backward(grad, A, result)"},
    out="out",
    shape="A[:-2]",
    result="A",
    tags=("autocast_float32",),
)


@backward_of("_det_backward(Tensor grad, Tensor A, Tensor result) -> Tensor")
def _det_backward(grad: Any, A: Any, result: Any) -> Any:
    """The gradient of the determinant of regular matrices."""
    scale = (grad * result.conj()).unsqueeze(-1).unsqueeze(-1)
    return scale * ops.linalg_inv(A).mH


op("det(Tensor self) -> Tensor", doc="The determinant.", compose="linalg_det(self)")
op(
    "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    doc="The sign of the determinant and the logarithm of its absolute value.",
    grad={"A": "_slogdet_backward(grads[0], grads[1], A, result0)"},
    out="out",
    shape="A[:-2]",
    tags=("autocast_float32",),
)


@backward_of(
    "_slogdet_backward(Tensor grad_sign, Tensor grad_size, Tensor A, Tensor sign) -> Tensor"
)
def _slogdet_backward(grad_sign: Any, grad_size: Any, A: Any, sign: Any) -> Any:
    """The gradient of slogdet of regular matrices."""
    # d log|det A| is the real part of tr(A^-1 dA), d sign is sign times its imaginary part.
    scale = grad_size.unsqueeze(-1).unsqueeze(-1)
    if A.is_complex():
        turn = (grad_sign.conj() * sign).unsqueeze(-1).unsqueeze(-1)
        return (scale - (turn - turn.conj()) * 0.5) * ops.linalg_inv(A).mH
    return scale * ops.linalg_inv(A).mH


op(
    "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)",
    doc="The sign of the determinant and the logarithm of its absolute value.",
    compose="linalg_slogdet(self)",
    out="out",
)
op(
    "logdet(Tensor self) -> Tensor",
    doc="The logarithm of the determinant; NaN where that is negative.",
    tags=("composite",),
)
backward_op(
    "_solve(Tensor A, Tensor B) -> Tensor",
    doc="X with A @ X = B; B one vector for each matrix, or matrices.",
    grad={
        "A": "_solve_backward_matrix(_solve(A.mH, grad), result, "
        "B.dim() == 1 or B.shape == A.shape[:-1])",
        "B": "_solve(A.mH, grad)",
    },
    shape="solved(A, B)",
    result="B",
)


@backward_of("_solve_backward_matrix(Tensor upstream, Tensor result, bool vector) -> Tensor")
def _solve_backward_matrix(upstream: Any, result: Any, vector: Any) -> Any:
    """The gradient of a solution for the matrices."""
    # upstream: the gradient for the right-hand side.
    if vector:
        return -(upstream.unsqueeze(-1) * result.conj().unsqueeze(-2))
    return -(upstream.matmul(result.mH))


@body_of(
    "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
    out="out",
    tags=("autocast_float32",),
)
def _solve(A: Any, B: Any, left: Any) -> Any:
    """X with A @ X = B (left=False: X @ A = B)."""
    if left:
        return ops._solve(A, B)
    return ops._solve(A.transpose(-2, -1), B.transpose(-2, -1)).transpose(-2, -1)


backward_op(
    "_solve_triangular(Tensor A, Tensor B, bool upper, bool unitriangular) -> Tensor",
    doc="X with A @ X = B for triangular matrices.",
    grad={
        "A": "_triangle(-(_solve_triangular(A.mH, grad, not upper, unitriangular)"
        ".matmul(result.mH)), upper, unitriangular)",
        "B": "_solve_triangular(A.mH, grad, not upper, unitriangular)",
    },
    shape="[*broadcast(A[:-2], B[:-2]), *B[-2:]]",
    result="B",
)


@backward_of("_triangle(Tensor self, bool upper, bool without_diagonal) -> Tensor")
def _triangle(self: Any, upper: Any, without_diagonal: Any) -> Any:
    """One triangle of the matrices, zeros in the other."""
    if upper:
        return self.triu(1 if without_diagonal else 0)
    return self.tril(-1 if without_diagonal else 0)


@body_of(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, "
    "bool unitriangular=False) -> Tensor",
    out="out",
    tags=("autocast_float32",),
)
def _solve_triangular(self: Any, B: Any, upper: Any, left: Any, unitriangular: Any) -> Any:
    """X with self @ X = B for triangular matrices (left=False: X @ self = B)."""
    if left:
        return ops._solve_triangular(self, B, upper, unitriangular)
    return ops._solve_triangular(
        self.transpose(-2, -1), B.transpose(-2, -1), not upper, unitriangular
    ).transpose(-2, -1)
