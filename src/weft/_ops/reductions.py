"""Reductions: one value for all elements, or for each row along `dim`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft._kernels.lang import cast, is_bool, is_byte, to_bool
from weft._ops.table import COMPLEX, FLOATS, INTEGERS, NUMBERS, backward_of, backward_op, op, ops

_ORDERED = (*INTEGERS, *FLOATS)
_REAL = ("bool", *_ORDERED)
_EXTREMA = (("max", "greatest"), ("min", "least"))

# ---- sum, mean ----


def _sum(row: Any, self: Any) -> Any:
    return row.any(self) if is_bool(self) else row.sum(self)


def _mean(row: Any, self: Any) -> Any:
    return row.sum(self) / row.length


op(
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    doc="The sum of all elements; integers and bools add up as int64, dtype=bool is an or.",
    reduce=_sum,
    promotion="sum",
    dtypes=("bool", *NUMBERS),
    grad={"self": "grad.expand(self.shape)"},
    tags=("fusible",),
)
op(
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None)"
    " -> Tensor",
    doc="Sums over the dimensions `dim` (None or empty: all).",
    reduce=_sum,
    promotion="sum",
    dtypes=("bool", *NUMBERS),
    grad={"self": "_sum_backward(grad, self.shape, dim)"},
    out="IntList_out",
    tags=("fusible",),
)
backward_op(
    "_sum_backward(Tensor grad, int[] sizes, int[]? dim) -> Tensor",
    doc="grad spread over the dimensions that were summed.",
    compose="grad.reshape(kept_sizes(sizes, dim)).expand(sizes)",
    tags=("spreads",),
)
op(
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    doc="The mean of all elements; floating or complex.",
    reduce=_mean,
    dtypes=FLOATS + COMPLEX,
    grad={"self": "(grad / self.numel()).expand(self.shape)"},
    out="dtype_out",
    tags=("fusible",),
)
op(
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    doc="Means over the dimensions `dim` (None or empty: all).",
    reduce=_mean,
    dtypes=FLOATS + COMPLEX,
    grad={"self": "_sum_backward(grad / reduced_count(self.shape, dim), self.shape, dim)"},
    out="out",
    tags=("fusible",),
)

# ---- prod ----


def _prod(row: Any, self: Any) -> Any:
    return row.all(self) if is_bool(self) else row.prod(self)


op(
    "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    doc="The product of all elements; bools and integers multiply as int64, dtype=bool is an and.",
    reduce=_prod,
    promotion="sum",
    dtypes=("bool", *NUMBERS),
    grad={"self": "_prod_backward(grad, self, result)"},
    tags=("autocast_float32",),
)
op(
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    doc="Products over the dimension `dim`.",
    reduce=_prod,
    promotion="sum",
    dtypes=("bool", *NUMBERS),
    grad={"self": "_prod_dim_backward(grad, self, result, dim)"},
    out="int_out",
    tags=("autocast_float32", "fusible_rows"),
)


@backward_of("_prod_backward(Tensor grad, Tensor self, Tensor result) -> Tensor")
def _prod_backward(grad: Any, self: Any, result: Any) -> Any:
    """The gradient of prod over all elements."""
    if bool((self == 0).any()):
        flat = self.reshape([-1])
        return grad * ops._prod_others(flat, 0).reshape(self.shape).conj()
    return grad * result.conj() / self.conj()


@backward_of("_prod_dim_backward(Tensor grad, Tensor self, Tensor result, int dim) -> Tensor")
def _prod_dim_backward(grad: Any, self: Any, result: Any, dim: Any) -> Any:
    """The gradient of prod over one dimension."""
    kept = ops.kept_sizes(self.shape, [dim])
    if bool((self == 0).any()):
        return grad.reshape(kept) * ops._prod_others(self, dim).conj()
    return grad.reshape(kept) * result.reshape(kept).conj() / self.conj()


@backward_of("_prod_others(Tensor self, int dim) -> Tensor")
def _prod_others(self: Any, dim: Any) -> Any:
    """For each element the product of the others along `dim`."""
    # No division, so zeros are welcome; halves are multiplied crosswise when a graph is wanted.
    if self.numel() == 0 or self.dim() == 0:
        return ops.ones_like(self)
    n = self.size(dim)
    if n == 1:
        return ops.ones_like(self)
    if not ops.grad_enabled():
        zero = self == 0
        count = zero.sum([dim], True)
        others = self.masked_fill(zero, 1)
        product = others.prod(dim, True)
        return ops.where(
            zero, ops.where(count == 1, product, 0), ops.where(count == 0, product / others, 0)
        )
    left = self.narrow(dim, 0, n // 2)
    right = self.narrow(dim, n // 2, n - n // 2)
    return ops.cat(
        [
            ops._prod_others(left, dim) * right.prod(dim, True),
            ops._prod_others(right, dim) * left.prod(dim, True),
        ],
        dim,
    )


# ---- greatest and least ----


def _fold(name: str) -> Callable[[Any, Any], Any]:
    """The body that is one fold of a row."""
    return lambda row, self: getattr(row, name)(self)


@backward_of(
    "_hits(Tensor self, Tensor extremum, bool nan_hits) -> Tensor",
    "pointwise",
    dtypes=FLOATS,
    tags=("nondifferentiable",),
)
def _hits(self: Any, extremum: Any, nan_hits: Any) -> Any:
    """1 where both are the same, with nan_hits also where both are NaN; else 0."""
    both_nan = (self != self) & (extremum != extremum)
    return cast((self == extremum) | (nan_hits & both_nan), self.dtype)


@backward_of(
    "_extremum_backward(Tensor grad, Tensor self, Tensor result, int[] dim, bool nan_hits)"
    " -> Tensor"
)
def _extremum_backward(grad: Any, self: Any, result: Any, dim: Any, nan_hits: Any) -> Any:
    """The gradient of an extremum or a median; beside NaNs it is NaN, or with nan_hits theirs."""
    # Elements that share the extremum share its gradient.
    kept = ops.kept_sizes(self.shape, dim)
    hit = ops._hits(self, result.reshape(kept), nan_hits)
    return hit * (grad.reshape(kept) / hit.sum(dim, True).reshape(kept))


for _name, _word in _EXTREMA:
    op(
        f"a{_name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        doc=f"The {_word} element over the dimensions `dim` (empty: all).",
        reduce=_fold(_name),
        dtypes=_REAL,
        grad={"self": "_extremum_backward(grad, self, result, dim, False)"},
        tags=("fusible", "exact_out"),
    )


for _name, _word in _EXTREMA:
    op(
        f"{_name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        doc=f"The {_word} element over the dimension `dim`, and its first index.",
        reduce=_fold(f"{_name}_with_index"),
        result=("compute", "int64"),
        dtypes=_REAL,
        grad={
            "self": "value_selecting_reduction_backward(grad, dim, result1, self.shape, keepdim)"
        },
        out=f"dim_{_name}",
        tags=("exact_out", "distinct_out"),
    )
for _name, _word in _EXTREMA:
    op(
        f"{_name}(Tensor self) -> Tensor",
        doc=f"The {_word} of all elements.",
        reduce=_fold(_name),
        dtypes=_REAL,
        grad={"self": "_extremum_backward(grad, self, result, [], True)"},
        out="unary_out",
        tags=("fusible",),
    )
    op(
        f"{_name}.other(Tensor self, Tensor other) -> Tensor",
        doc=f"The {_word} of both, element by element; NaN wins.",
        compose=f"{_name}imum(self, other)",
        out="out",
        tags=("casts_out",),
        shape="broadcast(self, other)",
    )


@backward_of(
    "value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, int[] sizes, "
    "bool keepdim) -> Tensor"
)
def _value_selecting_reduction_backward(
    grad: Any, dim: Any, indices: Any, sizes: Any, keepdim: Any
) -> Any:
    """grad at the selected indices of a tensor of zeros."""
    if len(sizes) == 0:
        return grad.reshape(sizes)
    zeros = grad.new_zeros(sizes)
    if keepdim:
        return zeros.scatter(dim, indices, grad)
    return zeros.scatter(dim, indices.unsqueeze(dim), grad.unsqueeze(dim))


for _name, _word in _EXTREMA:
    op(
        f"arg{_name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        doc=f"The index of the {_word} element along `dim` (None: in the flattened tensor).",
        reduce=_fold(f"arg{_name}"),
        result="int64",
        dtypes=_ORDERED,
        tags=("nondifferentiable", "exact_out"),
    )

# ---- any, all ----


def _any(row: Any, self: Any) -> Any:
    holds = to_bool(self)
    return row.max(cast(holds, "uint8")) if is_byte(self) else row.any(holds)


def _all(row: Any, self: Any) -> Any:
    holds = to_bool(self)
    return row.prod(cast(holds, "uint8")) if is_byte(self) else row.all(holds)


for _name, _body, _word in (("any", _any, "any element holds"), ("all", _all, "all elements hold")):
    op(
        f"{_name}(Tensor self) -> Tensor",
        doc=f"Whether {_word} (is not 0), as bool; of uint8 as uint8.",
        reduce=_body,
        result="truth",
        tags=("nondifferentiable", "exact_out"),
        out="all_out",
    )
    op(
        f"{_name}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
        doc=f"Whether {_word} along the dimension `dim`, as bool; of uint8 as uint8.",
        reduce=_body,
        result="truth",
        tags=("nondifferentiable", "exact_out"),
        out="out",
    )
    op(
        f"{_name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
        doc=f"Whether {_word} over the dimensions `dim` (None: all), as bool; of uint8 as uint8.",
        reduce=_body,
        result="truth",
        tags=("nondifferentiable", "exact_out", "each_of_none"),
    )
