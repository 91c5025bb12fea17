"""Linear algebra over batches of matrices: `torch.linalg`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from weft import _C
from weft._C import Tensor
from weft._functions.factorizations import check_matrix_dtype as _check_matrix_dtype
from weft._functions.factorizations import householder_product as householder_product
from weft._functions.factorizations import ldl_factor as ldl_factor
from weft._functions.factorizations import ldl_factor_ex as ldl_factor_ex
from weft._functions.factorizations import ldl_solve as ldl_solve
from weft._functions.lu import (
    linalg_lu,
    linalg_lu_factor,
    linalg_lu_factor_ex,
    linalg_lu_solve,
    linalg_solve_ex,
)
from weft._functions.matrices import matrix_exp as matrix_exp
from weft._functions.matrices import tensorinv as tensorinv
from weft._functions.matrices import tensorsolve as tensorsolve
from weft._functions.matrices import vander as vander
from weft._functions.out import casting_takes_out, takes_out
from weft._functions.shapes import checked_dims as _checked_dims
from weft._runtime.argument_types import Ints as _Ints
from weft._runtime.argument_types import OptionalInts as _OptionalInts
from weft._runtime.data_dependent import data_dependent
from weft._runtime.named_results import shown_as as _shown_as
from weft._runtime.precision import full_precision as _full_precision
from weft._runtime.precision import lower_precision as _lower_precision
from weft._runtime.samples import whole as _whole
from weft._runtime.torch_function import declare as _declare
from weft._tensor.aliases import numpy_names
from weft._tensor.limits import finfo as _finfo
from weft.autograd.grad_mode import no_grad as _no_grad

_aten = _C._aten

LinAlgError = _C.LinAlgError

inv = _aten.linalg_inv
inv_ex = _aten.linalg_inv_ex
det = _aten.linalg_det
slogdet = _aten.linalg_slogdet
solve = _aten.linalg_solve
solve_triangular = _aten.linalg_solve_triangular
cholesky = _aten.linalg_cholesky
cholesky_ex = _aten.linalg_cholesky_ex
eig = _aten.linalg_eig
eigvals = _aten.linalg_eigvals
eigh = _aten.linalg_eigh
eigvalsh = _aten.linalg_eigvalsh
qr = _aten.linalg_qr
svd = _aten.linalg_svd
svdvals = _aten.linalg_svdvals
cross = _aten.linalg_cross
matrix_power = _aten.matrix_power
matmul = _aten.matmul
lu = linalg_lu
lu_factor = linalg_lu_factor
lu_factor_ex = linalg_lu_factor_ex
lu_solve = linalg_lu_solve
solve_ex = linalg_solve_ex


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices.

    A view [..., k] of A [..., m, n], `offset` above the main diagonal (below where it is negative),
    of the matrices that dim1 and dim2 span. Raises as Tensor.diagonal. Any dtype.

    >>> weft.linalg.diagonal(weft.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return A.diagonal(offset, dim1, dim2)


@numpy_names
@takes_out
@_lower_precision
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Products summed along `dim`, x conjugated.

    x and y are floating or complex, of one dtype, and broadcast against each other; the result
    lacks `dim`. Raises RuntimeError for other dtypes.

    >>> weft.linalg.vecdot(weft.tensor([[1.0, 2.0], [3.0, 4.0]]), weft.tensor([1.0, -1.0]))
    tensor([-1., -1.])
    """
    if x.dtype != y.dtype or not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(
            f"vecdot: expected one floating or complex dtype, got {x.dtype} and {y.dtype}"
        )
    return (x.conj() * y).sum(dim)


