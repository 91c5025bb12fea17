"""Norms, and functions of `weft.linalg` under the names that they had before it."""

from __future__ import annotations

import warnings
from typing import Any

from weft import _C, linalg
from weft._C import Tensor
from weft._functions.out import takes_out
from weft._runtime.argument_types import Ints as _Ints
from weft._runtime.torch_function import declare as _declare

_aten = _C._aten


def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """The norm of order p over `dim`: a number, "fro" (2) or "nuc" (the sum of singular values).

    Floating and complex dtypes; the result is real. weft.linalg.norm says more by its names. Raises
    RuntimeError for other dtypes.

    >>> weft.norm(weft.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if p == "nuc":
        dims = _dims_by_name(input, p, dim)
        result = linalg.matrix_norm(input, "nuc", dims, keepdim, dtype=dtype)
    else:
        if isinstance(p, str):
            _dims_by_name(input, p, dim)
        order = 2 if p is None or p == "fro" else p
        dims = [dim] if isinstance(dim, int) else dim
        result = _aten.linalg_vector_norm(input, order, dims, keepdim, dtype=dtype)
    return result if out is None else _aten.alias_copy(result, out=out)


def _dims_by_name(input: Tensor, p: str, dim: Any) -> list[int]:
    """The dimensions of a norm with a name: two for "nuc"; for "fro" up to two, or all of them."""
    dims = [dim] if isinstance(dim, int) else list(range(input.dim()) if dim is None else dim)
    named = len(dims) == 2 if p == "nuc" else p == "fro" and (dim is None or len(dims) <= 2)
    if not named:
        raise RuntimeError(f"norm: expected 'fro', or 'nuc' and two dims, got {p!r} and {dims}")
    return dims


@takes_out
def frobenius_norm(input: Tensor, dim: _Ints, keepdim: bool = False) -> Tensor:
    """The root of the sum of squares over `dim`; none of them means all.

    >>> weft.frobenius_norm(weft.tensor([[3.0, 4.0]]), 1)
    tensor([5.])
    """
    dims = [dim] if isinstance(dim, int) else list(dim)
    return _aten.linalg_vector_norm(input, 2, dims or None, keepdim)


@takes_out
def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of the singular values of matrices, which lie in the two dimensions `dim`.

    >>> weft.nuclear_norm(weft.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(7.)
    """
    if isinstance(dim, bool):  # nuclear_norm(input, keepdim)
        dim, keepdim = (-2, -1), dim
    return linalg.matrix_norm(input, "nuc", dim, keepdim)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse of matrices.

    >>> weft.pinverse(weft.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    return linalg.pinv(input, rtol=rcond)


@takes_out
def chain_matmul(*matrices: Any) -> Tensor:
    """linalg.multi_dot of matrices, also of a single one, under its old name; warns of that.

    Shapes, dtypes and errors are its; RuntimeError for vectors.

    >>> weft.chain_matmul(weft.ones(1, 2))
    tensor([[1., 1.]])
    """
    if any(each.dim() != 2 for each in matrices):
        raise RuntimeError("chain_matmul: expected matrices, got a vector or a batch")
    if len(matrices) > 1:
        warnings.warn("chain_matmul is deprecated: use linalg.multi_dot", stacklevel=3)
    return matrices[0].clone() if len(matrices) == 1 else linalg.multi_dot(matrices)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm of order `pow` of each slice along `dim` (-1: of all of v, 0-d), to broadcast to v.

    >>> weft.norm_except_dim(weft.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5.],
            [1.]])
    """
    if dim == -1:
        return linalg.vector_norm(v, pow)
    dims = [each for each in range(v.dim()) if each != dim]
    return linalg.vector_norm(v, pow, dims, True)


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """`v` with the norms `g`, shaped as norm_except_dim gives them."""
    return v * (g / norm_except_dim(v, 2, dim))


_declare(globals(), ("chain_matmul", "norm"))
