"""Joining, indexing, gathering, scattering, sorting."""

from __future__ import annotations

from typing import Any

from weft._ops.table import backward_of, backward_op, op, ops

# ---- joining ----

op(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    doc="The tensors one after another along `dim`.",
    grad={"tensors": "split_with_sizes(grad, tensors.sizes(dim), dim)"},
    out="out",
    tags=("autocast_widest", "casts_out", "by_channels"),
    shape="joined(tensors, dim)",
    result="tensors",
)
op(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    doc="The tensors side by side along a new dimension `dim`.",
    tags=("composite", "autocast_widest", "casts_out"),
    out="out",
    shape="stacked(tensors, dim)",
    result="tensors",
)
op(
    "flip(Tensor self, int[] dims) -> Tensor",
    doc="A copy with the order of the dimensions `dims` reversed.",
    grad={"self": "grad.flip(dims)"},
    tags=("by_channels",),
    like="self",
)
op(
    "roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor",
    doc="A copy with entries moved on by `shifts`; those that fall off come in at the start.",
    grad={"self": "grad.roll(negated(shifts), dims)"},
    tags=("by_channels",),
    like="self",
)
op(
    "repeat(Tensor self, int[] repeats) -> Tensor",
    doc="self laid out `repeats` times along each dimension.",
    tags=("composite",),
    variants="m",
)

# ---- indexing by tensors ----

op(
    "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    doc="The elements at integer or bool indices, one tensor a dimension (None: all of it).",
    grad={"self": "_index_backward(grad, self.shape, indices)"},
    variants="m",
    shape="indexed(self, indices)",
    result="self",
)
backward_op(
    "_index_backward(Tensor grad_output, int[] input_size, Tensor?[] indices) -> Tensor",
    doc="grad_output added at the indices of a tensor of zeros.",
    grad={"grad_output": "index(grad, indices)"},
)
op(
    "index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False)"
    " -> Tensor(a!)",
    doc="Writes values at the indices, or adds them.",
    grad={
        "self": "grad if accumulate else _index_put_zero(grad, indices)",
        "values": "index(grad, indices)",
    },
    variants="fm",
)
backward_op(
    "_index_put_zero(Tensor self, Tensor?[] indices) -> Tensor",
    doc="self with zeros at the indices.",
    compose="index_put(self, indices, self.new_zeros([]), False)",
)
op(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    doc="A copy of self with values written at the indices, or added.",
    compose="self.clone().index_put_(indices, values, accumulate)",
    like="self",
)
op(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    doc="The entries of the dimension `dim` that the vector `index` names.",
    grad={"self": "grad.new_zeros(self.shape).index_add(dim, index, grad)"},
    out="out",
    shape="resized(self, dim, index[0])",
    result="self",
    tags=("distinct_out",),
)
op(
    "index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1)"
    " -> Tensor(a!)",
    doc="Adds alpha times the entries of source to the entries that index names.",
    grad={"self": "grad", "source": "grad.index_select(dim, index) * alpha.conj()"},
)
op(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    doc="A copy of self with alpha times source added at index.",
    compose="self.contiguous().clone().index_add_(dim, index, source, alpha=alpha)",
    out="out",
    like="self",
    tags=("distinct_out",),
)
op(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    doc="The elements where mask holds, as a vector.",
    grad={"self": "_masked_select_backward(grad, broadcast_sizes(self.shape, mask.shape), mask)"},
    out="out",
    shape="[unknown]",
    result="self",
    tags=("distinct_out",),
)
backward_op(
    "_masked_select_backward(Tensor grad_output, int[] input_size, Tensor mask) -> Tensor",
    doc="grad_output spread over the places where mask holds, zeros elsewhere.",
    grad={"grad_output": "masked_select(grad, mask)"},
)

# ---- gather and scatter ----

op(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    doc="For each place of index the element of self at that index along `dim`.",
    grad={"self": "grad.new_zeros(self.shape).scatter_add(dim, index, grad)"},
    out="out",
    shape="index",
    result="self",
    tags=("distinct_out",),
)


@backward_of("_folding(str reduce) -> str")
def _folding(reduce: Any) -> Any:
    """What scatter_reduce calls a reduction of scatter."""
    ops.check(
        reduce == "add" or reduce == "multiply",
        'scatter: expected reduce "add" or "multiply", got "', reduce, '"',
    )  # fmt: skip
    return "sum" if reduce == "add" else "prod"


