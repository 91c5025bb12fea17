"""Approximations of matrices by few singular vectors (Halko, Martinsson and Tropp, 2011)."""

from __future__ import annotations

from weft import _C, linalg
from weft._C import Tensor
from weft._runtime.torch_function import declare as _declare


def get_approximate_basis(
    A: Tensor, q: int, niter: int | None = 2, M: Tensor | None = None
) -> Tensor:
    """Q [*, m, q] with orthonormal columns, so that Q Q^H A is near to A [*, m, n].

    A - M is meant where M is given; niter rounds of products with A and A^H sharpen Q.

    >>> get_approximate_basis(weft.eye(3, 2), 1).shape
    torch.Size([3, 1])
    """
    rounds = 2 if niter is None else niter
    dtype = A.dtype if A.is_floating_point() or A.is_complex() else _C.get_default_dtype()
    a = A.to(dtype) if M is None else A.to(dtype) - M
    basis = linalg.qr(a @ _C.randn(A.size(-1), q, dtype=dtype)).Q
    for _ in range(rounds):
        basis = linalg.qr(a.mH @ basis).Q
        basis = linalg.qr(a @ basis).Q
    return basis


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """U [*, m, q], S [*, q] and V [*, n, q] with A (or A - M) near to U diag(S) V^H.

    Drawn from the random stream. q is an upper estimate of the rank of A [*, m, n]; niter rounds
    sharpen the result.

    >>> U, S, V = svd_lowrank(weft.tensor([[3.0, 0.0], [0.0, 0.0]]), 1)
    >>> S
    tensor([3.])
    """
    rank = 6 if q is None else q
    a = A if M is None else A - M.expand(A.shape)
    wide = a.size(-2) < a.size(-1)
    if wide:  # the basis of the shorter side costs less
        a = a.mH
    basis = get_approximate_basis(a, rank, niter)
    u, s, vh = linalg.svd(basis.mH @ a, full_matrices=False)
    left, right = basis @ u, vh.mH
    return (right, s, left) if wide else (left, s, right)


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """svd_lowrank of A [*, m, n], of which each column's mean is taken where `center` is true.

    q is min(6, m, n) unless given. The columns of V are the principal directions. Raises ValueError
    for q outside [0, min(m, n)] and a negative niter.

    >>> S = pca_lowrank(weft.tensor([[1.0, 0.0], [3.0, 0.0]]), 1)[1]
    >>> S
    tensor([1.4142])
    """
    m, n = A.shape[-2:]
    rank = min(6, m, n) if q is None else q
    if not 0 <= rank <= min(m, n):
        raise ValueError(f"pca_lowrank: expected q in [0, {min(m, n)}], got {rank}")
    if niter < 0:
        raise ValueError(f"pca_lowrank: expected niter of at least 0, got {niter}")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, rank, niter)


_declare(globals(), ("pca_lowrank", "svd_lowrank"))
