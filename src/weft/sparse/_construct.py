"""Sparse tensors from their parts: sparse_coo_tensor, sparse_csr_tensor and their like."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft.sparse._pattern import Compressed, Coo, element_count
from weft.sparse._tensor import SparseTensor, make

_INTEGERS = (_C.uint8, _C.int8, _C.int16, _C.int32, _C.int64)


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """A tensor of the sizes `size` with values [n, *] at the places of indices [k, n].

    The indices span the first k dimensions; values at one place add up. `size` is the smallest that
    holds all places where it is not given. sparse_coo_tensor(size) has no values. A gradient flows
    to `values`. Indices are checked always; is_coalesced=True says that they are in order, each
    once, and is checked with check_invariants=True.

    Raises RuntimeError for indices outside of `size` and for parts whose sizes do not fit.

    >>> weft.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    name = "sparse_coo_tensor"
    if values is None:
        size = indices if size is None else size
        if size is None:
            raise TypeError(f"{name}: expected indices and values, or a size, got neither")
        sizes = _sizes(name, size)
        positions = _C.empty((len(sizes), 0), dtype=_C.int64)
        entries = _C.empty(0, dtype=dtype or _C.get_default_dtype(), device=device)
    else:
        positions, entries = _indices(name, indices), _values(values, dtype, device)
        positions = positions.unsqueeze(0) if positions.dim() == 1 else positions
        if positions.dim() != 2 or entries.dim() == 0 or entries.size(0) != positions.size(1):
            raise RuntimeError(
                f"{name}: expected indices [k, n] and values [n, *], got shapes "
                f"{tuple(positions.shape)} and {tuple(entries.shape)}"
            )
        sizes = _sizes_for(positions, entries) if size is None else _sizes(name, size)
    _check_places(name, positions, entries, sizes)
    pattern = Coo(positions, sizes, bool(is_coalesced))
    if is_coalesced and check_invariants and not bool((pattern.keys().diff() > 0).all()):
        raise RuntimeError(f"{name}: expected coalesced indices, got some out of order or twice")
    return _finish(make(pattern, entries), requires_grad)


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """`sparse_csr_tensor`, or with layout=weft.sparse_csc the same by columns.

    Raises NotImplementedError for blocks (sparse_bsr, sparse_bsc), else as sparse_csr_tensor.

    >>> parts = [0, 1, 2], [1, 0], [3.0, 4.0]
    >>> weft.sparse_compressed_tensor(*parts, layout=weft.sparse_csr).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    name = "sparse_compressed_tensor"
    if layout not in (_C.sparse_csr, _C.sparse_csc):
        raise NotImplementedError(
            f"{name}: expected layout torch.sparse_csr or torch.sparse_csc, got {layout}"
        )
    by_columns = layout is _C.sparse_csc
    outer, inner = _indices(name, compressed_indices), _indices(name, plain_indices)
    entries = _values(values, dtype, device)
    if outer.dim() != 1 or inner.dim() != 1 or outer.size(0) < 1 or entries.dim() != 1:
        raise RuntimeError(
            f"{name}: expected vectors of indices and values, got shapes {tuple(outer.shape)}, "
            f"{tuple(inner.shape)} and {tuple(entries.shape)}"
        )
    if size is None:
        pair = (outer.size(0) - 1, int(inner.max()) + 1 if inner.numel() else 0)
        sizes: tuple[int, ...] = pair[::-1] if by_columns else pair
    else:
        sizes = _sizes(name, size)
    _check_compressed(name, outer, inner, entries, sizes[::-1] if by_columns else sizes)
    return _finish(make(Compressed(outer, inner, sizes, by_columns), entries), requires_grad)


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any
) -> SparseTensor:
    """A matrix of the sizes `size` whose row i has values[crow_indices[i] : crow_indices[i + 1]],
    in the columns of col_indices. A gradient flows to `values`.

    options: dtype, device, requires_grad, as for sparse_coo_tensor.

    Raises RuntimeError for indices outside of `size` and for parts whose sizes do not fit.

    >>> weft.sparse_csr_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    options.setdefault("layout", _C.sparse_csr)
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, **options)


