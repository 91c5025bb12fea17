"""Products of sparse and dense tensors."""

from __future__ import annotations

from typing import Any, cast

from weft import _C
from weft._C import Tensor
from weft._functions.lobpcg import lobpcg
from weft.sparse._convert import coalesce, to_dense, to_sparse, to_sparse_csr
from weft.sparse._operators import merged
from weft.sparse._pattern import Compressed, Coo
from weft.sparse._tensor import SparseTensor, is_sparse, like, make, rule, values_of
from weft.sparse._views import spans

_bag_sum = _C._aten._bag_sum


def mm(mat1: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """The product of two matrices, of which one is sparse or both are: then it is, too.

    Beside "sum", `reduce` may be "mean", "amax" or "amin" of the products at the places of each row
    of a sparse mat1, 0 where it has none. The gradient of a sparse matrix has its places. Raises
    RuntimeError for shapes that do not fit, for one that is hybrid and for another `reduce`;
    NotImplementedError for a `reduce` of a dense mat1 or a sparse mat2.

    >>> weft.sparse.mm(weft.eye(2).to_sparse(), weft.tensor([[1.0], [2.0]]))
    tensor([[1.],
            [2.]])
    """
    if mat1.dim() != 2 or mat2.dim() != 2 or mat1.size(1) != mat2.size(0):
        raise RuntimeError(
            f"mm: expected matrices [n, k] and [k, m], got shapes {tuple(mat1.shape)} and "
            f"{tuple(mat2.shape)}"
        )
    if mat1.dtype != mat2.dtype:
        raise RuntimeError(f"mm: expected tensors of one dtype, got {mat1.dtype} and {mat2.dtype}")
    if reduce != "sum":
        if not is_sparse(mat1) or is_sparse(mat2):
            raise NotImplementedError(f"sparse.mm: expected reduce='sum', got {reduce!r}")
        return _reduced_product(mat1, mat2, reduce)
    if is_sparse(mat1) and is_sparse(mat2):
        made = _sparse_product(coalesce(to_sparse(mat1)), coalesce(to_sparse(mat2)))
        return made if mat1.layout is _C.sparse_coo else to_sparse_csr(made)
    if is_sparse(mat1):
        return _dense_product(mat1, mat2)
    if is_sparse(mat2):
        return _dense_product(cast(SparseTensor, mat2.t()), mat1.t()).t()
    return _C.mm(mat1, mat2)


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, as sparse.mm."""
    return mm(input, mat2)


def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, as sparse.mm: an older name."""
    return mm(input, mat2)


def smm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one, as a sparse tensor.

    RuntimeError where `input` is dense, and as sparse.mm.

    >>> weft.smm(weft.eye(2).to_sparse(), weft.tensor([[0.0], [2.0]])).to_dense()
    tensor([[0.],
            [2.]])
    """
    if not is_sparse(input) or is_sparse(mat2):
        raise RuntimeError(
            f"smm: expected a sparse and a dense matrix, got {input.layout} and {mat2.layout}"
        )
    return mm(input, mat2).to_sparse()


def _entries(name: str, matrix: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, columns and values."""
    pattern = matrix._pattern.coo()
    if pattern.sparse_dim != 2 or len(pattern.size) != 2:
        raise RuntimeError(
            f"{name}: expected matrices without dense dims, got shape {tuple(matrix.shape)} with "
            f"{pattern.sparse_dim} sparse dims"
        )
    return pattern.indices[0], pattern.indices[1], values_of(matrix)


def _dense_product(left: SparseTensor, right: Tensor) -> Tensor:
    pattern = left._pattern
    if isinstance(pattern, Compressed) and not pattern.by_columns and right.is_floating_point():
        return _bag_sum(right, pattern.inner, pattern.outer[:-1], values_of(left))
    rows, columns, entries = _entries("mm", left)
    if not right.is_floating_point():
        dense = right.new_zeros((left.size(0), right.size(1)))
        return dense.index_add(0, rows, entries.unsqueeze(1) * right.index_select(0, columns))
    if not (isinstance(pattern, Coo) and pattern.coalesced):
        order = rows.argsort(stable=True)
        columns, entries = columns.index_select(0, order), entries.index_select(0, order)
    counts = _C.bincount(rows, minlength=left.size(0))
    return _bag_sum(right, columns, counts.cumsum(0) - counts, entries)


def _reduced_product(left: SparseTensor, right: Tensor, reduce: str) -> Tensor:
    rows, columns, entries = _entries("sparse.mm", merged(left))
    products = entries.unsqueeze(1) * right.index_select(0, columns)
    made = right.new_zeros((left.size(0), right.size(1)))
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    return made.index_reduce(0, rows, products, reduce, include_self=False)


def _sparse_product(left: SparseTensor, right: SparseTensor) -> SparseTensor:
    """Each value (i, k) meets those of row k on the right; what falls on one place adds up
    (Gustavson, Two fast algorithms for sparse matrices, 1978)."""
    rows, inner, entries = _entries("mm", left)
    right_rows, columns, right_entries = _entries("mm", right)
    counts = _C.bincount(right_rows, minlength=right.size(0))
    taken, owner = spans(counts.cumsum(0) - counts, counts, inner)
    indices = _C.stack([rows[owner], columns[taken]])
    values = entries.index_select(0, owner) * right_entries.index_select(0, taken)
    return coalesce(make(Coo(indices, (left.size(0), right.size(1)), False), values))


rule("lobpcg")(lobpcg.__wrapped__)  # type: ignore[attr-defined]


rule("mm", "spmm", "dsmm", "hspmm")(lambda self, mat2: mm(self, mat2))


rule("smm")(smm)


@rule("mv")
def _mv(self: Tensor, vec: Tensor) -> Tensor:
    if vec.dim() != 1 or is_sparse(vec):
        raise RuntimeError(f"mv: expected a dense vector, got shape {tuple(vec.shape)}")
    return mm(self, vec.unsqueeze(1)).squeeze(1)


def _times(x: Tensor, beta: Any) -> Tensor:
    """x * beta; 0 for a beta of 0, also where x is not finite."""
    return x * beta if beta != 0 or is_sparse(x) else x.masked_fill(_C.tensor(True), 0)


@rule("addmv")
def _addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _times(input, beta) + _mv(mat, vec) * alpha


@rule("linear")
def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    rows = input if input.dim() == 2 else input.reshape(-1, input.size(-1))
    made = mm(rows, weight.t()).reshape(*input.shape[:-1], weight.size(0))
    return made if bias is None else made + bias


@rule("bmm")
def _bmm(self: Tensor, mat2: Tensor) -> Tensor:
    """A batch of sparse matrices is one, whose blocks lie along its diagonal."""
    if (
        not is_sparse(self) or is_sparse(mat2) or self.dim() != 3 or mat2.dim() != 3
        or self.size(0) != mat2.size(0) or self.size(2) != mat2.size(1)
    ):  # fmt: skip
        raise RuntimeError(
            f"bmm: expected a sparse [b, n, k] and a dense [b, k, m], got layouts {self.layout} "
            f"and {mat2.layout}, shapes {tuple(self.shape)} and {tuple(mat2.shape)}"
        )
    count, height, width = self.shape
    batch, rows, columns = self._pattern.coo().indices
    indices = _C.stack([batch * height + rows, batch * width + columns])
    blocks = make(Coo(indices, (count * height, count * width), False), values_of(self))
    flat = mm(blocks, mat2.reshape(count * width, mat2.size(2)))
    return flat.reshape(count, height, mat2.size(2))


@rule("matmul", "__matmul__", "__rmatmul__")
def _matmul(input: Tensor, other: Tensor) -> Tensor:
    if input.dim() == 2 and other.dim() == 1:
        return _mv(input, other)
    if input.dim() == 1 and other.dim() == 2:
        return _mv(other.t(), input)
    if input.dim() == 3 and other.dim() == 3:
        return _bmm(input, other)
    return mm(input, other)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0) -> Tensor:
    """beta * mat + alpha * (mat1 @ mat2) for a sparse mat1.

    Raises as `mm`.

    >>> weft.sparse.addmm(weft.ones(2, 1), weft.eye(2).to_sparse(), weft.ones(2, 1), beta=2)
    tensor([[3.],
            [3.]])
    """
    return _addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


@rule("addmm", "saddmm", "sspaddmm")
def _addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    product = mm(mat1, mat2)
    product = product if is_sparse(input) else to_dense(product)
    return _times(input, beta) + product * alpha


def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) at the places of a sparse `input`, nowhere else.

    Raises RuntimeError for a dense input, and as mm.

    >>> one = weft.eye(2).to_sparse_csr()
    >>> weft.sparse.sampled_addmm(one, weft.ones(2, 3), weft.ones(3, 2)).values()
    tensor([4., 4.])
    """
    if not is_sparse(input):
        raise RuntimeError(f"sampled_addmm: expected a sparse input, got layout {input.layout}")
    rows, columns, entries = _entries("sampled_addmm", input)
    found = (mat1.index_select(0, rows) * mat2.t().index_select(0, columns)).sum(1)
    return like(input, entries * beta + found * alpha)
