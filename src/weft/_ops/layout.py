"""Entries laid out anew: repeated, turned, on diagonals, written at indices."""

from __future__ import annotations

from typing import Any

from weft._ops.schema import parse
from weft._ops.table import backward_op, body_of, op, ops

# ---- repeated and turned ----


def _composite(schema: str, doc: str, out: bool | None = None) -> None:
    op(schema, doc=doc, tags=("composite",), out=out)


_composite(
    "repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, "
    "int? output_size=None) -> Tensor",
    "Each entry `repeats` times in a row, along `dim` (None: of the flattened tensor).",
)
_composite(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, "
    "int? output_size=None) -> Tensor",
    "Each entry as often as `repeats` says, along `dim` (None: of the flattened tensor).",
)
op(
    "repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor",
    doc="0 repeats[0] times, 1 repeats[1] times, and so on.",
    tags=("nondifferentiable",),
    shape="[unknown if output_size is absent else output_size]",
    result="repeats",
)
_composite("tile(Tensor self, int[] dims) -> Tensor", "self laid out dims[i] times along each dim.")


@body_of("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor")
def _rot90(self: Any, k: Any, dims: Any) -> Any:
    """self turned k times by 90 degrees, from dims[0] towards dims[1]."""
    ops.check(
        len(dims) == 2 and self.dim() >= 2,
        "rot90: expected 2 of at least 2 dims, got ", dims, " for shape ", self.shape,
    )  # fmt: skip
    ops.check(
        ops.wrap_dim(dims[0], self.dim()) != ops.wrap_dim(dims[1], self.dim()),
        "rot90: expected two different dims, got ", dims,
    )  # fmt: skip
    turns = k % 4
    if turns == 1:
        return self.flip([dims[1]]).transpose(dims[0], dims[1])
    if turns == 2:
        return self.flip(dims)
    if turns == 3:
        return self.flip([dims[0]]).transpose(dims[0], dims[1])
    return self.clone()


@body_of("fliplr(Tensor self) -> Tensor")
def _fliplr(self: Any) -> Any:
    """self with its columns reversed."""
    ops.check(self.dim() >= 2, "fliplr: expected at least 2 dims, got shape ", self.shape)
    return self.flip([1])


@body_of("flipud(Tensor self) -> Tensor")
def _flipud(self: Any) -> Any:
    """self with its rows reversed."""
    ops.check(self.dim() >= 1, "flipud: expected at least 1 dim, got shape ", self.shape)
    return self.flip([0])


op(
    "ravel(Tensor(a) self) -> Tensor(a)",
    doc="self as one vector: a view where it is contiguous, else a copy.",
    compose="self.contiguous().view([-1])",
)
op(
    "moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
    "moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
    doc="movedim, under the name that NumPy has.",
    compose="self.movedim(source, destination)",
)


@body_of("adjoint(Tensor(a) self) -> Tensor(a)")
def _adjoint(self: Any) -> Any:
    """The conjugate of the matrices transposed."""
    if self.dim() == 0:
        return self.conj()
    ops.check(self.dim() > 1, "adjoint: expected at least 2 dims, got shape ", self.shape)
    return self.transpose(-2, -1).conj()


# ---- diagonals ----


@body_of("trace(Tensor self) -> Tensor", tags=("autocast_float32",))
def _trace(self: Any) -> Any:
    """The sum of the diagonal."""
    ops.check(self.dim() == 2, "trace: expected a matrix, got shape ", self.shape)
    ops.check_implemented(self.dtype != ops.bool, "trace: expected a numeric dtype, got bool")
    return self.diagonal().sum()


@body_of("diag(Tensor self, int diagonal=0) -> Tensor", out="out")
def _diag(self: Any, diagonal: Any) -> Any:
    """The diagonal of a matrix, or a matrix with this vector on its diagonal."""
    if self.dim() == 1:
        return self.diag_embed(diagonal)
    ops.check(self.dim() == 2, "diag: expected 1 or 2 dims, got shape ", self.shape)
    return self.diagonal(diagonal).clone()


op(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    doc="Matrices of zeros with the vectors of self on a diagonal.",
    grad={"self": "grad.diagonal(offset, dim1, dim2)"},
    shape="diagonals(self, offset, dim1, dim2)",
    result="self",
)
op(
    "diagflat(Tensor self, int offset=0) -> Tensor",
    doc="A matrix with all elements of self on a diagonal.",
    compose="self.reshape([-1]).diag_embed(offset)",
)
_composite("block_diag(Tensor[] tensors) -> Tensor", "The matrices along one diagonal, zeros else.")
op(
    "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
    doc="Writes a number on the diagonal (wrap: and on, below the last column).",
    tags=("composite",),
)
for _name, _half in (("tril", "below"), ("triu", "above")):
    op(
        f"{_name}_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        doc=f"Rows and columns of the places on and {_half} a diagonal.",
        shape=f"[2, triangle(row, col, offset, {_name == 'triu'})]",
        result="int64",
        tags=("factory", "nondifferentiable"),
    )

