"""Products of several kinds, and the decompositions of matrices."""

from __future__ import annotations

from typing import Any

from weft._ops.table import backward_op, op, ops

# ---- products ----


def _cross(self: Any, other: Any, dim: Any) -> Any:
    sizes = ops.broadcast_sizes(self.shape, other.shape)
    a, b = self.expand(sizes), other.expand(sizes)
    ops.check(a.size(dim) == 3, "cross: expected 3 entries along dim ", dim, ", got shape ", sizes)
    return a.roll([-1], [dim]) * b.roll([-2], [dim]) - a.roll([-2], [dim]) * b.roll([-1], [dim])


def _cdist(x1: Any, x2: Any, p: Any, compute_mode: Any) -> Any:
    ops.check(
        x1.dim() >= 2 and x2.dim() >= 2 and x1.size(-1) == x2.size(-1),
        "cdist: expected shapes (..., m, k) and (..., n, k), got ", x1.shape, " and ", x2.shape,
    )  # fmt: skip
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).linalg_vector_norm(p, [-1])


op(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    doc="The vector product along `dim`, of 3 entries.",
    compose=_cross,
    variants="",
)
op(
    "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
    doc="The vector product along `dim` (None: the first of 3 entries).",
    native="cross",
    tags=("composite",),
)
op(
    "kron(Tensor self, Tensor other) -> Tensor",
    doc="Kronecker's product: each entry of self times all of other.",
    native="kron",
    tags=("composite",),
)
op(
    "cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor",
    doc="The p-norm distances between the rows of x1 and those of x2.",
    compose=_cdist,
)
op(
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    doc="The p-norm of self - other.",
    compose="linalg_vector_norm(self - other, p)",
)
op(
    "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    doc="Products summed over the dimensions dims_self and dims_other.",
    native="tensordot",
    tags=("composite",),
    variants="",
)
op(
    "inner(Tensor self, Tensor other) -> Tensor",
    doc="Products summed over the last dimension of both.",
    native="inner",
    tags=("composite",),
)
op(
    "matrix_power(Tensor self, int n) -> Tensor",
    doc="The product of n copies of the matrices (n < 0: of their inverses).",
    native="matrix_power",
    tags=("composite",),
)

# ---- solving ----


def _det_backward(grad: Any, A: Any, result: Any) -> Any:
    scale = (grad * result).unsqueeze(-1).unsqueeze(-1)
    return scale * ops.linalg_inv(A).transpose(-2, -1)


def _solve_backward_matrix(upstream: Any, result: Any, vector: Any) -> Any:
    """upstream: the gradient for the right-hand side."""
    if vector:
        return -(upstream.unsqueeze(-1) * result.unsqueeze(-2))
    return -(upstream.matmul(result.transpose(-2, -1)))


def _solve(A: Any, B: Any, left: Any) -> Any:
    if left:
        return ops._solve(A, B)
    return ops._solve(A.transpose(-2, -1), B.transpose(-2, -1)).transpose(-2, -1)


op(
    "linalg_inv(Tensor A) -> Tensor",
    doc="The inverse of the matrices.",
    native="linalg_inv",
    grad={"A": "-(result.transpose(-2, -1).matmul(grad).matmul(result.transpose(-2, -1)))"},
    variants="",
)
op(
    "inverse(Tensor self) -> Tensor",
    doc="The inverse of the matrices.",
    compose="linalg_inv(self)",
)
op(
    "linalg_det(Tensor A) -> Tensor",
    doc="The determinant of the matrices.",
    native="linalg_det",
    grad={"A": "_det_backward(grad, A, result)"},
    variants="",
)
backward_op(
    "_det_backward(Tensor grad, Tensor A, Tensor result) -> Tensor",
    doc="The gradient of the determinant of regular matrices.",
    compose=_det_backward,
)
op("det(Tensor self) -> Tensor", doc="The determinant.", compose="linalg_det(self)")
op(
    "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    doc="The sign of the determinant and the logarithm of its absolute value.",
    native="linalg_slogdet",
    grad={"A": "grads[1].unsqueeze(-1).unsqueeze(-1) * linalg_inv(A).transpose(-2, -1)"},
    variants="",
)
op(
    "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)",
    doc="The sign of the determinant and the logarithm of its absolute value.",
    compose="linalg_slogdet(self)",
)
op(
    "logdet(Tensor self) -> Tensor",
    doc="The logarithm of the determinant; NaN where that is negative.",
    native="logdet",
    tags=("composite",),
)
backward_op(
    "_solve(Tensor A, Tensor B) -> Tensor",
    doc="X with A @ X = B; B one vector for each matrix, or matrices.",
    native="_solve",
    grad={
        "A": "_solve_backward_matrix(_solve(A.transpose(-2, -1), grad), result, "
        "B.dim() == 1 or B.shape == A.shape[:-1])",
        "B": "_solve(A.transpose(-2, -1), grad)",
    },
)
backward_op(
    "_solve_backward_matrix(Tensor upstream, Tensor result, bool vector) -> Tensor",
    doc="The gradient of a solution for the matrices.",
    compose=_solve_backward_matrix,
)
op(
    "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
    doc="X with A @ X = B (left=False: X @ A = B).",
    compose=_solve,
    variants="",
)
backward_op(
    "_solve_triangular(Tensor A, Tensor B, bool upper, bool unitriangular) -> Tensor",
    doc="X with A @ X = B for triangular matrices.",
    native="_solve_triangular",
    grad={
        "A": "_triangle(-(_solve_triangular(A.transpose(-2, -1), grad, not upper, unitriangular)"
        ".matmul(result.transpose(-2, -1))), upper, unitriangular)",
        "B": "_solve_triangular(A.transpose(-2, -1), grad, not upper, unitriangular)",
    },
)


