"""LU factors, and systems whose matrix is factorised already."""

from __future__ import annotations

from typing import Any, NamedTuple

from weft import _C
from weft._C import Tensor
from weft._functions.out import takes_out
from weft._functions.shapes import broadcast_shapes
from weft._runtime.data_dependent import data_dependent
from weft._runtime.named_results import shown_as
from weft._runtime.torch_function import declare as _declare

_aten = _C._aten


@shown_as("triangular_solve")
class TriangularSolve(NamedTuple):
    """What triangular_solve gives."""

    solution: Tensor
    cloned_coefficient: Tensor


@takes_out
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> TriangularSolve:
    """The X of A @ X = input (transpose: of A.mT @ X = input) for a triangular A, and a copy of A.

    >>> A = weft.tensor([[2.0, 1.0], [0.0, 1.0]])
    >>> triangular_solve(weft.tensor([[4.0], [2.0]]), A).solution
    tensor([[1.],
            [2.]])
    """
    matrix, is_upper = (A.mT, not upper) if transpose else (A, upper)
    solution = _aten.linalg_solve_triangular(
        matrix, input, upper=is_upper, unitriangular=unitriangular
    )
    return TriangularSolve(solution, A.clone())


def _rows(name: str, pivots: Tensor, count: int) -> Tensor:
    """The rows of A [..., count, *] in the order of L @ U; `pivots` are the exchanges, in turn, of
    row i with row pivots[..., i], counted from 1."""
    if pivots.dtype != _C.int32:
        raise RuntimeError(f"{name}: expected pivots of int32, got {pivots.dtype}")
    rows = _C.arange(count, device=pivots.device).expand([*pivots.shape[:-1], count]).clone()
    for i in range(pivots.size(-1)):
        other = pivots[..., i : i + 1].to(_C.int64) - 1
        exchanged = rows.gather(-1, other)
        rows = rows.scatter(-1, other, rows[..., i : i + 1])
        rows[..., i : i + 1] = exchanged
    return rows


@takes_out
@data_dependent
def linalg_lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """The X of A @ X = B for the A of which LU and pivots are the factors, as lu_factor gives them.

    left=False: of X @ A = B. adjoint=True: A.mH stands for A. B is [*, n, k]. Raises RuntimeError
    for shapes that do not fit. All are of one floating or complex dtype.

    >>> LU = weft.tensor([[3.0, 4.0], [0.0, 2.0]])  # of [[0, 2], [3, 4]]: the rows are exchanged
    >>> linalg_lu_solve(LU, weft.tensor([2, 2], dtype=weft.int32), weft.tensor([[2.0], [7.0]]))
    tensor([[1.],
            [1.]])
    """
    if LU.dim() < 2 or LU.size(-1) != LU.size(-2) or LU.shape[:-1] != pivots.shape:
        raise RuntimeError(
            f"lu_solve: expected square matrices and as many pivots as they have rows, got shapes "
            f"{tuple(LU.shape)} and {tuple(pivots.shape)}"
        )
    if not left:
        return linalg_lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    if B.size(-2) != LU.size(-1):
        raise RuntimeError(
            f"lu_solve: expected {LU.size(-1)} rows of the right-hand side, got {B.size(-2)}"
        )
    solve = _aten.linalg_solve_triangular
    rows = _rows("lu_solve", pivots, LU.size(-1))
    if adjoint:
        right = solve(LU.mH, solve(LU.mH, B, upper=False), upper=True, unitriangular=True)
        return _permuted(right, rows.argsort(-1))
    right = _permuted(B, rows)
    return solve(LU, solve(LU, right, upper=False, unitriangular=True), upper=True)


def _permuted(B: Tensor, rows: Tensor) -> Tensor:
    """The rows of matrices in another order; leading sizes broadcast."""
    sizes = broadcast_shapes(B.shape[:-2], rows.shape[:-1])
    order = rows.expand([*sizes, rows.size(-1)]).unsqueeze(-1)
    return B.expand([*sizes, *B.shape[-2:]]).gather(
        -2, order.expand([*order.shape[:-1], B.size(-1)])
    )


@takes_out
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """linalg.lu_solve, under its old name and with the right-hand side first.

    >>> LU = weft.tensor([[2.0, 1.0], [0.0, 4.0]])
    >>> weft.lu_solve(weft.tensor([[3.0], [4.0]]), LU, weft.tensor([1, 2], dtype=weft.int32))
    tensor([[1.],
            [1.]])
    """
    return linalg_lu_solve(LU_data, LU_pivots, input)


@shown_as("lu_unpack")
class Unpacked(NamedTuple):
    """What lu_unpack gives; the parts that were not asked for are empty."""

    P: Tensor
    L: Tensor
    U: Tensor