for _suffix, _self, _result, _how, _call in (
    ("", "Tensor self", "Tensor", "A copy of self with", "(weft::contiguous_copy(self), ...)"),
    ("_", "Tensor(a!) self", "Tensor(a!)", "Writes", ""),
):
    op(
        f"scatter{_suffix}.src({_self}, int dim, Tensor index, Tensor src) -> {_result}",
        f"scatter{_suffix}.value({_self}, int dim, Tensor index, Scalar value) -> {_result}",
        doc=(
            f"{_how} the elements of src at the places that index names along `dim`.",
            f"{_how} a number at the places that index names along `dim`.",
        ),
        native=f"scatter_{_call}",
        grad={"self": "grad.scatter(dim, index, 0)", "src": "grad.gather(dim, index)"},
        out=True,
        like="self",
    )
    op(
        f"scatter{_suffix}.reduce({_self}, int dim, Tensor index, Tensor src, *, str reduce)"
        f" -> {_result}",
        doc=f'{_how} the elements of src folded in by reduce, "add" or "multiply".',
        compose=f"self.scatter_reduce{_suffix}(dim, index, src, _folding(reduce))",
        out=True,
        like="self",
    )
    op(
        f"scatter{_suffix}.value_reduce({_self}, int dim, Tensor index, Scalar value, *, "
        f"str reduce) -> {_result}",
        doc=f'{_how} a number folded in by reduce, "add" or "multiply".',
        compose=f"self.scatter_reduce{_suffix}(dim, index, "
        "scalar_tensor(value, dtype=self.dtype).expand(index.shape), _folding(reduce))",
        out=True,
        like="self",
    )
    op(
        f"scatter_add{_suffix}({_self}, int dim, Tensor index, Tensor src) -> {_result}",
        doc=f"{_how} the elements of src added at the places that index names along `dim`.",
        native=f"scatter_add_{_call}",
        grad={"self": "grad", "src": "grad.gather(dim, index)"},
        out=True,
        like="self",
    )

# ---- embedding ----

op(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, "
    "bool sparse=False) -> Tensor",
    doc="The rows of weight that indices name.",
    grad={
        "weight": "embedding_dense_backward(grad, indices, weight.size(0), padding_idx, "
        "scale_grad_by_freq)"
    },
    shape="[*indices, weight[1]]",
    result="weight",
)
backward_op(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, "
    "int padding_idx, bool scale_grad_by_freq) -> Tensor",
    doc="The gradient of embedding.",
    grad={
        "grad_output": "_embedding_double_backward(grad, indices, padding_idx, scale_grad_by_freq)"
    },
    shape="[num_weights, grad_output[-1]]",
)
backward_op(
    "_embedding_double_backward(Tensor grad, Tensor indices, int padding_idx, "
    "bool scale_grad_by_freq) -> Tensor",
    doc="The second gradient of embedding.",
    tags=("composite",),
)
op(
    "_bag_sum(Tensor weight, Tensor indices, Tensor offsets, Tensor? per_sample_weights=None, "
    "bool mean=False, bool scale_grad_by_freq=False) -> Tensor",
    doc="For each bag the sum of the rows of weight that indices name from its offset to the next, "
    "each times its entry of per_sample_weights, or their mean.",
    grad={
        "weight": "_bag_sum_backward(_bag_shares(grad, indices, offsets, mean), indices, offsets, "
        "per_sample_weights, weight.size(0), scale_grad_by_freq)",
        "per_sample_weights": "_bag_products(_bag_shares(grad, indices, offsets, mean), indices, "
        "offsets, weight)",
    },
    shape="[offsets[0], weight[1]]",
    result="weight",
)


@backward_of("_bag_sizes(Tensor indices, Tensor offsets) -> Tensor", tags=("nondifferentiable",))
def _bag_sizes(indices: Any, offsets: Any) -> Any:
    """How many entries each bag has."""
    return offsets.diff(1, 0, None, offsets.new_full([1], indices.numel()))


@backward_of("_bags(Tensor indices, Tensor offsets) -> Tensor", tags=("nondifferentiable",))
def _bags(indices: Any, offsets: Any) -> Any:
    """The bag of each entry."""
    return ops.repeat_interleave(ops._bag_sizes(indices, offsets), output_size=indices.numel())


