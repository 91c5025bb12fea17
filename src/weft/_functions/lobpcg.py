"""A few extreme eigenvalues of a large symmetric matrix, of which only products are taken."""

from __future__ import annotations

from itertools import repeat
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.torch_function import declare as _declare
from weft._tensor.limits import finfo
from weft.autograd import Function
from weft.autograd.grad_mode import is_grad_enabled

_METHODS = ("basic", "ortho")


def _product(matrix: Tensor | None, x: Tensor) -> Tensor:
    """matrix @ x; None is the identity."""
    return x if matrix is None else matrix @ x


def _orthonormal(columns: Tensor, B: Tensor | None) -> Tensor:
    """A basis of what the columns span, orthonormal in the inner product of B.

    Columns that depend on others are left out (Stathopoulos and Wu, 2002: SVQB).
    """
    for _ in range(2):
        gram = columns.mT @ _product(B, columns)
        scale = gram.diagonal().clamp(min=finfo(columns.dtype).tiny).rsqrt()
        values, vectors = _C._aten.linalg_eigh(gram * scale * scale.unsqueeze(-1))
        kept = values > values[-1] * (10 * finfo(columns.dtype).eps)
        turn = vectors[:, kept] * values[kept].rsqrt()
        columns = columns @ (turn * scale.unsqueeze(-1))
    return columns


def _ritz(A: Tensor, basis: Tensor, n: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The n extreme eigenvalues of A on the span of a basis, and their vectors in the basis."""
    small = basis.mT @ _product(A, basis)
    values, vectors = _C._aten.linalg_eigh((small + small.mT) / 2)
    if largest:
        values, vectors = values.flip(0), vectors.flip(1)
    return values[:n], vectors[:, :n]


def _iterate(
    A: Tensor, B: Tensor | None, X: Tensor, k: int, iK: Tensor | None, niter: int, tol: float,
    largest: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Knyazev, 2001: Toward the optimal preconditioned eigensolver."""
    X = _orthonormal(X, B)
    n = X.shape[1]
    values, turn = _ritz(A, X, n, largest)
    X, step = X @ turn, X[:, :0]
    while niter != 0:
        AX, BX = A @ X, _product(B, X)
        residual = AX - BX * values
        size = AX.norm(2, 0) + BX.norm(2, 0) * values.abs()
        if bool((residual.norm(2, 0) <= tol * size)[:k].all()):
            break
        more = _C.cat([_product(iK, residual), step], 1)
        for _ in range(2):
            more = more - X @ (BX.mT @ more)
        more = _orthonormal(more, B)
        basis = _C.cat([X, more], 1)
        values, turn = _ritz(A, basis, n, largest)
        X, step = basis @ turn, more @ turn[n:]
        niter -= 1
    return values[:k], X[:, :k]


class _Eigenpairs(Function):
    """The pairs of a dense symmetric matrix. Backward knows all of its eigenvectors."""

    @staticmethod
    def forward(ctx: Any, A: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        values, vectors = _iterate(A, *rest)
        ctx.save_for_backward(A, values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx: Any, grad_values: Tensor, grad_vectors: Tensor) -> tuple[Any, ...]:
        A, values, vectors = ctx.saved_tensors
        known, basis = _C._aten.linalg_eigh(A)
        gap = values - known.unsqueeze(-1)
        own = gap.abs() == gap.abs().amin(0)
        inner = (basis.mT @ grad_vectors / gap.masked_fill(own, 1)).masked_fill(own, 0)
        grad = (vectors * grad_values + basis @ inner) @ vectors.mT
        return (grad + grad.mT) / 2, *(None,) * 7


def _check(A: Tensor, k: int, X: Tensor | None, n: int, method: str, tracker: Any) -> None:
    m = A.shape[-1]
    if A.dim() < 2 or A.shape[-2] != m or A.dtype not in (_C.float32, _C.float64):
        raise RuntimeError(
            "lobpcg: expected square matrices of float32 or float64, got shape "
            f"{tuple(A.shape)} and {A.dtype}"
        )
    if X is not None and (X.dim() < 2 or X.shape[-2] != m):
        raise RuntimeError(f"lobpcg: expected X of {m} rows, got shape {tuple(X.shape)}")
    if not 1 <= k <= n or m < 3 * n:
        raise ValueError(f"lobpcg: expected 1 <= k <= n and m >= 3 * n, got k={k}, n={n}, m={m}")
    if method not in _METHODS:
        raise ValueError(f"lobpcg: expected method basic or ortho, got {method}")
    if tracker is not None:
        raise NotImplementedError(f"lobpcg: expected no tracker, got {tracker!r}")


def _matrices(tensor: Tensor, A: Tensor) -> list[Tensor]:
    """The matrices of a tensor, one for each of those of A."""
    sizes = tensor.shape[-2:]
    return list(tensor.expand(*A.shape[:-2], *sizes).reshape(-1, *sizes))


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The k largest (largest=False: least) values e with A x = e B x, and the vectors x.

    A: (..., m, m), symmetric, dense or (one matrix) sparse, float32 or float64. B: like A, positive
    definite (None: the identity). X: (..., m, n), where the search begins; n random columns (by
    default k) where there is none. iK: (..., m, m), a preconditioner. niter: steps at most (1000;
    -1: until it converges). tol: of residuals (the square root of eps). Results: (..., k) and
    (..., m, k). Both methods keep an orthonormal basis, and the ortho_*params have no effect.

    The gradient is that for a dense A without B. Raises RuntimeError for other shapes and dtypes,
    ValueError unless 1 <= k <= n and 3 * n <= m, NotImplementedError for a tracker.

    >>> weft.lobpcg(weft.diag(weft.arange(9.0)), k=2, X=weft.eye(9)[:, 5:7] + 1)[0].round()
    tensor([8., 7.])
    """
    columns = n if X is None else X.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    columns = k if columns is None else columns
    _check(A, k, X, columns, "ortho" if method is None else method, tracker)
    if X is None:
        X = _C.randn(*A.shape[:-1], columns, dtype=A.dtype, device=A.device)
    tol = finfo(A.dtype).eps ** 0.5 if tol is None else tol
    rest = (1000 if niter is None else niter, tol, largest is None or largest)
    needs_grad = A.requires_grad and is_grad_enabled()
    if needs_grad and (B is not None or A.layout != _C.strided):
        raise NotImplementedError(
            f"lobpcg: expected a dense A and no B where A requires grad, got layout {A.layout}"
        )
    run = _Eigenpairs.apply if needs_grad else _iterate
    A = (A + A.mT) / 2 if needs_grad else A
    if A.dim() == 2:
        return tuple(run(A, B, X, k, iK, *rest))
    matrices = [None if each is None else _matrices(each, A) for each in (A, B, X, iK)]
    pairs = [
        run(a, b, x, k, preconditioner, *rest)
        for a, b, x, preconditioner in zip(*(each or repeat(None) for each in matrices))
    ]
    values, vectors = (_C.stack(list(each)) for each in zip(*pairs))
    return values.reshape(*A.shape[:-2], k), vectors.reshape(*A.shape[:-1], k)


_declare(globals(), ("lobpcg",))
