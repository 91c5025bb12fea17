"""Views as copies, and copies with one part written anew."""

from __future__ import annotations

from typing import Any

from weft._ops.schema import parse
from weft._ops.table import body_of, op, ops

# ---- what a view shows, in memory of its own ----


def _copied(schema: str, expression: str) -> None:
    name = parse(schema).name.removesuffix("_copy")
    op(
        schema,
        doc=f"The result of {name}, as a copy.",
        compose=f"({expression}).clone(memory_format=0)",
        out=True,
        variants="fm" if name == "narrow" else "f",
    )


_copied("alias_copy(Tensor self) -> Tensor", "self")
_copied("detach_copy(Tensor self) -> Tensor", "self.detach()")
_copied("t_copy(Tensor self) -> Tensor", "self.t()")
_copied(
    "transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor", "self.transpose(dim0, dim1)"
)
_copied("permute_copy(Tensor self, int[] dims) -> Tensor", "self.permute(dims)")
_copied("squeeze_copy(Tensor self) -> Tensor", "self.squeeze()")
_copied("squeeze_copy.dim(Tensor self, int dim) -> Tensor", "self.squeeze(dim)")
_copied("squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", "self.squeeze(dim)")
_copied("unsqueeze_copy(Tensor self, int dim) -> Tensor", "self.unsqueeze(dim)")
_copied(
    "expand_copy(Tensor self, int[] size, *, bool implicit=False) -> Tensor", "self.expand(size)"
)
_copied("view_copy(Tensor self, int[] size) -> Tensor", "self.reshape(size)")
_copied("view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor", "self.view(dtype)")
_copied("select_copy.int(Tensor self, int dim, int index) -> Tensor", "self.select(dim, index)")
_copied(
    "slice_copy.Tensor(Tensor self, int dim=0, int? start=None, int? end=None, int step=1)"
    " -> Tensor",
    "self.slice(dim, start, end, step)",
)
_copied(
    "narrow_copy(Tensor self, int dim, int start, int length) -> Tensor",
    "self.narrow(dim, start, length)",
)
_copied(
    "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    "self.diagonal(offset, dim1, dim2)",
)
_copied(
    "unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor",
    "self.unfold(dimension, size, step)",
)
_copied(
    "as_strided_copy(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    "self.as_strided(size, stride, storage_offset)",
)

# ---- a copy with one part written anew ----


@body_of("select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor")
def _select_scatter(self: Any, src: Any, dim: Any, index: Any) -> Any:
    """A copy of self with src at `index` of the dimension `dim`."""
    result = self.clone()
    part = result.select(dim, index)
    ops.check(
        part.shape == src.shape,
        "select_scatter: expected src of shape ", part.shape, ", got ", src.shape,
    )  # fmt: skip
    part.copy_(src)
    return result


@body_of(
    "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, "
    "int step=1) -> Tensor",
    out="out",
)
def _slice_scatter(self: Any, src: Any, dim: Any, start: Any, end: Any, step: Any) -> Any:
    """A copy of self with src in a slice of the dimension `dim`."""
    result = self.clone()
    part = result.slice(dim, start, end, step)
    ops.check(
        part.shape == src.shape,
        "slice_scatter: expected src of shape ", part.shape, ", got ", src.shape,
    )  # fmt: skip
    part.copy_(src)
    return result


@body_of(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor"
)
def _diagonal_scatter(self: Any, src: Any, offset: Any, dim1: Any, dim2: Any) -> Any:
    """A copy of self with src on a diagonal."""
    result = self.clone()
    part = result.diagonal(offset, dim1, dim2)
    ops.check(
        part.shape == src.shape,
        "diagonal_scatter: expected src of shape ", part.shape, ", got ", src.shape,
    )  # fmt: skip
    part.copy_(src)
    return result


@body_of("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor")
def _put(self: Any, index: Any, source: Any, accumulate: Any) -> Any:
    """A copy of self with source written (or added) at indices of the flattened tensor."""
    ops.check(
        index.numel() == source.numel(),
        "put: expected as many elements of source as of index, got ",
        source.numel(), " and ", index.numel(),
    )  # fmt: skip
    ops.check(index.dtype == ops.int64, "put: expected an int64 index, got ", index.dtype)
    flat = self.reshape([-1]).index_put([index], source.reshape(index.shape), accumulate)
    return flat.reshape(self.shape)


op(
    "fill.Scalar(Tensor self, Scalar value) -> Tensor",
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    doc=(
        "A copy of self with every element set to a number.",
        "A copy of self with every element set to a 0-d tensor.",
    ),
    compose="self.clone().fill_(value)",
    variants="f",
)
op(
    "argwhere(Tensor self) -> Tensor",
    doc="The indices of the elements other than 0, one a row.",
    compose="self.nonzero()",
)
op(
    "msort(Tensor self) -> Tensor",
    doc="self sorted along dimension 0.",
    compose="self.sort(0)[0]",
    out=True,
)


@body_of("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", out="out")
def _renorm(self: Any, p: Any, dim: Any, maxnorm: Any) -> Any:
    """The parts of self along `dim`, scaled down where their p-norm exceeds maxnorm."""
    ops.check(self.dim() > 1, "renorm: expected at least 2 dims, got shape ", self.shape)
    ops.check(p > 0, "renorm: expected p > 0, got ", p)
    ops.check(maxnorm >= 0, "renorm: expected maxnorm >= 0, got ", maxnorm)
    turned = self.transpose(0, dim)
    rows = turned.reshape([turned.size(0), ops.product(turned.shape[1:])])
    norms = rows.linalg_vector_norm(p, [1], True)
    scale = ops.where(norms > maxnorm, (norms + 1e-7).reciprocal() * maxnorm, 1.0)
    return (rows * scale).reshape(turned.shape).transpose(0, dim)