@backward_of("_bag_shares(Tensor grad, Tensor indices, Tensor offsets, bool mean) -> Tensor")
def _bag_shares(grad: Any, indices: Any, offsets: Any, mean: Any) -> Any:
    """The gradient of each row of a bag: of a mean, a part of that of the bag."""
    if mean:
        return grad / ops._bag_sizes(indices, offsets).clamp_min(1).unsqueeze(1)
    return grad


@backward_of(
    "_bag_sum_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor? per_sample_weights, "
    "int count, bool by_freq) -> Tensor"
)
def _bag_sum_backward(
    grad: Any, indices: Any, offsets: Any, per_sample_weights: Any, count: Any, by_freq: Any
) -> Any:
    """The gradient of _bag_sum for weight: a sum of rows of grad, where a bag is the entries that
    name one row."""
    rows, order = indices.sort(stable=True)
    bags = ops._bags(indices, offsets).index_select(0, order)
    starts = ops.searchsorted(rows, ops.arange(count, dtype=rows.dtype))
    if per_sample_weights is not None:
        factors = per_sample_weights.index_select(0, order)
        return ops._bag_sum(grad, bags, starts, factors, by_freq)
    return ops._bag_sum(grad, bags, starts, None, by_freq)


@backward_of("_bag_products(Tensor grad, Tensor indices, Tensor offsets, Tensor weight) -> Tensor")
def _bag_products(grad: Any, indices: Any, offsets: Any, weight: Any) -> Any:
    """The gradient of _bag_sum for per_sample_weights: products of the rows of grad and weight."""
    bags = ops._bags(indices, offsets)
    return (grad.index_select(0, bags) * weight.index_select(0, indices)).sum([1])


op(
    "one_hot(Tensor self, int num_classes=-1) -> Tensor",
    doc="int64 vectors with one 1, at the index that self holds (-1 classes: the greatest + 1).",
    tags=("nondifferentiable",),
    variants="nn",
    shape="[*self, unknown if num_classes == -1 else num_classes]",
    result="int64",
)

# ---- sorting, searching ----

_SELECTED = "value_selecting_reduction_backward(grad, dim, result1, self.shape, True)"
op(
    "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    doc="The entries along `dim` in ascending order, and their indices.",
    grad={"self": _SELECTED},
    out="values",
    shape="self",
    result=("self", "int64"),
    tags=("keeps_layout",),
)
op(
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False)"
    " -> (Tensor values, Tensor indices)",
    doc="sort; with stable, equal entries keep their order.",
    grad={"self": _SELECTED},
    out="values_stable",
    shape="self",
    result=("self", "int64"),
    tags=("keeps_layout",),
)
op(
    "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    doc="The indices that sort the entries along `dim`.",
    compose="sort(self, dim, descending)[1]",
    tags=("nondifferentiable", "keeps_layout"),
    shape="self",
    result="int64",
)
op(
    "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    doc="argsort; with stable, equal entries keep their order.",
    compose="sort(self, stable=stable, dim=dim, descending=descending)[1]",
    tags=("nondifferentiable", "keeps_layout"),
    shape="self",
    result="int64",
)
op(
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True)"
    " -> (Tensor values, Tensor indices)",
    doc="The k greatest (or least) entries along `dim`, and their indices.",
    grad={"self": _SELECTED},
    out="values",
    shape="resized(self, dim, k)",
    result=("self", "int64"),
)
op(
    "nonzero(Tensor self) -> Tensor",
    doc="Indices of the elements that are not 0, one row each.",
    tags=("nondifferentiable",),
    out="out",
    shape="[unknown, rank(self)]",
    result="int64",
)


# ---- running sums, triangles ----


op(
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    doc="Sums of the entries up to and with each, along `dim`.",
    grad={"self": "_cumsum_backward(grad, dim)"},
    out="out",
    shape="self",
    tags=("casts_out",),
)


@backward_of("_cumsum_backward(Tensor grad, int dim) -> Tensor")
def _cumsum_backward(grad: Any, dim: Any) -> Any:
    """The gradient of cumsum: sums from the end."""
    if grad.dim() == 0:
        return grad
    return grad.flip([dim]).cumsum(dim).flip([dim])


for _name, _place in (
    ("tril", "below a diagonal of matrices, zeros above"),
    ("triu", "above a diagonal of matrices, zeros below"),
):
    op(
        f"{_name}(Tensor self, int diagonal=0) -> Tensor",
        doc=f"The elements on and {_place}.",
        grad={"self": f"grad.{_name}(diagonal)"},
        out="out",
        like="self",
    )
