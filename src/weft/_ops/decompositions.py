"""The decompositions of matrices: Cholesky, eigenvalues, QR, SVD."""

from __future__ import annotations

from typing import Any

from weft._ops.table import backward_of, backward_op, body_of, op, ops

backward_op(
    "_cholesky(Tensor self, bool check_errors) -> (Tensor L, Tensor info)",
    doc="The lower triangle L with L @ L.mH = self, and what LAPACK says of each matrix.",
    grad={"self": "_cholesky_backward(grads[0], result0)"},
    shape="each(self, self[:-2])",
)


@backward_of("_cholesky_backward(Tensor grad, Tensor L) -> Tensor")
def _cholesky_backward(grad: Any, L: Any) -> Any:
    """The gradient of Cholesky's decomposition."""
    # Murray, Differentiation of the Cholesky decomposition, 2016.
    lower = L.mH.matmul(grad).tril()
    phi = (lower + lower.tril(-1).mH) * 0.5
    left = ops._solve_triangular(L.mH, phi, True, False)
    return ops._solve_triangular(L.mH, left.mH, True, False).mH


@body_of(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False)"
    " -> (Tensor L, Tensor info)",
    grad={
        "self": "_cholesky_backward(grads[0].mH if upper else grads[0], "
        "result0.mH if upper else result0)"
    },
    tags=("autocast_float32",),
    out="L",
)
def _cholesky_ex(self: Any, upper: Any, check_errors: Any) -> Any:
    """The triangle L with L @ L.mH = self, and for each matrix 0 or the order of the first leading
    minor that is not positive (int32): there L is unfinished, unless check_errors raises
    LinAlgError."""
    result = ops._cholesky(self.mH if upper else self, check_errors)
    return (result[0].mH if upper else result[0]), result[1]


op(
    "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
    doc="The triangle L with L @ L.mH = self, for Hermitian positive-definite matrices.",
    compose="linalg_cholesky_ex(self, upper=upper, check_errors=True)[0]",
    tags=("autocast_float32",),
    out="out",
)
op(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    doc="linalg.cholesky, under its old name.",
    compose="linalg_cholesky(self, upper=upper)",
    out="out",
    tags=("casts_out",),
)


@body_of(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    grad={
        "self": "cholesky_solve(grad, input2, upper)",
        "input2": "_cholesky_solve_backward(cholesky_solve(grad, input2, upper), result, input2, "
        "upper)",
    },
    out="out",
    tags=("casts_out",),
)
def _cholesky_solve(self: Any, input2: Any, upper: Any) -> Any:
    """X with A @ X = self, from the Cholesky triangle of A."""
    turned = input2.mH
    if upper:
        half = ops._solve_triangular(turned, self, False, False)
        return ops._solve_triangular(input2, half, True, False)
    return ops._solve_triangular(
        turned, ops._solve_triangular(input2, self, False, False), True, False
    )


@backward_of(
    "_cholesky_solve_backward(Tensor upstream, Tensor result, Tensor input2, bool upper) -> Tensor"
)
def _cholesky_solve_backward(upstream: Any, result: Any, input2: Any, upper: Any) -> Any:
    """The gradient of cholesky_solve for its triangle."""
    # As if all of input2 were read, as PyTorch has it; upstream: the gradient for self.
    both = upstream.matmul(result.mH)
    both = both + both.mH
    return -(input2.matmul(both)) if upper else -(both.matmul(input2))


def _cholesky_inverse(self: Any, upper: Any) -> Any:
    """Of the triangle alone, but with the gradient as if all were read, as PyTorch has it."""
    n = self.dim()
    ops.check(
        n >= 2 and self.size(n - 2) == self.size(n - 1),
        "cholesky_inverse: expected square matrices, got shape ",
        self.shape,
    )
    other = self.tril(-1) if upper else self.triu(1)
    half = (self - other.detach()).masked_fill((other - other).isnan(), 0)
    return ops.cholesky_solve(ops.ones_like(self).tril().triu(), half, upper)


