"""Between layouts, and the parts of a sparse tensor: methods of every tensor."""

from __future__ import annotations

import math
from typing import Any, cast

from weft import _C, _exports
from weft._C import Tensor
from weft._functions.shapes import unravel_index
from weft.sparse._pattern import Compressed, Coo, compressed, element_count, flat_keys
from weft.sparse._tensor import (
    RULES,
    SparseTensor,
    compressed_of,
    coo_of,
    is_sparse,
    like,
    make,
    values_of,
)


def coalesce(self: Tensor) -> SparseTensor:
    """The same tensor with its places in order, each once; values at one place are added.

    Raises RuntimeError for another layout than sparse_coo.

    >>> weft.sparse_coo_tensor([[1, 0, 1]], [1.0, 2.0, 3.0]).coalesce()
    tensor(indices=tensor([[0, 1]]),
           values=tensor([2., 4.]),
           size=(2,), nnz=2, layout=torch.sparse_coo)
    """
    pattern = coo_of("coalesce", self)
    sparse = cast(SparseTensor, self)
    if pattern.coalesced:
        return sparse
    merged, inverse = pattern.merged()
    values = values_of(sparse)
    dense = values.new_zeros((merged.count, *values.shape[1:]))
    return make(merged, dense.index_add(0, inverse, values))


def is_coalesced(self: Tensor) -> bool:
    """Whether the places of a tensor of layout sparse_coo are in order, each once."""
    return coo_of("is_coalesced", self).coalesced


def _indices(self: Tensor) -> Tensor:
    """The indices [k, n] as they are."""
    return coo_of("_indices", self).indices


def indices(self: Tensor) -> Tensor:
    """The indices [k, n] of a coalesced tensor of layout sparse_coo."""
    _check_coalesced("indices", coo_of("indices", self))
    return _indices(self)


def _values(self: Tensor) -> Tensor:
    """The values as they are, without history."""
    return _own("_values", self).detach()


def values(self: Tensor) -> Tensor:
    """The values of a coalesced sparse tensor, with their history."""
    found = _own("values", self)
    _check_coalesced("values", cast(SparseTensor, self)._pattern)
    return found


def _own(name: str, self: Tensor) -> Tensor:
    if not is_sparse(self):
        raise RuntimeError(f"{name}: expected a sparse layout, got {self.layout}")
    return values_of(self)


def _check_coalesced(name: str, pattern: Any) -> None:
    if isinstance(pattern, Coo) and not pattern.coalesced:
        raise RuntimeError(f"{name}: expected a coalesced tensor, got one that is not; coalesce()")


def _nnz(self: Tensor) -> int:
    """How many values a sparse tensor has."""
    return _own("_nnz", self).size(0)


def sparse_dim(self: Tensor) -> int:
    """How many dimensions have indices; 0 of a dense tensor."""
    pattern = self._pattern if isinstance(self, SparseTensor) else None
    return pattern.sparse_dim if isinstance(pattern, Coo) else 2 if pattern is not None else 0


def dense_dim(self: Tensor) -> int:
    """How many dimensions the values span; all of a dense tensor."""
    return self.dim() - sparse_dim(self)


def crow_indices(self: Tensor) -> Tensor:
    """Where the rows of a matrix of layout sparse_csr begin: [rows + 1]."""
    return compressed_of("crow_indices", self).outer


def col_indices(self: Tensor) -> Tensor:
    """The columns of the values of a matrix of layout sparse_csr: [n]."""
    return compressed_of("col_indices", self).inner


def ccol_indices(self: Tensor) -> Tensor:
    """Where the columns of a matrix of layout sparse_csc begin: [columns + 1]."""
    return compressed_of("ccol_indices", self, True).outer