@numpy_names
@takes_out
def vector_norm(
    input: Tensor,
    ord: Any = 2,
    dim: _OptionalInts = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """The norm of order `ord` over `dim` (None: all), as of one long vector.

    `ord` is any number: 0 counts elements that are not 0, inf and -inf give the largest and
    smallest absolute value. `input` is floating or complex, the result real and without `dim`, or
    with sizes of 1 there (keepdim). `dtype` converts first. Raises RuntimeError for integers, and
    for no elements where the order is negative or infinite.

    >>> weft.linalg.vector_norm(weft.tensor([[3.0, 4.0], [0.0, -5.0]]), dim=1)
    tensor([5., 5.])
    """
    dims = [dim] if isinstance(dim, int) else dim
    if isinstance(ord, complex):
        raise RuntimeError(f"vector_norm: expected a real order, got {ord}")
    if input.numel() == 0 and (ord < 0 or ord == math.inf):
        sizes = [input.size(each) for each in dims] if dims else list(input.shape)
        if min(sizes) == 0:
            raise RuntimeError(f"vector_norm: expected elements for the order {ord}, got none")
    return _aten.linalg_vector_norm(input, ord, dims, keepdim, dtype=dtype)


@numpy_names
@takes_out
def matrix_norm(
    input: Tensor,
    ord: Any = "fro",
    dim: _Ints = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """The norm of matrices: "fro", "nuc", 2, -2, 1, -1, inf or -inf.

    input is floating or complex, [..., m, n] by default; the result is real and lacks the two
    dimensions, or has sizes of 1 there (keepdim). `dtype` converts first. Raises RuntimeError for
    another `ord`; an empty matrix has the norm 0 by those that are a greatest value.

    >>> weft.linalg.matrix_norm(weft.tensor([[1.0, 2.0], [3.0, 4.0]]), "nuc")
    tensor(5.8310)
    """
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(f"matrix_norm: expected a floating or complex dtype, got {input.dtype}")
    x = input if dtype is None else input.to(dtype)
    if x.dim() < 2:
        raise RuntimeError(f"matrix_norm: expected at least 2 dims, got shape {x.shape}")
    if isinstance(dim, int) or len(dim) != 2:
        raise RuntimeError(f"matrix_norm: expected 2 dims, got {dim}")
    rows, columns = _checked_dims("matrix_norm", dim, x.dim())
    if ord == "fro":
        return vector_norm(x, 2, [rows, columns], keepdim)
    if x.size(rows) * x.size(columns) == 0 and ord in (1, 2, math.inf):
        return x.abs().sum([rows, columns], keepdim)  # the greatest of none
    if ord in ("nuc", 2, -2):
        values = svdvals(x.movedim((rows, columns), (-2, -1)))
        if ord == "nuc":
            result = values.sum(-1)
        else:
            result = values.amax(-1) if ord == 2 else values.amin(-1)
    elif ord in (1, -1, math.inf, -math.inf):
        along, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = x.abs().sum(along, keepdim=True)
        result = sums.amax(other, True) if ord > 0 else sums.amin(other, True)
        result = result.squeeze([rows, columns])
    else:
        raise RuntimeError(
            f"matrix_norm: expected ord 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}"
        )
    return result.unsqueeze(min(rows, columns)).unsqueeze(max(rows, columns)) if keepdim else result


@numpy_names
@takes_out
def norm(
    input: Tensor,
    ord: Any = None,
    dim: _OptionalInts = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """vector_norm, or matrix_norm where `ord` is given for two dimensions.

    Without `ord` the 2-norm over `dim` (None: all dimensions). Shapes, dtypes and errors are those
    of the two.

    >>> weft.linalg.norm(weft.tensor([[1.0, 2.0], [3.0, 4.0]]), 1)
    tensor(6.)
    """
    dims = input.dim() if dim is None else 1 if isinstance(dim, int) else len(dim)
    if dims not in (1, 2) and (ord is not None or dim is not None):
        raise RuntimeError(f"linalg.norm: expected 1 or 2 dims with ord or dim, got {dims}")
    if isinstance(ord, str) or (ord is not None and dims == 2):
        return matrix_norm(input, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(input, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


@takes_out
@data_dependent
def multi_dot(tensors: Any) -> Tensor:
    """The product of matrices, in the order that takes the fewest multiplications.

    The first tensor may be a vector (a row), so may the last (a column). The order is found by the
    dynamic programming of Cormen et al., Introduction to Algorithms, matrix-chain multiplication.

    Raises RuntimeError for fewer than two tensors, and for others than matrices inside. The tensors
    are of one dtype.

    >>> weft.linalg.multi_dot([weft.ones(2, 8), weft.ones(8, 3), weft.ones(3)])
    tensor([24., 24.])
    """
    parts = list(tensors)
    if len(parts) < 2:
        raise RuntimeError(f"multi_dot: expected at least 2 tensors, got {len(parts)}")
    row, column = parts[0].dim() == 1, parts[-1].dim() == 1
    parts[0] = parts[0].unsqueeze(0) if row else parts[0]
    parts[-1] = parts[-1].unsqueeze(1) if column else parts[-1]
    if any(part.dim() != 2 for part in parts):
        raise RuntimeError(
            "multi_dot: expected matrices, and vectors at the ends only, got shapes "
            f"{[tuple(part.shape) for part in parts]}"
        )
    count = len(parts)
    splits = _cheapest_splits([parts[0].size(0)] + [part.size(1) for part in parts])
    spans = [(0, len(parts) - 1)]  # each before the two that it is the product of
    i = 0
    while i < len(spans):
        first, last = spans[i]
        if first < last:
            split = splits[first * count + last]
            spans += [(first, split), (split + 1, last)]
        i += 1
    made: dict[int, Tensor] = {}
    for first, last in reversed(spans):
        if first == last:
            product = parts[first]
        else:
            split = splits[first * count + last]
            product = made[first * count + split] @ made[(split + 1) * count + last]
        made[first * count + last] = product
    result = made[count - 1]
    gone = [dim for dim, vector in enumerate((row, column)) if vector]
    return result.squeeze(gone) if gone else result


def _cheapest_splits(sizes: list[int]) -> dict[int, int]:
    """After which matrix to split the product of the matrices first..last, at first * count + last;
    matrix i of `count` is sizes[i] x sizes[i + 1]. (Archives have no dicts with tuples as keys.)"""
    count = len(sizes) - 1
    cost = {i * count + i: 0 for i in range(count)}
    splits: dict[int, int] = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            at = first * count + last
            for k in range(first, last):
                outer = sizes[first] * sizes[k + 1] * sizes[last + 1]
                total = cost[first * count + k] + cost[(k + 1) * count + last] + outer
                if k == first or total < cost[at]:
                    cost[at] = total
                    splits[at] = k
    return splits


def _cut(A: Tensor, atol: Any, rtol: Any, greatest: Tensor) -> Any:
    """max(atol, rtol * greatest): what counts as zero; rtol is eps * max(m, n) where atol is 0."""
    if rtol is None:
        least = max(A.shape[-2:]) * _finfo(A.dtype).eps
        if isinstance(atol, Tensor):
            relative = _column((atol == 0) * least) * greatest
        else:
            relative = (0.0 if atol else least) * greatest
    else:
        relative = _column(rtol) * greatest
    if isinstance(atol, Tensor):
        return _C.maximum(_column(atol).expand_as(relative), relative)
    return relative if atol is None else relative.clamp_min(atol)


def _column(value: Any) -> Any:
    return value.unsqueeze(-1) if isinstance(value, Tensor) else value


def _nonzero_values(A: Tensor, values: Tensor, atol: Any, rtol: Any) -> Tensor:
    """Which of the absolute values of eigenvalues, or of the singular values, count."""
    if values.size(-1) == 0:
        return values > 0
    return values > _cut(A, atol, rtol, values.amax([-1], True))


@casting_takes_out
@data_dependent
def pinv(
    input: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """The pseudo-inverse (..., n, m) of matrices (..., m, n).

    Singular values (with hermitian=True: absolute eigenvalues, of which only one triangle is read)
    up to max(atol, rtol * the greatest) count as 0; rtol, which rcond is another name of, is
    eps * max(m, n) where atol is not given. Both are numbers, or tensors of the leading sizes.

    Raises NotImplementedError for integers and 16 bits, LinAlgError where it does not converge.

    >>> weft.linalg.pinv(weft.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])).round(decimals=3)
    tensor([[1.0000, 0.0000, 0.0000],
            [0.0000, 0.5000, 0.0000]])
    """
    _check_matrix_dtype("linalg.pinv", input)
    if input.numel() == 0:
        return input.mH.clone()
    with _no_grad():
        inverse, _, _ = _pseudo_inverse(input, hermitian, atol, rcond if rtol is None else rtol)
    return _aten._pinv(input, inverse)


def _pseudo_inverse(
    A: Tensor, hermitian: bool, atol: Any, rtol: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Also the singular values and which of them count."""
    if hermitian:
        values, left = eigh(A)
        right = left.mH
    else:
        left, values, right = svd(A, False)
    kept = _nonzero_values(A, values.abs(), atol, rtol)
    inverse = values.masked_fill(~kept, 1).reciprocal().masked_fill(~kept, 0)
    return (right.mH * inverse.unsqueeze(-2)) @ left.mH, values, kept


@casting_takes_out
def matrix_rank(
    input: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """How many singular values (hermitian=True: absolute eigenvalues) lie above the tolerance.

    That is max(atol, rtol * the greatest); rtol is eps * max(m, n) where atol is not given. `tol`
    is an atol beside which rtol is 0. int64, of the leading sizes.

    input is [..., m, n], floating or complex. Raises RuntimeError for vectors and other dtypes.

    >>> weft.linalg.matrix_rank(weft.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    if tol is not None:
        atol, rtol = tol, 0.0
    values = eigvalsh(input).abs() if hermitian else svdvals(input)
    return _nonzero_values(input, values, atol, rtol).sum(-1)


@casting_takes_out
def cond(input: Tensor, p: Any = None) -> Tensor:
    """The condition number: how much the solution of a system may grow errors; inf of a singular
    matrix.

    input is [..., m, n] for p None, 2 and -2, square for the norms of matrix_norm; the result is
    real, of the leading sizes. Raises as matrix_norm. Floating and complex dtypes.

    >>> weft.linalg.cond(weft.tensor([[1.0, 0.0], [0.0, 4.0]]))
    tensor(4.)
    """
    if input.numel() == 0:
        return svdvals(input).sum(-1)
    if p in (None, 2, -2):
        s = svdvals(input)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    inverse, info = inv_ex(input)
    singular = info != 0
    inverse = inverse.masked_fill(singular.unsqueeze(-1).unsqueeze(-1), 0)
    return (matrix_norm(input, p) * matrix_norm(inverse, p)).masked_fill(singular, math.inf)


@_shown_as("linalg_lstsq")
class LeastSquares(NamedTuple):
    """What lstsq gives; fields that the driver does not compute are empty.

    >>> weft.linalg.lstsq(weft.eye(2), weft.ones(2, 1), driver="gelsd").rank
    tensor(2)
    """

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


_DRIVERS = ("gelsy", "gels", "gelsd", "gelss")


def _least_ratio(driver: str, rcond: float | None) -> float | None:
    """The rcond that LAPACK's driver goes by; None: that of the precision."""
    if rcond is None or driver == "gels" or rcond < 0 or (driver == "gelsd" and rcond >= 1):
        return None
    return min(rcond, 1 - 1e-6) if driver == "gelsy" else rcond  # which keeps one, at least


@casting_takes_out
@_full_precision
def lstsq(
    input: Tensor, b: Tensor, rcond: Any = None, *, driver: str | None = None
) -> LeastSquares:
    """The X that makes the length of input @ X - b least, the shortest where there are several.

    input is (..., m, n), b (..., m, k) or vectors (..., m). Every driver solves through the
    pseudo-inverse, with singular values up to rcond (eps * max(m, n), of "gels" always) times the
    greatest as 0; as in PyTorch, `driver` says which further fields are filled: "gelsy" (the
    default) the rank, "gels" the residuals, "gelsd" and "gelss" both and the singular values. The
    squared residuals are those of matrices of full rank with more rows than columns.

    Raises RuntimeError for another driver, and for shapes that do not fit. Both are of one floating
    or complex dtype.

    >>> A = weft.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> weft.linalg.lstsq(A, weft.tensor([1.0, 3.0, 5.0])).solution.round(decimals=3)
    tensor([1., 2.])
    """
    driver = "gelsy" if driver is None else driver
    if driver not in _DRIVERS:
        raise RuntimeError(f"lstsq: expected driver among {', '.join(_DRIVERS)}, got {driver!r}")
    if input.dim() < 2 or b.dim() < 1:
        raise RuntimeError(
            "lstsq: expected matrices A and right-hand sides B, got shapes "
            f"{tuple(input.shape)} and {tuple(b.shape)}"
        )
    vectors = b.dim() == 1 or b.shape == input.shape[:-1]
    right = b.unsqueeze(-1) if vectors else b
    if input.size(-2) != right.size(-2):
        raise RuntimeError(
            f"lstsq: expected B of {input.size(-2)} rows, got shape {tuple(b.shape)} for A of "
            f"shape {tuple(input.shape)}"
        )
    rcond = _least_ratio(driver, rcond)
    _check_matrix_dtype("linalg.lstsq", input)
    with _no_grad():
        inverse, values, kept = _pseudo_inverse(input, False, None, rcond)
    solution, rank = _aten._pinv(input, inverse) @ right, kept.sum(-1)
    full = driver == "gels" or bool(_whole(rank == input.size(-1)).all())
    residuals = solution.abs().reshape(-1)[:0]
    if driver != "gelsy" and input.size(-2) > input.size(-1) and full:
        residuals = (input @ solution - right).abs().square().sum(-2)
    return LeastSquares(
        solution.squeeze(-1) if vectors else solution,
        residuals,
        rank if driver != "gels" else _C.empty([0], dtype=_C.int64),
        values if driver in ("gelsd", "gelss") else input.new_empty([0], dtype=values.dtype),
    )


_declare(globals())