op(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    doc="The inverse of A from its Cholesky triangle.",
    compose=_cholesky_inverse,
    out="out",
    tags=("casts_out",),
)


op(
    'linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)',
    doc="The eigenvalues, in order, and the eigenvectors of Hermitian matrices.",
    grad={"self": "_eigh_backward(grads[0], grads[1], result0, result1)"},
    out="eigvals",
    shape="each(self[:-1], self)",
    tags=("autocast_float32",),
)


@backward_of(
    "_eigh_backward(Tensor grad_values, Tensor grad_vectors, Tensor values, Tensor vectors)"
    " -> Tensor"
)
def _eigh_backward(grad_values: Any, grad_vectors: Any, values: Any, vectors: Any) -> Any:
    """The gradient of linalg_eigh."""
    gap = values.unsqueeze(-2) - values.unsqueeze(-1)
    gap = gap.masked_fill(gap == 0, ops.inf)
    turned = vectors.mH
    # What turns the vectors into each other; what would stretch them is no freedom of theirs.
    turn = turned.matmul(grad_vectors)
    inner = (turn - turn.mH) * 0.5 / gap + grad_values.diag_embed()
    return vectors.matmul(inner).matmul(turned)


op(
    'linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor',
    doc="The eigenvalues of Hermitian matrices, in order.",
    compose="linalg_eigh(self, UPLO)[0]",
    out="out",
    tags=("autocast_float32",),
)


op(
    'linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)',
    doc="Q with orthonormal columns and an upper triangle R, A = Q @ R.",
    tags=("autocast_float32",),
    grad={"A": "_qr_backward(grads[0], grads[1], result0, result1)"},
    out="out",
    shape="each([0] if mode == 'r' else [*A[:-1], A[-2] if mode == 'complete' else "
    "smaller(*A[-2:])], "
    "[*A[:-2], A[-2] if mode == 'complete' else smaller(*A[-2:]), A[-1]])",
)


@backward_of("_qr_backward(Tensor grad_q, Tensor grad_r, Tensor q, Tensor r) -> Tensor")
def _qr_backward(grad_q: Any, grad_r: Any, q: Any, r: Any) -> Any:
    """The gradient of linalg_qr."""
    # Of more columns than rows, the first make Q; the others are Q.mH @ A, without freedom.
    ops.check(
        q.dim() > 1 and q.size(-1) == min(q.size(-2), r.size(-1)),
        "linalg_qr: expected the reduced mode, or no more rows than columns, for a gradient, "
        "got Q of shape ", q.shape,
    )  # fmt: skip
    rows, columns = r.size(-2), r.size(-1)
    if columns <= rows:
        return ops._tall_qr_backward(grad_q, grad_r, q, r)
    rest, grad_rest = r.narrow(-1, rows, columns - rows), grad_r.narrow(-1, rows, columns - rows)
    first = ops._tall_qr_backward(
        grad_q + q.matmul(rest).matmul(grad_rest.mH),
        grad_r.narrow(-1, 0, rows), q, r.narrow(-1, 0, rows),
    )  # fmt: skip
    return ops.cat([first, q.matmul(grad_rest)], -1)


@backward_of("_tall_qr_backward(Tensor grad_q, Tensor grad_r, Tensor q, Tensor r) -> Tensor")
def _tall_qr_backward(grad_q: Any, grad_r: Any, q: Any, r: Any) -> Any:
    """The gradient of linalg_qr of no more columns than rows."""
    m = r.matmul(grad_r.mH) - grad_q.mH.matmul(q)
    below = m.tril(-1)
    hermitian = below + below.mH + ops.real(m.diagonal(0, -2, -1)).diag_embed()
    right = grad_q + q.matmul(hermitian)
    return ops._solve_triangular(r, right.mH, True, False).mH


