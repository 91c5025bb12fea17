"""Helpers of normal vectors that programs import by PyTorch's private names."""

from __future__ import annotations

from weft import _C, linalg
from weft._C import Tensor
from weft._functions.shapes import broadcast_shapes


def solved(factor: Tensor, columns: Tensor) -> Tensor:
    """inverse(factor) @ columns of a lower triangular factor; they broadcast."""
    shape = broadcast_shapes(factor.shape[:-2], columns.shape[:-2])
    factor = factor.expand(*shape, *factor.shape[-2:])
    columns = columns.expand(*shape, *columns.shape[-2:])
    return linalg.solve_triangular(factor, columns, upper=False)


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Products of matrices [*, n, m] and vectors [*, m]; they broadcast."""
    return (bmat @ bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """x.T @ inverse(L @ L.T) @ x of lower triangular factors [*, n, n] and vectors [*, n]."""
    return solved(bL, bx.unsqueeze(-1)).square().sum((-2, -1))


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """The lower Cholesky factor of the inverse of P. With J the exchange of rows, it is J L**-T J
    of the factor L of J P J."""
    upper = linalg.cholesky(P.flip((-2, -1))).flip((-2, -1)).mT
    return solved(upper, _C.eye(upper.shape[-1], dtype=upper.dtype))