@takes_out
@data_dependent
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Unpacked:
    """The permutation P, the unit lower L and the upper U whose product P @ L @ U is the matrix.

    >>> LU, pivots = weft.tensor([[3.0, 4.0], [0.0, 2.0]]), weft.tensor([2, 2], dtype=weft.int32)
    >>> P, L, U = lu_unpack(LU, pivots)
    >>> P @ L @ U
    tensor([[0., 2.],
            [3., 4.]])
    """
    rows, columns = LU_data.shape[-2:]
    least = min(rows, columns)
    P = L = U = LU_data.new_empty([0])
    if unpack_data:
        one = _C.eye(rows, least, dtype=LU_data.dtype, device=LU_data.device)
        L, U = LU_data[..., :least].tril(-1) + one, LU_data[..., :least, :].triu()
    if unpack_pivots:
        order = _rows("lu_unpack", LU_pivots, rows)
        P = _C.eye(rows, dtype=LU_data.dtype, device=LU_data.device)[order].mT
    return Unpacked(P, L, U)


@shown_as("linalg_lu_factor")
class Factors(NamedTuple):
    """What linalg.lu_factor gives: L and U in one matrix, and the exchanges of rows."""

    LU: Tensor
    pivots: Tensor


@shown_as("linalg_lu_factor_ex")
class FactorsEx(NamedTuple):
    """What linalg.lu_factor_ex gives: `info` is 0, or the number of a zero pivot."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


@shown_as("linalg_lu")
class Decomposition(NamedTuple):
    """What linalg.lu gives: P @ L @ U is the matrix."""

    P: Tensor
    L: Tensor
    U: Tensor


@shown_as("linalg_solve_ex")
class SolutionEx(NamedTuple):
    """What linalg.solve_ex gives: `info` is 0, or the number of a zero pivot."""

    result: Tensor
    info: Tensor


def _check_pivot(name: str, pivot: bool) -> None:
    if not pivot:
        raise RuntimeError(f"{name}: expected pivot=True on the CPU, got False")


@takes_out
def linalg_lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> FactorsEx:
    """LU, pivots and info of matrices [*, m, n], floating or complex: the rows exchanged as pivots
    [*, min(m, n)] say are L @ U.

    info is 0, or the number of a pivot that is 0; check_errors raises LinAlgError there. Raises
    RuntimeError for pivot=False.

    >>> linalg_lu_factor_ex(weft.tensor([[0.0, 2.0], [3.0, 4.0]])).LU
    tensor([[3., 4.],
            [0., 2.]])
    """
    _check_pivot("lu_factor_ex", pivot)
    LU, pivots, _, info = _aten._lu_factor(A, check_errors)
    return FactorsEx(LU, pivots, info)


@takes_out
def linalg_lu_factor(A: Tensor, *, pivot: bool = True) -> Factors:
    """LU and pivots of regular matrices, as lu_factor_ex gives them. LinAlgError for a zero pivot.

    Floating and complex dtypes.

    >>> linalg_lu_factor(weft.tensor([[0.0, 2.0], [3.0, 4.0]])).pivots
    tensor([2, 2], dtype=torch.int32)
    """
    _check_pivot("lu_factor", pivot)
    return Factors(*_aten._lu_factor(A, True)[:2])


@takes_out
def linalg_lu(A: Tensor, *, pivot: bool = True) -> Decomposition:
    """P, L and U with P @ L @ U = A: a permutation, a unit lower and an upper triangle.

    A is [*, m, n], floating or complex. Raises RuntimeError for pivot=False.

    >>> P, L, U = linalg_lu(weft.tensor([[0.0, 2.0], [3.0, 4.0]]))
    >>> P @ L @ U
    tensor([[0., 2.],
            [3., 4.]])
    """
    _check_pivot("lu", pivot)
    LU, _, permutation, _ = _aten._lu_factor(A, False)
    _, L, U = lu_unpack(LU, permutation, unpack_pivots=False)
    one = _C.eye(A.size(-2), dtype=A.dtype, device=A.device)
    return Decomposition(one[permutation], L, U)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """linalg.lu_factor, or with get_infos linalg.lu_factor_ex, under their old name.

    Arguments and errors are theirs.

    >>> weft.lu(weft.eye(2))[1]
    tensor([1, 2], dtype=torch.int32)
    """
    if get_infos:
        return linalg_lu_factor_ex(A, pivot=pivot, out=out)
    return linalg_lu_factor(A, pivot=pivot, out=out)


@takes_out
def linalg_solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> SolutionEx:
    """The X of A @ X = B, and info: 0, or the number of a zero pivot (LinAlgError with
    check_errors). The X of a singular A is not finite. left=False: of X @ A = B.

    B is matrices [*, n, k] or vectors. Raises RuntimeError for shapes that do not fit. Floating and
    complex dtypes.

    >>> linalg_solve_ex(weft.eye(2) * 2, weft.ones(2)).result
    tensor([0.5000, 0.5000])
    """
    LU, pivots, info = linalg_lu_factor_ex(A, check_errors=check_errors)
    is_vector = B.dim() == 1 or (B.dim() == A.dim() - 1 and B.shape == A.shape[:-1])
    if not is_vector:
        return SolutionEx(linalg_lu_solve(LU, pivots, B, left=left), info)
    if not left:
        raise RuntimeError("solve_ex: expected left=True for vectors, got False")
    return SolutionEx(linalg_lu_solve(LU, pivots, B.unsqueeze(-1)).squeeze(-1), info)


_declare(globals(), ("lu",))
