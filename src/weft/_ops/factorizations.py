"""Factors of matrices for later use, and eigenvalues of any square matrix."""

from __future__ import annotations

from typing import Any

from weft._ops.table import backward_of, backward_op, op, ops

op(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    doc="The eigenvalues and the eigenvectors of length 1, complex, of square matrices.",
    grad={"self": "_eig_backward(grads[0], grads[1], result0, result1)"},
    out="out",
    tags=("casts_out",),
    shape="each(self[:-1], self)",
)


@backward_of(
    "_eig_backward(Tensor grad_values, Tensor grad_vectors, Tensor values, Tensor vectors)"
    " -> Tensor"
)
def _eig_backward(grad_values: Any, grad_vectors: Any, values: Any, vectors: Any) -> Any:
    """The gradient of linalg_eig."""
    # Boeddeker et al., On the computation of complex-valued gradients, 2017, section 4.18.
    # A vector of length 1 has no freedom along itself: that part of its gradient is taken out.
    turned = vectors.mH
    turn = turned.matmul(grad_vectors)
    along = ops.real(turn.diagonal(0, -2, -1)).unsqueeze(-2)
    gap = (values.unsqueeze(-2) - values.unsqueeze(-1)).conj()
    gap = gap.masked_fill(gap == 0, ops.inf)
    inner = (turn - turned.matmul(vectors) * along) / gap + grad_values.diag_embed()
    return ops._solve(turned, inner.matmul(turned))


op(
    "linalg_eigvals(Tensor self) -> Tensor",
    doc="The eigenvalues, complex, of square matrices.",
    compose="linalg_eig(self)[0]",
    out="out",
    tags=("casts_out",),
)


backward_op(
    "_lu_factor(Tensor A, bool check_errors) -> (Tensor LU, Tensor pivots, Tensor permutation, "
    "Tensor info)",
    doc="L and U in one matrix, the exchanges of rows that LAPACK made, the row of L @ U that each "
    "row of A is, and 0 or the number of a zero pivot.",
    grad={"A": "_lu_backward(grads[0], result0, result2)"},
    shape="each(A, [*A[:-2], smaller(*A[-2:])], A[:-1], A[:-2])",
)


@backward_of("_lu_backward(Tensor grad, Tensor LU, Tensor permutation) -> Tensor")
def _lu_backward(grad: Any, LU: Any, permutation: Any) -> Any:
    """The gradient of _lu_factor."""
    # Columns beyond a square are L^-1 A there, rows beyond it A U^-1: they send gradients to the
    # factor of the square as well.
    rows, columns = LU.size(-2), LU.size(-1)
    k = min(rows, columns)
    square = LU.narrow(-2, 0, k).narrow(-1, 0, k)
    lower = square.tril(-1) + ops.ones_like(square).tril().triu()
    upper = square.triu()
    grad_square = grad.narrow(-2, 0, k).narrow(-1, 0, k)
    grad_lower, grad_upper = grad_square.tril(-1), grad_square.triu()
    if columns > rows:
        right = LU.narrow(-1, k, columns - k)
        sent = ops._solve_triangular(lower.mH, grad.narrow(-1, k, columns - k), True, True)
        first = ops._square_lu_backward(
            grad_lower - sent.matmul(right.mH), grad_upper, lower, upper
        )
        return ops._rows_at(ops.cat([first, sent], -1), permutation)
    if rows > columns:
        below = LU.narrow(-2, k, rows - k)
        sent = ops._solve_triangular(upper, grad.narrow(-2, k, rows - k).mH, True, False).mH
        first = ops._square_lu_backward(
            grad_lower, grad_upper - below.mH.matmul(sent), lower, upper
        )
        return ops._rows_at(ops.cat([first, sent], -2), permutation)
    return ops._rows_at(ops._square_lu_backward(grad_lower, grad_upper, lower, upper), permutation)


@backward_of(
    "_square_lu_backward(Tensor grad_lower, Tensor grad_upper, Tensor lower, Tensor upper)"
    " -> Tensor"
)
def _square_lu_backward(grad_lower: Any, grad_upper: Any, lower: Any, upper: Any) -> Any:
    """The gradient of the factors of square matrices, rows in the order of the factors."""
    # dL = L tril(L^-1 dA U^-1, -1) and dU = triu(L^-1 dA U^-1) U, read backward.
    inner = lower.mH.matmul(grad_lower).tril(-1) + grad_upper.matmul(upper.mH).triu()
    left = ops._solve_triangular(lower.mH, inner, True, True)
    return ops._solve_triangular(upper, left.mH, True, False).mH


backward_op(
    "_rows_at(Tensor self, Tensor permutation) -> Tensor",
    doc="The rows of matrices in another order.",
    compose="self.gather(-2, permutation.unsqueeze(-1).expand(self.shape))",
)
backward_op(
    "_ldl_factor(Tensor self, bool hermitian) -> (Tensor LD, Tensor pivots, Tensor info)",
    doc="L and D in one matrix, LAPACK's exchanges, and 0 or the number of a zero block.",
    no_gradient=("self",),
    shape="each(self, self[:-1], self[:-2])",
)
backward_op(
    "_ldl_solve(Tensor LD, Tensor pivots, Tensor B, bool hermitian) -> Tensor",
    doc="X with A @ X = B for the A of which LD and pivots are the factors.",
    no_gradient=("LD", "B"),
    like="B",
)
op(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    doc="QR as LAPACK gives it: R in the upper triangle of a, and below it the vectors of the "
    "reflections that make Q, whose scales are tau.",
    no_gradient=("self",),
    tags=("casts_out",),
    out="a",
    shape="each(self, [*self[:-2], smaller(*self[-2:])])",
)