backward_op(
    "_pinv(Tensor A, Tensor inverse) -> Tensor",
    doc="The pseudo-inverse of A, known already, with its history.",
    compose="inverse.clone()",
    grad={"A": "_pinv_backward(grad, A, result)"},
)


@backward_of("_pinv_backward(Tensor grad, Tensor A, Tensor inverse) -> Tensor")
def _pinv_backward(grad: Any, A: Any, inverse: Any) -> Any:
    """The gradient of the pseudo-inverse of matrices of locally constant rank."""
    # Golub and Pereyra, The differentiation of pseudo-inverses, 1973.
    turned, flow = inverse.mH, grad.mH
    beyond = flow - A.matmul(inverse.matmul(flow))
    behind = flow - flow.matmul(inverse).matmul(A)
    return (
        beyond.matmul(inverse).matmul(turned)
        + turned.matmul(inverse).matmul(behind)
        - turned.matmul(grad).matmul(turned)
    )


op(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None)"
    " -> (Tensor U, Tensor S, Tensor Vh)",
    doc="A = U @ diag(S) @ Vh with orthonormal U and Vh; S from the greatest on.",
    grad={"A": "_svd_backward(grads[0], grads[1], grads[2], result0, result1, result2)"},
    out="U",
    shape="each([*A[:-1], A[-2] if full_matrices else smaller(*A[-2:])], "
    "[*A[:-2], smaller(*A[-2:])], "
    "[*A[:-2], A[-1] if full_matrices else smaller(*A[-2:]), A[-1]])",
    tags=("autocast_float32",),
)


@backward_of(
    "_svd_backward(Tensor grad_u, Tensor grad_s, Tensor grad_v, Tensor u, Tensor s, Tensor vh)"
    " -> Tensor"
)
def _svd_backward(grad_u: Any, grad_s: Any, grad_v: Any, u: Any, s: Any, vh: Any) -> Any:
    """The gradient of linalg_svd."""
    # Of the reduced form; the other columns of full matrices are as good as constant.
    k = s.size(-1)
    if u.size(-1) > k:
        return ops._svd_backward(grad_u.narrow(-1, 0, k), grad_s, grad_v, u.narrow(-1, 0, k), s, vh)
    if vh.size(-2) > k:
        return ops._svd_backward(grad_u, grad_s, grad_v.narrow(-2, 0, k), u, s, vh.narrow(-2, 0, k))
    square = s * s
    gap = square.unsqueeze(-2) - square.unsqueeze(-1)
    gap = gap.masked_fill(gap == 0, ops.inf)
    size = s.masked_fill(s == 0, ops.inf)  # the vectors of 0 are as good as constant
    along_u = u.mH.matmul(grad_u)
    along_v = grad_v.matmul(vh.mH).mH
    turn_u, turn_v = along_u - along_u.mH, along_v - along_v.mH
    inner = turn_u / gap * s.unsqueeze(-2) + turn_v / gap * s.unsqueeze(-1)
    if u.is_complex():
        # U and V are free in one phase for each column; what they share of it is in A.
        inner = inner + (turn_u.diagonal(0, -2, -1) / (size * 2)).diag_embed()
    result = u.matmul(inner + grad_s.diag_embed()).matmul(vh)
    if u.size(-2) > k:
        outside = (grad_u - u.matmul(along_u)) / size.unsqueeze(-2)
        result = result + outside.matmul(vh)
    if vh.size(-1) > k:
        beside = (grad_v - grad_v.matmul(vh.mH).matmul(vh)) / size.unsqueeze(-1)
        result = result + u.matmul(beside)
    return result


op(
    "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
    doc="The singular values, from the greatest on.",
    compose="linalg_svd(A, False)[1]",
    out="out",
    tags=("autocast_float32",),
)
op(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    doc="The singular value decomposition with V instead of its transpose.",
    tags=("composite",),
    out="U",
)
op(
    "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
    doc="linalg.qr; some=False gives the complete Q.",
    compose='linalg_qr(self, "reduced" if some else "complete")',
    out="Q",
)