def row_indices(self: Tensor) -> Tensor:
    """The rows of the values of a matrix of layout sparse_csc: [n]."""
    return compressed_of("row_indices", self, True).inner


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The strided tensor of the same elements; self where it is one.

    The gradient reaches the values that are kept. Raises RuntimeError for sizes that memory cannot
    hold.

    >>> weft.sparse_coo_tensor([[1, 1]], [1.0, 2.0], (3,)).to_dense()
    tensor([0., 3., 0.])
    """
    if isinstance(self, SparseTensor):
        pattern, entries = self._pattern.coo(), values_of(self)
        element_count(pattern.size)
        spanned = pattern.size[: pattern.sparse_dim]
        dense = entries.new_zeros((element_count(spanned), *entries.shape[1:]))
        if pattern.count:
            dense = dense.index_add(0, pattern.keys(), entries)
        self = dense.reshape(pattern.size)
    return self if dtype is None else self.to(dtype)


def to_sparse(
    self: Tensor, sparse_dim: int | None = None, *, layout: Any = None,
    blocksize: Any = None, dense_dim: int | None = None,
) -> SparseTensor:  # fmt: skip
    """The tensor in layout sparse_coo, or in `layout`: its elements that are not 0.

    sparse_dim: how many dimensions get indices (default all); values that are not 0 as a whole
    are kept. Raises RuntimeError for sparse_dim outside of [0, dim], NotImplementedError for
    layouts of blocks.

    >>> weft.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    tensor(indices=tensor([[0],
                           [1]]),
           values=tensor([2.]),
           size=(2, 2), nnz=1, layout=torch.sparse_coo)
    """
    if layout is _C.sparse_csr:
        return to_sparse_csr(self)
    if layout is _C.sparse_csc:
        return to_sparse_csc(self)
    if layout not in (None, _C.sparse_coo):
        raise NotImplementedError(
            f"to_sparse: expected layout torch.sparse_coo, torch.sparse_csr or torch.sparse_csc, "
            f"got {layout}"
        )
    if isinstance(self, SparseTensor):
        if isinstance(self._pattern, Coo):
            return self
        made = make(self._pattern.coo(), values_of(self))
        return coalesce(made)
    count = self.dim() if sparse_dim is None else sparse_dim
    least = min(1, self.dim())
    if not least <= count <= self.dim():
        raise RuntimeError(
            f"to_sparse: expected sparse_dim in [{least}, {self.dim()}], got {count}"
        )
    sizes = tuple(self.shape)
    flat = self.reshape(element_count(sizes[:count]), *sizes[count:])
    kept = (
        (flat.detach() != 0)
        .reshape(flat.size(0), math.prod(flat.shape[1:]))
        .any(1)
        .nonzero()
        .squeeze(1)
    )
    positions = (
        _C.stack(unravel_index(kept, sizes[:count])) if count else kept.new_empty((0, kept.size(0)))
    )
    return make(Coo(positions, sizes, True), flat[kept])


def to_sparse_coo(self: Tensor) -> SparseTensor:
    """to_sparse() of any tensor."""
    return to_sparse(self)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> SparseTensor:
    """The matrix in layout sparse_csr. Raises RuntimeError for another number of dimensions.

    >>> weft.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr()
    tensor(crow_indices=tensor([0, 1, 2]),
           col_indices=tensor([1, 0]),
           values=tensor([2., 3.]), size=(2, 2), nnz=2, layout=torch.sparse_csr)
    """
    if self.layout is _C.sparse_csr:
        return cast(SparseTensor, self)
    ordered = coalesce(to_sparse(_matrix("to_sparse_csr", self)))
    return make(compressed(cast(Coo, ordered._pattern)), values_of(ordered))


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> SparseTensor:
    """The matrix in layout sparse_csc. Raises RuntimeError for another number of dimensions."""
    if self.layout is _C.sparse_csc:
        return cast(SparseTensor, self)
    turned = to_sparse_csr(_matrix("to_sparse_csc", self).t().to_sparse_coo())
    return make(cast(Compressed, turned._pattern).turned(), values_of(turned))


def _matrix(name: str, self: Tensor) -> Tensor:
    if self.dim() != 2 or (isinstance(self, SparseTensor) and dense_dim(self) != 0):
        raise RuntimeError(f"{name}: expected a matrix, got shape {tuple(self.shape)}")
    return self


def sparse_mask(self: Tensor, mask: Tensor) -> SparseTensor:
    """The elements of self at the places of a sparse mask of the same sizes.

    >>> weft.ones(2, 2).sparse_mask(weft.eye(2).to_sparse()).to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    if not isinstance(mask, SparseTensor) or mask.shape != self.shape:
        raise RuntimeError(
            f"sparse_mask: expected a sparse mask of shape {tuple(self.shape)}, got layout "
            f"{mask.layout} and shape {tuple(mask.shape)}"
        )
    if isinstance(self, SparseTensor):
        return like(mask, elements_of(self, mask._pattern.coo()))
    return like(mask, elements_at(self, mask._pattern.coo()))


def elements_at(dense: Tensor, pattern: Coo) -> Tensor:
    """The elements of a strided tensor at the places of a pattern of its sizes."""
    spanned = pattern.size[: pattern.sparse_dim]
    flat = dense.reshape(element_count(spanned), *pattern.size[pattern.sparse_dim :])
    return flat.index_select(0, pattern.keys())


def elements_of(sparse: SparseTensor, pattern: Coo) -> Tensor:
    """The elements of a sparse tensor at the places of a pattern of its sizes: 0 where it has
    none."""
    ordered = coalesce(to_sparse(sparse))
    own, entries = cast(Coo, ordered._pattern), values_of(ordered)
    if own.sparse_dim != pattern.sparse_dim:
        raise RuntimeError(
            f"sparse: expected equal numbers of sparse dimensions, got {own.sparse_dim} and "
            f"{pattern.sparse_dim}"
        )
    wanted, keys = pattern.keys(), flat_keys(own.indices, own.size)
    if own.count == 0:
        return entries.new_zeros((pattern.count, *entries.shape[1:]))
    found = _C.searchsorted(keys, wanted).clamp_max(own.count - 1)
    hit = (keys[found] == wanted).reshape(-1, *[1] * (entries.dim() - 1))
    return _C.where(hit, entries.index_select(0, found), entries.new_zeros(()))


RULES.update({name: globals()[name] for name in _exports.SPARSE_METHODS})
