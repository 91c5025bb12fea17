"""Views: other layouts over the same memory."""

from __future__ import annotations

from typing import Any

from weft._ops.schema import parse
from weft._ops.table import backward_op, op

# Where PyTorch has no function of the name; "": for C++ and formulas alone.
_VARIANTS = {
    "view": "m", "expand": "m", "unfold": "m", "slice.Tensor": "", "alias": "",
    "view_as_real": "f", "view_as_complex": "f",
}  # fmt: skip


def _view(schema: str, name: str, gradient: str, doc: str, **rest: Any) -> None:
    variants = _VARIANTS.get(parse(schema).key, "fm")
    op(schema, doc=doc, view=name, grad={"self": gradient}, variants=variants, **rest)


_view(
    "view(Tensor(a) self, int[] size) -> Tensor(a)", "view", "grad.reshape(self.shape)",
    "The same elements in another shape, never copied; one size may be -1.",
    shape="viewed(self, size)",
)  # fmt: skip
_view(
    "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", "transpose",
    "grad.transpose(dim0, dim1)", "Two dimensions exchanged.", tags=("checks_dims",),
    shape="swapped(self, dim0, dim1)",
)  # fmt: skip
_view(
    "t(Tensor(a) self) -> Tensor(a)", "t", "grad.t()",
    "The transpose of a matrix; vectors and numbers stay as they are.", tags=("checks_matrix",),
    shape="self[::-1]",
)  # fmt: skip
_view(
    "permute(Tensor(a) self, int[] dims) -> Tensor(a)", "permute",
    "grad.permute(inverse_permutation(dims))", "The dimensions in the order `dims`.",
    tags=("checks_order",), shape="permuted(self, dims)",
)  # fmt: skip
_view(
    "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", "movedim",
    "grad.movedim(destination, source)", "The dimensions `source` moved to `destination`.",
)  # fmt: skip
_view(
    "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)", "movedim",
    "grad.movedim(destination, source)", "The dimension `source` moved to `destination`.",
)  # fmt: skip
_view(
    "squeeze(Tensor(a) self) -> Tensor(a)", "squeeze", "grad.reshape(self.shape)",
    "Without the dimensions of size 1.", tags=("checks_dims",), shape="squeezed(self)",
)  # fmt: skip
_view(
    "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", "squeeze", "grad.reshape(self.shape)",
    "Without the dimension `dim`, if its size is 1.", tags=("checks_dims",),
    shape="squeezed(self, dim)",
)  # fmt: skip
_view(
    "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", "squeeze", "grad.reshape(self.shape)",
    "Without those of the dimensions `dim` that have size 1.", tags=("checks_dims",),
    shape="squeezed(self, dim)",
)  # fmt: skip
_view(
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", "unsqueeze", "grad.squeeze(dim)",
    "With a new dimension of size 1 at `dim`.", tags=("checks_dims", "adds_dim"),
    shape="inserted(self, dim)",
)  # fmt: skip
_view(
    "select.int(Tensor(a) self, int dim, int index) -> Tensor(a)", "select",
    "_select_backward(grad, self.shape, dim, index)", "The part at `index` of the dimension `dim`.",
    tags=("part",), shape="without(self, dim)",
)  # fmt: skip
_view(
    "slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1)"
    " -> Tensor(a)",
    "slice", "_slice_backward(grad, self.shape, dim, start, end, step)",
    "Python's slice of the dimension `dim`.", tags=("part",),
    shape="sliced(self, dim, start, end, step)",
)  # fmt: skip
_view(
    "narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)", "narrow",
    "_slice_backward(grad, self.shape, dim, start if start >= 0 else start + self.size(dim), "
    "(start if start >= 0 else start + self.size(dim)) + length, 1)",
    "`length` entries of the dimension `dim`, from `start` on.", tags=("part",),
    shape="resized(self, dim, length)",
)  # fmt: skip
_view(
    "expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)", "expand", "grad",
    "Dimensions of size 1 repeated without copying; -1 keeps a size.", tags=("spreads",),
    shape="expanded(self, size)",
)  # fmt: skip
_view(
    "as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)",
    "as_strided",
    "_as_strided_backward(grad, self.shape, self.stride(), self.storage_offset(), size, stride, "
    "storage_offset)",
    "Any layout over the memory of self.",
)  # fmt: skip
_view(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", "diagonal",
    "_diagonal_backward(grad, self.shape, offset, dim1, dim2)",
    "The diagonal of two dimensions, as the last dimension.", tags=("part",),
)  # fmt: skip
_view(
    "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", "unfold",
    "_unfold_backward(grad, self.shape, dimension, size, step)",
    "Windows of `size` entries along a dimension, each `step` further; the last dimension holds "
    "a window.",
)  # fmt: skip
_view(
    "unflatten.int(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)", "unflatten",
    "grad.reshape(self.shape)", "The dimension `dim` cut into several of the given sizes.",
)  # fmt: skip
_view(
    "view_as_real(Tensor(a) self) -> Tensor(a)", "view_as_real",
    "grad.contiguous().view_as_complex()",
    "Real and imaginary parts in a new last dimension of size 2.", tags=("view_dtype",),
)  # fmt: skip
_view(
    "view_as_complex(Tensor(a) self) -> Tensor(a)", "view_as_complex", "grad.view_as_real()",
    "Complex numbers from a last dimension of size 2, whose parts lie side by side.",
    tags=("view_dtype",),
)  # fmt: skip
backward_op(
    "_view_dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    doc="The bytes as another dtype; no gradient.",
    view="view_dtype",
    tags=("nondifferentiable", "view_dtype"),
)
op(
    "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    doc="The bytes as another dtype; gradients flow between complex numbers and their parts.",
    native="view_dtype",
    tags=("composite",),
    variants="",
)
op(
    "imag(Tensor(a) self) -> Tensor(a)",
    doc="The imaginary part of a complex tensor, a view.",
    tags=("composite",),
)
_view(
    "alias(Tensor(a) self) -> Tensor(a)",
    "alias",
    "grad",
    "A view that is all of self.",
    tags=("total",),
    shape="self",
)
op(
    "detach(Tensor(a) self) -> Tensor(a)",
    doc="The same elements without history: no gradient flows back.",
    view="detach",
    tags=("nondifferentiable", "total"),
    shape="self",
)

