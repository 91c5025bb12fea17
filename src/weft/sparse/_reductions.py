"""Sums of sparse tensors, and softmax over the elements that they keep."""

from __future__ import annotations

import math
from typing import Any, cast

from weft._C import Tensor
from weft._functions.elements import unique
from weft.sparse._convert import coalesce
from weft.sparse._operators import merged
from weft.sparse._pattern import Coo, flat_keys
from weft.sparse._tensor import SparseTensor, coo_of, like, make, rule, values_of


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum over `dim`, a number or several (None: all); sparse where sparse dims are left.

    Raises RuntimeError for another layout than sparse_coo with a `dim`, IndexError for a dim that
    is not there.

    >>> weft.sparse.sum(weft.tensor([[1.0, 2.0], [0.0, 3.0]]).to_sparse(), 0).to_dense()
    tensor([1., 5.])
    """
    sparse = cast(SparseTensor, input)
    if dim is None:
        return values_of(sparse).sum(dtype=dtype)
    pattern, count = coo_of("sparse.sum", input), input.dim()
    dims = [dim] if isinstance(dim, int) else list(dim)
    if any(not -count <= one < count for one in dims):
        raise IndexError(f"sparse.sum: expected dims in [{-count}, {count}), got {dims}")
    gone = {one % count for one in dims}
    if len(gone) != len(dims):
        raise RuntimeError(f"sparse.sum: expected each dim once, got {dims}")
    spanned = pattern.sparse_dim
    entries = values_of(sparse)
    inside = [one - spanned + 1 for one in sorted(gone) if one >= spanned]
    entries = entries.sum(inside, dtype=dtype) if inside else entries.to(dtype or entries.dtype)
    left = [one for one in range(spanned) if one not in gone]
    size = tuple(n for one, n in enumerate(pattern.size) if one not in gone)
    if not left:
        return entries.sum(0)
    kept = pattern.coalesced and len(left) == spanned
    indices = pattern.indices if len(left) == spanned else pattern.indices[left]
    return coalesce(make(Coo(indices, size, kept), entries))


@rule("sum")
def _sum(self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    if keepdim:
        raise NotImplementedError("sum: expected keepdim=False for a sparse tensor, got True")
    return sum(self, dim, dtype)


@rule("norm")
def _norm(self: SparseTensor, p: Any = "fro", dim: Any = None, *args: Any, **kwargs: Any) -> Tensor:
    if dim is not None:
        raise NotImplementedError(f"norm: expected dim=None for a sparse tensor, got {dim}")
    return values_of(merged(self)).reshape(-1).norm(2 if p in (None, "fro") else p)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """softmax along `dim` over the elements that are kept: the others count as -inf.

    Raises RuntimeError for another layout than sparse_coo, IndexError for a dim that is not there.

    >>> weft.sparse.softmax(weft.tensor([[0.5, 0.5], [0.0, 2.0]]).to_sparse(), 1).values()
    tensor([0.5000, 0.5000, 1.0000])
    """
    return _softmax("sparse.softmax", input, dim, dtype, False)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of `softmax`.

    >>> weft.sparse.log_softmax(weft.tensor([[0.0, 2.0]]).to_sparse(), 1).values()
    tensor([0.])
    """
    return _softmax("sparse.log_softmax", input, dim, dtype, True)


def _softmax(name: str, input: Tensor, dim: int, dtype: Any, logarithm: bool) -> SparseTensor:
    coo_of(name, input)
    ordered = coalesce(input)
    pattern, entries = cast(Coo, ordered._pattern), values_of(ordered).to(dtype or input.dtype)
    count = input.dim()
    if not -count <= dim < count:
        raise IndexError(f"{name}: expected a dim in [{-count}, {count}), got {dim}")
    dim %= count
    if dim >= pattern.sparse_dim:
        along = dim - pattern.sparse_dim + 1
        return like(ordered, entries.log_softmax(along) if logarithm else entries.softmax(along))
    if pattern.count == 0:
        return like(ordered, entries)
    groups, number = _groups(pattern, dim)
    rest = tuple(entries.shape[1:])
    lowest = entries.new_full((number, *rest), -math.inf)
    positions = groups.reshape(-1, *[1] * len(rest)).expand(entries.shape)
    greatest = lowest.scatter_reduce(0, positions, entries.detach(), "amax")
    # A group whose greatest is infinite keeps it out of the difference.
    greatest = greatest.masked_fill(greatest.abs() == math.inf, 0)
    shifted = entries - greatest.index_select(0, groups)
    totals = entries.new_zeros((number, *rest)).index_add(0, groups, shifted.exp())
    if logarithm:
        return like(ordered, shifted - totals.log().index_select(0, groups))
    return like(ordered, shifted.exp() / totals.index_select(0, groups))


def _groups(pattern: Coo, dim: int) -> tuple[Tensor, int]:
    """Which elements are in one line along `dim`: the line of each, and how many there are."""
    others = [one for one in range(pattern.sparse_dim) if one != dim]
    keys = flat_keys(pattern.indices[others], tuple(pattern.size[one] for one in others))
    lines, inverse = unique(keys, return_inverse=True)
    return inverse, lines.numel()
