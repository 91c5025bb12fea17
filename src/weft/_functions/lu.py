"""Systems whose matrix is factorised already: triangular_solve, lu_solve, lu_unpack."""

from __future__ import annotations

from typing import NamedTuple

import weft
from weft import Tensor
from weft._functions.out import takes_out
from weft._runtime.data_dependent import data_dependent
from weft._runtime.torch_function import declare as _declare


class TriangularSolve(NamedTuple):
    """What triangular_solve gives."""

    solution: Tensor
    cloned_coefficient: Tensor


@takes_out
def triangular_solve(
    b: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> TriangularSolve:
    """The X of A @ X = b (transpose: of A.mT @ X = b) for a triangular A, and a copy of A.

    >>> A = weft.tensor([[2.0, 1.0], [0.0, 1.0]])
    >>> triangular_solve(weft.tensor([[4.0], [2.0]]), A).solution
    tensor([[1.],
            [2.]])
    """
    matrix, is_upper = (A.mT, not upper) if transpose else (A, upper)
    solution = weft.linalg.solve_triangular(matrix, b, upper=is_upper, unitriangular=unitriangular)
    return TriangularSolve(solution, A.clone())


def _rows(name: str, pivots: Tensor, count: int) -> Tensor:
    """The rows of A [..., count, *] in the order of L @ U; `pivots` are the exchanges, in turn, of
    row i with row pivots[..., i], counted from 1."""
    if pivots.dtype != weft.int32:
        raise RuntimeError(f"{name}: expected pivots of int32, got {pivots.dtype}")
    rows = weft.arange(count).expand([*pivots.shape[:-1], count]).clone()
    for i in range(pivots.size(-1)):
        other = pivots[..., i : i + 1].to(weft.int64) - 1
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

    left=False: of X @ A = B. adjoint=True: A.mH stands for A.

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
    solve = weft.linalg.solve_triangular
    rows = _rows("lu_solve", pivots, LU.size(-1))
    if adjoint:
        right = solve(LU.mH, solve(LU.mH, B, upper=False), upper=True, unitriangular=True)
        return _permuted(right, rows.argsort(-1))
    right = _permuted(B, rows)
    return solve(LU, solve(LU, right, upper=False, unitriangular=True), upper=True)


def _permuted(B: Tensor, rows: Tensor) -> Tensor:
    """The rows of matrices in another order; leading sizes broadcast."""
    sizes = weft.broadcast_shapes(B.shape[:-2], rows.shape[:-1])
    order = rows.expand([*sizes, rows.size(-1)]).unsqueeze(-1)
    return B.expand([*sizes, *B.shape[-2:]]).gather(
        -2, order.expand([*order.shape[:-1], B.size(-1)])
    )


@takes_out
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """linalg.lu_solve, under its old name and with b first.

    >>> LU = weft.tensor([[2.0, 1.0], [0.0, 4.0]])
    >>> weft.lu_solve(weft.tensor([[3.0], [4.0]]), LU, weft.tensor([1, 2], dtype=weft.int32))
    tensor([[1.],
            [1.]])
    """
    return linalg_lu_solve(LU_data, LU_pivots, b)


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
        one = weft.eye(rows, least, dtype=LU_data.dtype)
        L, U = LU_data[..., :least].tril(-1) + one, LU_data[..., :least, :].triu()
    if unpack_pivots:
        order = _rows("lu_unpack", LU_pivots, rows)
        P = weft.eye(rows, dtype=LU_data.dtype)[order].mT
    return Unpacked(P, L, U)


_declare(globals())