def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any
) -> SparseTensor:
    """`sparse_csr_tensor` by columns.

    >>> weft.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).to_dense()
    tensor([[0., 4.],
            [3., 0.]])
    """
    options.setdefault("layout", _C.sparse_csc)
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, **options)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> SparseTensor:
    """A matrix of the sizes `shape` that has row i of `diagonals` on its diagonal offsets[i].

    Element j of a row stands in column j; those outside of the matrix are left out. layout:
    sparse_coo (the default), sparse_csr or sparse_csc.

    RuntimeError unless `offsets` are distinct int64, one for each row, and for another layout.

    >>> weft.sparse.spdiags(weft.tensor([[1, 2], [3, 4]]), weft.tensor([0, 1]), (2, 2)).to_dense()
    tensor([[1, 4],
            [0, 2]])
    """
    rows = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    positions = offsets.reshape(1) if offsets.dim() == 0 else offsets
    sizes = _sizes("spdiags", shape)
    if rows.dim() != 2 or positions.shape != rows.shape[:1] or len(sizes) != 2:
        raise RuntimeError(
            f"spdiags: expected a row for each offset and two sizes, got shapes "
            f"{tuple(diagonals.shape)} and {tuple(offsets.shape)}, and {sizes}"
        )
    if positions.dtype != _C.int64 or len(set(positions.tolist())) < positions.numel():
        raise RuntimeError(f"spdiags: expected distinct int64 offsets, got {offsets}")
    if layout not in (None, _C.sparse_coo, _C.sparse_csr, _C.sparse_csc):
        raise RuntimeError(f"spdiags: expected a layout of sparse matrices, got {layout}")
    column = _C.arange(rows.size(1)).expand(rows.shape)
    row = column - positions.unsqueeze(1)
    inside = (row >= 0) & (row < sizes[0]) & (column < sizes[1])
    found = make(Coo(_C.stack([row[inside], column[inside]]), sizes, False), rows[inside])
    return found if layout in (None, _C.sparse_coo) else found.to_sparse(layout=layout)


def _finish(made: SparseTensor, requires_grad: bool) -> SparseTensor:
    if requires_grad:
        made.requires_grad_()
    return made


def _indices(name: str, value: Any) -> Tensor:
    found = value if isinstance(value, Tensor) else _C.tensor(value)
    if found.dtype not in _INTEGERS:
        if found.numel() and not found.is_floating_point():
            raise RuntimeError(f"{name}: expected indices of integers, got {found.dtype}")
        found = found.long()
    keeps = name != "sparse_coo_tensor" and found.dtype == _C.int32
    return found.detach() if keeps else found.detach().long()


def _values(value: Any, dtype: Any, device: Any) -> Tensor:
    if not isinstance(value, Tensor):
        return _C.tensor(value, dtype=dtype, device=device)
    return value.to(device=device or value.device, dtype=dtype or value.dtype)


def _sizes(name: str, size: Any) -> tuple[int, ...]:
    sizes = tuple(int(n) for n in size)
    if any(n < 0 for n in sizes):
        raise RuntimeError(f"{name}: expected sizes of at least 0, got {sizes}")
    element_count(sizes)
    return sizes


def _sizes_for(indices: Tensor, values: Tensor) -> tuple[int, ...]:
    if indices.size(1) == 0:
        least = [0] * indices.size(0)
    else:
        least = [int(n) + 1 for n in indices.amax(1).tolist()] if indices.size(0) else []
    return (*least, *values.shape[1:])


def _check_places(name: str, indices: Tensor, values: Tensor, sizes: tuple[int, ...]) -> None:
    sparse = indices.size(0)
    if len(sizes) != sparse + values.dim() - 1 or sizes[sparse:] != tuple(values.shape[1:]):
        raise RuntimeError(
            f"{name}: expected a size of {sparse} dimensions and then {tuple(values.shape[1:])}, "
            f"got {sizes}"
        )
    for dim, (row, size) in enumerate(zip(indices, sizes)):
        _check_range(f"{name}: expected indices of dim {dim} in [0, {size})", row, size)


def _check_range(text: str, indices: Tensor, size: int) -> None:
    if indices.numel() == 0:
        return
    least, greatest = int(indices.min()), int(indices.max())
    if least < 0 or greatest >= size:
        raise RuntimeError(f"{text}, got {least if least < 0 else greatest}")


def _check_compressed(
    name: str, outer: Tensor, inner: Tensor, values: Tensor, sizes: tuple[int, ...]
) -> None:
    """sizes: those of the compressed dimension first."""
    if len(sizes) != 2 or outer.size(0) != sizes[0] + 1 or inner.size(0) != values.size(0):
        raise RuntimeError(
            f"{name}: expected indices for a matrix of size {sizes} with {values.size(0)} values, "
            f"got shapes {tuple(outer.shape)} and {tuple(inner.shape)}"
        )
    if int(outer[0]) != 0 or int(outer[-1]) != inner.size(0) or bool((outer.diff() < 0).any()):
        raise RuntimeError(
            f"{name}: expected compressed indices that rise from 0 to {inner.size(0)}, got "
            f"{outer.tolist() if outer.numel() < 20 else f'{int(outer[0])} to {int(outer[-1])}'}"
        )
    _check_range(f"{name}: expected plain indices in [0, {sizes[1]})", inner, sizes[1])