def _triangle(self: Any, upper: Any, without_diagonal: Any) -> Any:
    if upper:
        return self.triu(1 if without_diagonal else 0)
    return self.tril(-1 if without_diagonal else 0)


backward_op(
    "_triangle(Tensor self, bool upper, bool without_diagonal) -> Tensor",
    doc="One triangle of the matrices, zeros in the other.",
    compose=_triangle,
)


def _solve_triangular(self: Any, B: Any, upper: Any, left: Any, unitriangular: Any) -> Any:
    if left:
        return ops._solve_triangular(self, B, upper, unitriangular)
    return ops._solve_triangular(
        self.transpose(-2, -1), B.transpose(-2, -1), not upper, unitriangular
    ).transpose(-2, -1)


op(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, "
    "bool unitriangular=False) -> Tensor",
    doc="X with self @ X = B for triangular matrices (left=False: X @ self = B).",
    compose=_solve_triangular,
    variants="",
)

# ---- decompositions ----


def _cholesky_backward(grad: Any, L: Any) -> Any:
    inverse = ops.linalg_inv(L)
    phi = L.transpose(-2, -1).matmul(grad).tril()
    phi = phi - phi.tril().triu() * 0.5
    s = inverse.transpose(-2, -1).matmul(phi).matmul(inverse)
    return (s + s.transpose(-2, -1)) * 0.5


def _cholesky(self: Any, upper: Any) -> Any:
    if upper:
        return ops._cholesky(self.transpose(-2, -1)).transpose(-2, -1)
    return ops._cholesky(self)


backward_op(
    "_cholesky(Tensor self) -> Tensor",
    doc="The lower triangle L with L @ L.T = self.",
    native="_cholesky",
    grad={"self": "_cholesky_backward(grad, result)"},
)
backward_op(
    "_cholesky_backward(Tensor grad, Tensor L) -> Tensor",
    doc="The gradient of Cholesky's decomposition.",
    compose=_cholesky_backward,
)
op(
    "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
    doc="The triangle L with L @ L.T = self, for symmetric positive-definite matrices.",
    compose=_cholesky,
    variants="",
)
op(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    doc="linalg.cholesky.",
    compose=_cholesky,
)


def _cholesky_solve(self: Any, input2: Any, upper: Any) -> Any:
    turned = input2.transpose(-2, -1)
    if upper:
        half = ops._solve_triangular(turned, self, False, False)
        return ops._solve_triangular(input2, half, True, False)
    return ops._solve_triangular(
        turned, ops._solve_triangular(input2, self, False, False), True, False
    )


op(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    doc="X with A @ X = self, from the Cholesky triangle of A.",
    compose=_cholesky_solve,
)
op(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    doc="The inverse of A from its Cholesky triangle.",
    compose="linalg_inv(self.transpose(-2, -1).matmul(self) if upper "
    "else self.matmul(self.transpose(-2, -1)))",
)


def _eigh_backward(grad_values: Any, grad_vectors: Any, values: Any, vectors: Any) -> Any:
    gap = values.unsqueeze(-2) - values.unsqueeze(-1)
    gap = gap.masked_fill(gap == 0, ops.inf)
    turned = vectors.transpose(-2, -1)
    inner = turned.matmul(grad_vectors) / gap + grad_values.diag_embed()
    return vectors.matmul(inner).matmul(turned)