# ---- made of other views ----

op(
    "reshape(Tensor(a) self, int[] shape) -> Tensor(a)",
    doc="The same elements in another shape: a view where possible, else a copy.",
    tags=("composite", "reshapes"),
    shape="viewed(self, shape)",
    result="self",
)
op(
    "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
    doc="The dimensions from start_dim to end_dim as one.",
    tags=("composite",),
    shape="flattened(self, start_dim, end_dim)",
    result="self",
)
for _name, _what in (("expand", "Expanded to"), ("view", "Viewed in"), ("reshape", "Reshaped to")):
    op(
        f"{_name}_as(Tensor(a) self, Tensor other) -> Tensor(a)",
        doc=f"{_what} the shape of other.",
        compose=f"self.{_name}(other.shape)",
        variants="m",
        shape="other",
        result="self",
    )
op(
    "broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)",
    doc="Expanded to `size`.",
    compose="self.expand(size)",
    shape="expanded(self, size)",
    result="self",
)
op(
    "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
    doc="Two dimensions exchanged.",
    compose="self.transpose(axis0, axis1)",
    tags=("checks_dims",),
    shape="swapped(self, axis0, axis1)",
    result="self",
)
for _schema, _count, _doc in (
    ("split.Tensor(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor(a)[]",
     "pieces(extent(self, dim), split_size)",
     "Parts of `split_size` entries along `dim`; the last may be shorter."),
    ("split.sizes(Tensor(a -> *) self, int[] split_size, int dim=0) -> Tensor(a)[]",
     "rank(split_size)",
     "Parts of the given sizes along `dim`."),
    ("split_with_sizes(Tensor(a -> *) self, int[] split_sizes, int dim=0) -> Tensor(a)[]",
     "rank(split_sizes)",
     "Parts of the given sizes along `dim`."),
    ("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
     "pieces(extent(self, dim), pieces(extent(self, dim), chunks))",
     "At most `chunks` parts of equal size along `dim`; the last may be shorter."),
    ("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", "extent(self, dim)",
     "The parts at each index of `dim`, without that dimension."),
    ("tensor_split.sections(Tensor(a -> *) self, int sections, int dim=0) -> Tensor(a)[]",
     "sections",
     "Exactly `sections` parts along `dim`, as equal as possible."),
    ("tensor_split.indices(Tensor(a -> *) self, int[] indices, int dim=0) -> Tensor(a)[]", "",
     "Parts along `dim`, cut at the given indices."),
    ("tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor "
     "tensor_indices_or_sections, int dim=0) -> Tensor(a)[]", "",
     "Parts along `dim`: cut at the indices of an int64 vector, or as many as a number says."),
):  # fmt: skip
    op(
        _schema, doc=_doc, tags=("composite",),
        shape=f"[{_count}]" if _count else None,
    )  # fmt: skip

# ---- gradients ----


def _back(schema: str, gradient: str, doc: str) -> None:
    first = parse(schema).args[0].name
    shape = "input_size" if "input_size" in schema else "size"
    backward_op(schema, doc=doc, grad={first: gradient}, shape=shape, result=first)


_back(
    "_select_backward(Tensor grad_output, int[] input_size, int dim, int index) -> Tensor",
    "grad.select(dim, index)", "The gradient of select.",
)  # fmt: skip
_back(
    "_slice_backward(Tensor grad_output, int[] input_size, int dim, int? start, int? end, int step)"
    " -> Tensor",
    "grad.slice(dim, start, end, step)", "The gradient of slice.",
)  # fmt: skip
_back(
    "_diagonal_backward(Tensor grad_output, int[] input_size, int offset, int dim1, int dim2)"
    " -> Tensor",
    "grad.diagonal(offset, dim1, dim2)", "The gradient of diagonal.",
)  # fmt: skip
_back(
    "_unfold_backward(Tensor grad_output, int[] input_size, int dimension, int size, int step)"
    " -> Tensor",
    "grad.unfold(dimension, size, step)", "The gradient of unfold.",
)  # fmt: skip
_back(
    "_as_strided_backward(Tensor grad_output, int[] input_size, int[] input_stride, "
    "int input_offset, int[] size, int[] stride, int? storage_offset) -> Tensor",
    "_as_strided_gather(grad, input_stride, input_offset, size, stride, storage_offset)",
    "The gradient of as_strided.",
)  # fmt: skip
_back(
    "_as_strided_gather(Tensor self, int[] input_stride, int input_offset, int[] size, "
    "int[] stride, int? storage_offset) -> Tensor",
    "_as_strided_backward(grad, self.shape, input_stride, input_offset, size, stride, "
    "storage_offset)",
    "The gradient of the gradient of as_strided.",
)  # fmt: skip
