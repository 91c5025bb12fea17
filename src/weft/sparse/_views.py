"""Attributes, copies and views of sparse tensors."""

from __future__ import annotations

from typing import Any, cast

from weft import _C
from weft._C import Size, Tensor
from weft.autograd._run import backward
from weft.sparse._convert import coalesce, to_sparse, to_sparse_csc, to_sparse_csr
from weft.sparse._pattern import Compressed, Coo, element_count
from weft.sparse._tensor import (
    RULES,
    SparseTensor,
    is_sparse,
    like,
    make,
    on_values,
    plainly,
    rule,
    tensor_member,
    values_of,
)

# ---- what a sparse tensor shares with its values ----

#: attributes of the values that are those of the sparse tensor
_OF_VALUES = (
    "device dtype grad_fn is_leaf requires_grad retains_grad is_cpu is_cuda is_meta "
    "is_quantized output_nr _version itemsize"
)
for _name in _OF_VALUES.split():
    RULES[_name] = plainly(tensor_member(_name).__get__)
RULES["set_requires_grad"] = plainly(tensor_member("requires_grad").__set__)
#: methods of the values
_METHODS_OF_VALUES = (
    "is_floating_point is_complex element_size get_device is_inference requires_grad_ "
    "retain_grad detach_ __hash__"
)
for _name in _METHODS_OF_VALUES.split():
    RULES[_name] = plainly(tensor_member(_name))


@rule("grad")
def _grad(self: SparseTensor) -> Tensor | None:
    found = plainly(tensor_member("grad").__get__)(self)
    return None if found is None else self._gradient(found)


@rule("set_grad")
def _set_grad(self: Tensor, value: Tensor | None) -> None:
    if is_sparse(self) and is_sparse(value):
        value = values_of(value).detach()
    plainly(tensor_member("grad").__set__)(self, value)


@rule("backward")
def _backward(self: Tensor, gradient: Tensor | None = None, *args: Any, **options: Any) -> None:
    backward(self, gradient, *args, **options)


# ---- sizes ----


@rule("shape")
def _shape(self: SparseTensor) -> Size:
    return Size(self._pattern.size)


@rule("size")
def _size(self: SparseTensor, dim: int | None = None) -> Any:
    return _shape(self) if dim is None else _shape(self)[_wrapped(self, dim)]


rule("dim", "ndim", "ndimension")(lambda self: len(self._pattern.size))
rule("numel", "nelement")(lambda self: element_count(self._pattern.size))
rule("__len__")(lambda self: self._pattern.size[0])
rule("layout")(lambda self: self._pattern.layout)
rule("is_sparse")(lambda self: isinstance(self._pattern, Coo))


def _wrapped(self: SparseTensor, dim: int) -> int:
    count = len(self._pattern.size)
    if not -count <= dim < count:
        raise IndexError(f"sparse: expected a dim in [{-count}, {count}), got {dim}")
    return dim % count


# ---- copies and views ----


#: methods that make other values at the same places
_COPIES = "detach clone to cpu double float half bfloat16 long int type contiguous"
for _name in _COPIES.split():
    RULES[_name] = on_values(tensor_member(_name))


rule("data")(lambda self: like(self, values_of(self).detach()))


@rule("zeros_like", "empty_like")
def _zeros_like(self: SparseTensor, *, dtype: Any = None, **options: Any) -> SparseTensor:
    values = values_of(self).detach()
    none = values.new_zeros((0, *values.shape[1:]), dtype=dtype or values.dtype)
    pattern = self._pattern.coo()
    made = make(Coo(pattern.indices[:, :0], pattern.size, True), none)
    if isinstance(self._pattern, Coo):
        return made
    return to_sparse_csc(made) if self.layout is _C.sparse_csc else to_sparse_csr(made)


@rule("permute")
def _permute(self: SparseTensor, *given: Any, dims: Any = None) -> SparseTensor:
    dims = given if dims is None else dims
    order = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    order = [_wrapped(self, dim) for dim in order]
    if sorted(order) != list(range(self.dim())):
        raise RuntimeError(f"permute: expected each dim of {self.dim()} once, got {tuple(dims)}")
    pattern = self._pattern
    if order == list(range(self.dim())):
        return like(self, values_of(self))
    if isinstance(pattern, Compressed):
        return make(pattern.turned(), values_of(self))
    spanned = cast(Coo, pattern).sparse_dim
    if any((dim < spanned) != (place < spanned) for place, dim in enumerate(order)):
        raise RuntimeError(
            f"permute: expected sparse dims (below {spanned}) to stay sparse, got {tuple(order)}"
        )
    indices = cast(Coo, pattern).indices[order[:spanned]]
    size = tuple(pattern.size[dim] for dim in order)
    values = values_of(self).permute(0, *[dim - spanned + 1 for dim in order[spanned:]])
    return make(Coo(indices, size, False), values)


