"""LDL factors of symmetric matrices, and reflections that make orthogonal ones."""

from __future__ import annotations

from typing import NamedTuple

from weft import _C
from weft._C import Tensor
from weft._functions.out import casting_takes_out, takes_out
from weft._runtime.named_results import shown_as
from weft._runtime.samples import whole
from weft._runtime.torch_function import declare as _declare

_aten = _C._aten


@shown_as("linalg_ldl_factor")
class LDL(NamedTuple):
    """What linalg.ldl_factor gives: L and D in one matrix, and LAPACK's exchanges."""

    LD: Tensor
    pivots: Tensor


@shown_as("linalg_ldl_factor_ex")
class LDLEx(NamedTuple):
    """What linalg.ldl_factor_ex gives: `info` is 0, or the number of a zero block."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


@takes_out
def ldl_factor_ex(input: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> LDLEx:
    """The factors of symmetric (hermitian=True: Hermitian) matrices [*, n, n], whose lower triangle
    is read, for ldl_solve.

    info is 0, or the number of a block of D that is 0: LinAlgError with check_errors. No gradient.
    Floating and complex dtypes.

    >>> ldl_factor_ex(weft.tensor([[2.0, 0.0], [4.0, 9.0]])).info
    tensor(0, dtype=torch.int32)
    """
    found = LDLEx(*_aten._ldl_factor(input, hermitian))
    info = whole(found.info)
    if check_errors and bool(info.any()):
        raise _C.LinAlgError(
            f"ldl_factor: expected regular matrices, got a singular one (block {int(info.max())})"
        )
    return found


@takes_out
def ldl_factor(input: Tensor, *, hermitian: bool = False) -> LDL:
    """LD and pivots as ldl_factor_ex gives them. LinAlgError for singular matrices.

    Floating and complex dtypes.

    >>> ldl_factor(weft.eye(2)).pivots
    tensor([1, 2], dtype=torch.int32)
    """
    return LDL(*ldl_factor_ex(input, hermitian=hermitian, check_errors=True)[:2])


@takes_out
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """The X of A @ X = B for the A of which ldl_factor gave LD and pivots.

    B is [*, n, k]; leading sizes broadcast. No gradient. Raises RuntimeError for shapes and for
    pivots that are none of ldl_factor. Floating and complex dtypes.

    >>> ldl_solve(*ldl_factor(weft.eye(2) * 2), weft.ones(2, 1))
    tensor([[0.5000],
            [0.5000]])
    """
    return _aten._ldl_solve(LD, pivots, B, hermitian)


def _check_reflections(name: str, A: Tensor, tau: Tensor) -> None:
    fits = A.dim() >= 2 and tau.dim() == A.dim() - 1 and A.shape[:-2] == tau.shape[:-1]
    if not fits or not A.size(-2) >= A.size(-1) >= tau.size(-1) or A.dtype != tau.dtype:
        raise RuntimeError(
            f"{name}: expected vectors [*, m, n] of at least as many rows as columns and scales "
            f"[*, k] of at most n, of one dtype, got {A.dtype} {tuple(A.shape)} and {tau.dtype} "
            f"{tuple(tau.shape)}"
        )


def _reflected(A: Tensor, tau: Tensor, other: Tensor, adjoint: bool) -> Tensor:
    """H_0 @ ... @ H_k-1 @ other, or its adjoint's product, with H_i = 1 - tau_i v_i v_i^H; v_i is
    column i of A below the diagonal, and 1 on it."""
    # The product is 1 - V T V^H, with T^-1 = D^-1 + the triangle of V^H V above its diagonal and D
    # the diagonal of tau (Schreiber and Van Loan, A storage-efficient WY representation for
    # products of Householder transformations, 1989).
    count = tau.size(-1)
    vectors = A[..., :count].tril(-1) + _C.eye(A.size(-2), count, dtype=A.dtype, device=A.device)
    inner = (vectors.mH @ vectors).triu(1) * tau.unsqueeze(-1)
    factor = _aten._solve_triangular(inner, tau.diag_embed(), True, True)
    return other - vectors @ ((factor.mH if adjoint else factor) @ (vectors.mH @ other))


def check_matrix_dtype(function: str, matrix: Tensor) -> None:
    """NotImplementedError for dtypes that have no factors."""
    if matrix.dtype not in (_C.float32, _C.float64, _C.complex64, _C.complex128):
        raise NotImplementedError(
            f"{function}: expected dtype float32, float64, complex64 or complex128, "
            f"got {matrix.dtype}"
        )


@casting_takes_out
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first n columns of the product of the reflections that geqrf gives: [*, m, n].

    input is [*, m, n] with m >= n, tau [*, k] with k <= n. Raises RuntimeError for other shapes.
    Both are of one dtype.

    >>> A = weft.tensor([[3.0], [4.0]])
    >>> Q = householder_product(*weft.geqrf(A))
    >>> (Q @ Q.mT @ A).round(decimals=3)
    tensor([[3.],
            [4.]])
    """
    check_matrix_dtype("householder_product", input)
    _check_reflections("householder_product", input, tau)
    one = _C.eye(input.size(-2), input.size(-1), dtype=input.dtype, device=input.device)
    return _reflected(input, tau, one.expand(input.shape), False).clone()


@casting_takes_out
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """linalg.householder_product, under its old name.

    >>> weft.orgqr(weft.zeros(2, 1), weft.zeros(1))
    tensor([[1.],
            [0.]])
    """
    return householder_product(input, input2)


@takes_out
def ormqr(
    input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """Q @ input3 for the m x m Q of the reflections that geqrf gives (left=False: input3 @ Q);
    transpose: of Q.mH.

    input is [*, m, k], input2 [*, k]. Raises RuntimeError for other shapes.

    >>> a, tau = weft.geqrf(weft.tensor([[3.0], [4.0]]))
    >>> weft.ormqr(a, tau, weft.tensor([[3.0], [4.0]]), transpose=True).abs().round(decimals=3)
    tensor([[5.],
            [0.]])
    """
    check_matrix_dtype("ormqr", input)
    wanted = input3.size(-2 if left else -1) if input3.dim() > 1 else None
    fits = input.dim() > 1 and input2.dim() == input.dim() - 1 and input.size(-1) >= input2.size(-1)
    if not fits or wanted != input.size(-2) or input2.size(-1) > input.size(-2):
        raise RuntimeError(
            "ormqr: expected reflections [*, m, k], scales [*, k] and a matrix of m rows "
            f"(left=False: columns), got shapes {tuple(input.shape)}, {tuple(input2.shape)} and "
            f"{tuple(input3.shape)}"
        )
    if left:
        return _reflected(input, input2, input3.clone(), transpose)
    return _reflected(input, input2, input3.clone().mH, not transpose).mH


_REMOVED = {
    "eig": "linalg.eig",
    "symeig": "linalg.eigh",
    "solve": "linalg.solve",
    "lstsq": "linalg.lstsq",
    "matrix_rank": "linalg.matrix_rank",
}


def _removed(name: str, instead: str) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise RuntimeError(f"{name}: expected {instead}, got a name that PyTorch removed in 1.9")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Removed from PyTorch: raises RuntimeError, which names {instead}."
    globals()[name] = refuse


for _name, _instead in _REMOVED.items():
    _removed(_name, _instead)

_declare(globals())