op(
    'linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)',
    doc="The eigenvalues, in order, and the eigenvectors of symmetric matrices.",
    native="linalg_eigh",
    grad={"self": "_eigh_backward(grads[0], grads[1], result0, result1)"},
    variants="",
)
backward_op(
    "_eigh_backward(Tensor grad_values, Tensor grad_vectors, Tensor values, Tensor vectors)"
    " -> Tensor",
    doc="The gradient of linalg_eigh.",
    compose=_eigh_backward,
)
op(
    'linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor',
    doc="The eigenvalues of symmetric matrices, in order.",
    compose="linalg_eigh(self, UPLO)[0]",
    variants="",
)


def _qr_backward(grad_q: Any, grad_r: Any, q: Any, r: Any) -> Any:
    ops.check(
        q.size(-1) == r.size(-1) and q.size(-2) >= q.size(-1),
        "linalg_qr: expected the reduced mode and no more columns than rows for a gradient, "
        "got Q of shape ", q.shape,
    )  # fmt: skip
    m = r.matmul(grad_r.transpose(-2, -1)) - grad_q.transpose(-2, -1).matmul(q)
    symmetric = m.tril() + m.tril(-1).transpose(-2, -1)
    right = grad_q + q.matmul(symmetric)
    return ops._solve_triangular(r, right.transpose(-2, -1), True, False).transpose(-2, -1)


op(
    'linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)',
    doc="Q with orthonormal columns and an upper triangle R, A = Q @ R.",
    native="linalg_qr",
    grad={"A": "_qr_backward(grads[0], grads[1], result0, result1)"},
    variants="",
)
backward_op(
    "_qr_backward(Tensor grad_q, Tensor grad_r, Tensor q, Tensor r) -> Tensor",
    doc="The gradient of linalg_qr.",
    compose=_qr_backward,
)


def _svd_backward(grad_u: Any, grad_s: Any, grad_v: Any, u: Any, s: Any, vh: Any) -> Any:
    ops.check(
        u.size(-1) == s.size(-1) and vh.size(-2) == s.size(-1),
        "linalg_svd: expected full_matrices=False for a gradient, got U of shape ", u.shape,
    )  # fmt: skip
    square = s * s
    gap = square.unsqueeze(-2) - square.unsqueeze(-1)
    gap = gap.masked_fill(gap == 0, ops.inf)
    ut, v = u.transpose(-2, -1), vh.transpose(-2, -1)
    along_u = ut.matmul(grad_u)
    along_v = grad_v.matmul(v).transpose(-2, -1)
    inner = ((along_u - along_u.transpose(-2, -1)) / gap) * s.unsqueeze(-2)
    inner = inner + ((along_v - along_v.transpose(-2, -1)) / gap) * s.unsqueeze(-1)
    result = u.matmul(inner + grad_s.diag_embed()).matmul(vh)
    if u.size(-2) > u.size(-1):
        outside = (grad_u - u.matmul(along_u)) / s.unsqueeze(-2)
        result = result + outside.matmul(vh)
    if vh.size(-1) > vh.size(-2):
        beside = (grad_v - grad_v.matmul(v).matmul(vh)) / s.unsqueeze(-1)
        result = result + u.matmul(beside)
    return result


op(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None)"
    " -> (Tensor U, Tensor S, Tensor Vh)",
    doc="A = U @ diag(S) @ Vh with orthonormal U and Vh; S from the greatest on.",
    native="linalg_svd",
    grad={"A": "_svd_backward(grads[0], grads[1], grads[2], result0, result1, result2)"},
    variants="",
)
backward_op(
    "_svd_backward(Tensor grad_u, Tensor grad_s, Tensor grad_v, Tensor u, Tensor s, Tensor vh)"
    " -> Tensor",
    doc="The gradient of the reduced linalg_svd.",
    compose=_svd_backward,
)
op(
    "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
    doc="The singular values, from the greatest on.",
    compose="linalg_svd(A, False)[1]",
    variants="",
)
op(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    doc="The singular value decomposition with V instead of its transpose.",
    native="svd",
    tags=("composite",),
)
op(
    "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
    doc="linalg.qr; some=False gives the complete Q.",
    compose='linalg_qr(self, "reduced" if some else "complete")',
)