@rule("transpose", "swapaxes", "swapdims")
def _transpose(self: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    order = list(range(self.dim()))
    a, b = _wrapped(self, dim0), _wrapped(self, dim1)
    order[a], order[b] = order[b], order[a]
    return _permute(self, order)


@rule("t", "T", "mT")
def _t(self: SparseTensor) -> SparseTensor:
    if self.dim() > 2:
        raise RuntimeError(f"t: expected a matrix, got shape {tuple(self.shape)}")
    return _permute(self, [1, 0]) if self.dim() == 2 else self


@rule("select")
def _select(self: SparseTensor, dim: int, index: int) -> Tensor:
    ordered, dim = coalesce(to_sparse(self)), _wrapped(self, dim)
    pattern, size = cast(Coo, ordered._pattern), self.size(dim)
    if not -size <= index < size:
        raise IndexError(f"select: expected an index in [{-size}, {size}), got {index}")
    sizes = (*pattern.size[:dim], *pattern.size[dim + 1 :])
    if dim >= pattern.sparse_dim:
        picked = values_of(ordered).select(dim - pattern.sparse_dim + 1, index)
        return make(Coo(pattern.indices, sizes, True), picked)
    hits = pattern.indices[dim] == index % size
    values = values_of(ordered)[hits]
    if pattern.sparse_dim == 1:
        return values.sum(0)
    others = [one for one in range(pattern.sparse_dim) if one != dim]
    return make(Coo(pattern.indices[others][:, hits], sizes, True), values)


@rule("unbind")
def _unbind(self: SparseTensor, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(_select(self, dim, index) for index in range(self.size(dim)))


@rule("__getitem__")
def _getitem(self: SparseTensor, index: Any) -> Tensor:
    found: Tensor = self
    dim = 0
    for one in index if isinstance(index, tuple) else (index,):
        if isinstance(one, int) and not isinstance(one, bool):
            found = found.select(dim, one)
            continue
        if one is None:
            found = found.unsqueeze(dim)
        elif not isinstance(one, slice) or one != slice(None):
            raise NotImplementedError(
                f"__getitem__: expected ints, None and whole dims for layout {self.layout}, got "
                f"{index!r}"
            )
        dim += 1
    return found


@rule("unsqueeze")
def _unsqueeze(self: SparseTensor, dim: int) -> SparseTensor:
    pattern, place = self._pattern, dim if dim >= 0 else dim + self.dim() + 1
    if not isinstance(pattern, Coo) or not 0 <= place <= pattern.sparse_dim:
        raise RuntimeError(f"unsqueeze: expected a dim among the sparse ones, got {dim}")
    row = pattern.indices.new_zeros((1, pattern.count))
    indices = _C.cat([pattern.indices[:place], row, pattern.indices[place:]])
    size = (*pattern.size[:place], 1, *pattern.size[place:])
    return make(Coo(indices, size, pattern.coalesced), values_of(self))


@rule("index_select")
def _index_select(self: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """The places on each chosen row, once for each time that it is chosen."""
    ordered, dim = coalesce(self), _wrapped(self, dim)
    pattern = cast(Coo, ordered._pattern)
    if dim >= pattern.sparse_dim:
        picked = values_of(ordered).index_select(dim - pattern.sparse_dim + 1, index)
        return make(_resized(pattern, dim, index.numel()), picked)
    size = pattern.size[dim]
    if index.numel() and not (int(index.min()) >= 0 and int(index.max()) < size):
        raise IndexError(f"index_select: expected indices in [0, {size}), got {index.tolist()}")
    by_row = pattern.indices[dim].argsort(stable=True)
    counts = _C.bincount(pattern.indices[dim], minlength=size)
    taken, owner = spans(counts.cumsum(0) - counts, counts, index)
    chosen = by_row[taken]
    indices = pattern.indices[:, chosen].clone()
    indices[dim] = owner
    made = _resized(Coo(indices, pattern.size, False), dim, index.numel())
    return coalesce(make(made, values_of(ordered).index_select(0, chosen)))


rule("narrow_copy")(lambda x, dim, at, count: _index_select(x, dim, _C.arange(at, at + count)))


def _resized(pattern: Coo, dim: int, size: int) -> Coo:
    sizes = (*pattern.size[:dim], size, *pattern.size[dim + 1 :])
    return Coo(pattern.indices, sizes, pattern.coalesced)


def spans(begins: Tensor, counts: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The positions begins[r] ... begins[r] + counts[r] - 1 of each of these rows, one behind the
    other; and which of the rows each position is of."""
    each = counts[rows]
    owner = _C.arange(rows.numel()).repeat_interleave(each)
    within = _C.arange(owner.numel()) - (each.cumsum(0) - each)[owner]
    return begins[rows][owner] + within, owner


@rule("cat", "concat", "concatenate")
def _cat(tensors: Any, dim: int = 0) -> SparseTensor:
    parts = [coalesce(_coo("cat", one)) for one in tensors]
    patterns = [cast(Coo, one._pattern) for one in parts]
    first, dim = patterns[0], _wrapped(parts[0], dim)
    rest = {(p.sparse_dim, p.size[:dim], p.size[dim + 1 :]) for p in patterns}
    if len(rest) != 1 or dim >= first.sparse_dim:
        raise RuntimeError(
            f"cat: expected equal sizes but for a sparse dim {dim}, got "
            f"{[tuple(p.size) for p in patterns]}"
        )
    columns, total = [], 0
    for pattern in patterns:
        moved = pattern.indices.clone()
        moved[dim] += total
        columns.append(moved)
        total += pattern.size[dim]
    joined = _resized(Coo(_C.cat(columns, 1), first.size, False), dim, total)
    return make(joined, _C.cat([values_of(one) for one in parts]))


@rule("stack")
def _stack(tensors: Any, dim: int = 0) -> SparseTensor:
    return _cat([_unsqueeze(_coo("stack", one), dim) for one in tensors], dim)


def _coo(name: str, value: Any) -> SparseTensor:
    if not is_sparse(value) or not isinstance(value._pattern, Coo):
        layout = value.layout if isinstance(value, Tensor) else type(value).__name__
        raise NotImplementedError(f"{name}: expected layout torch.sparse_coo, got {layout}")
    return value