# ---- written at indices ----

for _suffix, _self, _result, _how, _call in (
    ("", "Tensor self", "Tensor", "A copy of self with", "(weft::contiguous_copy(self), ...)"),
    ("_", "Tensor(a!) self", "Tensor(a!)", "Writes", ""),
):
    op(
        f"masked_scatter{_suffix}({_self}, Tensor mask, Tensor source) -> {_result}",
        doc=f"{_how} the elements of source, in order, where mask holds.",
        grad={
            "self": "grad.masked_fill(mask, 0)",
            "source": "_masked_scatter_backward(grad, mask, source.shape)",
        },
        like="self",
    )
    op(
        f"index_copy{_suffix}({_self}, int dim, Tensor index, Tensor source) -> {_result}",
        doc=f"{_how} the entries of source at the entries that index names along `dim`.",
        native=f"index_copy_{_call}",
        grad={"self": "grad.index_fill(dim, index, 0)", "source": "grad.index_select(dim, index)"},
        out=True,
        like="self",
    )
    op(
        f"index_fill{_suffix}.int_Scalar({_self}, int dim, Tensor index, Scalar value)"
        f" -> {_result}",
        f"index_fill{_suffix}.int_Tensor({_self}, int dim, Tensor index, Tensor value)"
        f" -> {_result}",
        doc=(
            f"{_how} a number at the entries that index names along `dim`.",
            f"{_how} a 0-d tensor at the entries that index names along `dim`.",
        ),
        native=f"index_fill_{_call}",
        grad={
            "self": "grad.index_fill(dim, index, 0)",
            # Each place once, however often it is named.
            "value": "where(ones_like(grad, dtype=bool).index_fill(dim, index, 0), 0, grad).sum()",
        },
        like="self",
    )
    op(
        f"scatter_reduce{_suffix}.two({_self}, int dim, Tensor index, Tensor src, str reduce, *, "
        f"bool include_self=True) -> {_result}",
        doc=f"{_how} the elements of src folded in at the places that index names along `dim`: "
        "sum, prod, mean, amax or amin.",
        grad={
            "self, src": "_scatter_reduce_backward(grad, self, dim, index, src, reduce, "
            "include_self, result)"
        },
        out=True,
        like="self",
    )
backward_op(
    "_masked_scatter_backward(Tensor grad_output, Tensor mask, int[] size) -> Tensor",
    doc="The gradient of masked_scatter for its source.",
    grad={"grad_output": "grad.new_zeros(grad_output.shape).masked_scatter(mask, grad)"},
    shape="size",
)
backward_op(
    "_scatter_reduce_backward(Tensor grad, Tensor self, int dim, Tensor index, Tensor src, "
    "str reduce, bool include_self, Tensor result) -> (Tensor, Tensor)",
    doc="The gradients of scatter_reduce for self and src.",
    tags=("composite",),
)


@body_of("take(Tensor self, Tensor index) -> Tensor", out="out", tags=("distinct_out",))
def _take(self: Any, index: Any) -> Any:
    """The elements at indices of the flattened tensor."""
    ops.check(index.dtype == ops.int64, "take: expected an int64 index, got ", index.dtype)
    return ops.index(self.reshape([-1]), [index])


_composite(
    "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
    "gather with self and indices broadcast (dim None: of the flattened tensor).",
    out=True,
)

# ---- views in place ----


def _inplace_view(schema: str, gradient: str, doc: str) -> None:
    body = f"set_layout(self, views::{parse(schema).name[:-1]}(self.layout(), ...))"
    op(schema, doc=doc, native=body, grad={"self": gradient}, tags=("relayout",))


_SELF = "Tensor(a!) self"
_inplace_view(f"t_({_SELF}) -> Tensor(a!)", "grad.t()", "In-place t.")
_inplace_view(
    f"transpose_({_SELF}, int dim0, int dim1) -> Tensor(a!)",
    "grad.transpose(dim0, dim1)",
    "In-place transpose.",
)
_inplace_view(f"squeeze_({_SELF}) -> Tensor(a!)", "grad.reshape(self.shape)", "In-place squeeze.")
_inplace_view(
    f"squeeze_.dim({_SELF}, int dim) -> Tensor(a!)", "grad.reshape(self.shape)", "In-place squeeze."
)
_inplace_view(
    f"squeeze_.dims({_SELF}, int[] dim) -> Tensor(a!)",
    "grad.reshape(self.shape)",
    "In-place squeeze.",
)
_inplace_view(
    f"unsqueeze_({_SELF}, int dim) -> Tensor(a!)", "grad.squeeze(dim)", "In-place unsqueeze."
)
