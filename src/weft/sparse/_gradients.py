"""Sparse gradients of dense tensors: what the engine asks, and embeddings that give them."""

from __future__ import annotations

from typing import Any, cast

from weft import _C
from weft._C import Tensor
from weft.autograd.function import Function
from weft.sparse._convert import to_dense
from weft.sparse._operators import _add
from weft.sparse._pattern import Coo
from weft.sparse._tensor import SparseTensor, is_sparse, make


def _total(a: Tensor, b: Tensor) -> Tensor:
    """The sum of two gradients; values at one place are added when somebody asks for it."""
    if is_sparse(a) and not is_sparse(b):
        a, b = b, a
    return _add(a, b)


_C._set_sparse_type(SparseTensor, to_dense, _total)


def rows_gradient(rows: Tensor, grad: Tensor, count: int) -> SparseTensor:
    """The gradient of a table of `count` rows for what was looked up: grad [*rows.shape, d]."""
    flat = rows.reshape(1, -1).long()
    values = grad.reshape(flat.size(1), grad.size(-1))
    return make(Coo(flat, (count, grad.size(-1)), False), values)


class _Embedding(Function):
    """weft.embedding with a sparse gradient of the table."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: Tensor, padding: int, by_freq: bool) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.options = weight.size(0), padding, by_freq
        return _C.embedding(weight, rows, padding, by_freq)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        count, padding, by_freq = ctx.options
        rows = ctx.saved_tensors[0].flatten().clone()  # the caller may change its indices
        grad = grad.reshape(rows.numel(), grad.size(-1))
        if padding >= 0:
            kept = rows != padding
            rows, grad = rows[kept], grad[kept]
        if by_freq:
            grad = grad / _C.bincount(rows, minlength=count)[rows].unsqueeze(1)
        return rows_gradient(rows, grad, count), None, None, None


def sparse_embedding(weight: Tensor, rows: Tensor, padding: int, by_freq: bool) -> Tensor:
    """weft.embedding whose gradient is a sparse tensor: `Embedding(sparse=True)`."""
    return cast(Tensor, _Embedding.apply(weight, rows, padding, by_freq))
