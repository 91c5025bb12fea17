"""Reductions: one value for all elements, or for each row along `dim`."""

from __future__ import annotations

from typing import Any

from weft._kernels.lang import abs as absolute
from weft._kernels.lang import exp, is_bool, isinf, log, maximum, sqrt, to_bool, where
from weft._ops.table import COMPLEX, FLOATS, INTEGERS, NUMBERS, backward_op, op, ops

_REAL = ("bool", *INTEGERS, *FLOATS)

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
)
backward_op(
    "_sum_backward(Tensor grad, int[] sizes, int[]? dim) -> Tensor",
    doc="grad spread over the dimensions that were summed.",
    compose="grad.reshape(kept_sizes(sizes, dim)).expand(sizes)",
)
op(
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    doc="The mean of all elements; floating or complex.",
    reduce=_mean,
    dtypes=FLOATS + COMPLEX,
    grad={"self": "(grad / self.numel()).expand(self.shape)"},
    out="dtype_out",
)
op(
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    doc="Means over the dimensions `dim` (None or empty: all).",
    reduce=_mean,
    dtypes=FLOATS + COMPLEX,
    grad={"self": "_sum_backward(grad / reduced_count(self.shape, dim), self.shape, dim)"},
    out="out",
)

# ---- prod ----


def _prod(row: Any, self: Any) -> Any:
    return row.all(self) if is_bool(self) else row.prod(self)


def _prod_backward(grad: Any, self: Any, result: Any) -> Any:
    if bool((self == 0).any()):
        flat = self.reshape([-1])
        return grad * ops._prod_others(flat, 0).reshape(self.shape).conj()
    return grad * result.conj() / self.conj()


def _prod_dim_backward(grad: Any, self: Any, result: Any, dim: Any) -> Any:
    kept = ops.kept_sizes(self.shape, [dim])
    if bool((self == 0).any()):
        return grad.reshape(kept) * ops._prod_others(self, dim).conj()
    return grad.reshape(kept) * result.reshape(kept).conj() / self.conj()


def _prod_others(self: Any, dim: Any) -> Any:
    """No division, so zeros are welcome; halves are multiplied crosswise when a graph is wanted."""
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
    tags=("autocast_float32",),
)
backward_op(
    "_prod_backward(Tensor grad, Tensor self, Tensor result) -> Tensor",
    doc="The gradient of prod over all elements.",
    compose=_prod_backward,
)
backward_op(
    "_prod_dim_backward(Tensor grad, Tensor self, Tensor result, int dim) -> Tensor",
    doc="The gradient of prod over one dimension.",
    compose=_prod_dim_backward,
)
backward_op(
    "_prod_others(Tensor self, int dim) -> Tensor",
    doc="For each element the product of the others along `dim`.",
    compose=_prod_others,
)

# ---- greatest and least ----


def _max(row: Any, self: Any) -> Any:
    return row.max(self)


def _min(row: Any, self: Any) -> Any:
    return row.min(self)


def _extremum_backward(grad: Any, self: Any, result: Any, dim: Any) -> Any:
    """Elements that share the extremum share its gradient."""
    kept = ops.kept_sizes(self.shape, dim)
    hit = self == result.reshape(kept)
    share = grad.reshape(kept) / hit.sum(dim, True).reshape(kept)
    return ops.where(hit, share, 0)


backward_op(
    "_extremum_backward(Tensor grad, Tensor self, Tensor result, int[] dim) -> Tensor",
    doc="The gradient of amax and amin.",
    compose=_extremum_backward,
)
for _name, _body, _word in (("max", _max, "greatest"), ("min", _min, "least")):
    op(
        f"a{_name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        doc=f"The {_word} element over the dimensions `dim` (empty: all).",
        reduce=_body,
        dtypes=_REAL,
        grad={"self": "_extremum_backward(grad, self, result, dim)"},
    )


def _max_with_index(row: Any, self: Any) -> Any:
    return row.max_with_index(self)


def _min_with_index(row: Any, self: Any) -> Any:
    return row.min_with_index(self)


for _name, _body, _word in (
    ("max", _max_with_index, "greatest"),
    ("min", _min_with_index, "least"),
):
    op(
        f"{_name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        doc=f"The {_word} element over the dimension `dim`, and where it first lies.",
        reduce=_body,
        result=("compute", "int64"),
        dtypes=_REAL,
        grad={
            "self": "value_selecting_reduction_backward(grad, dim, result1, self.shape, keepdim)"
        },
    )
for _name, _body, _word in (("max", _max, "greatest"), ("min", _min, "least")):
    op(
        f"{_name}(Tensor self) -> Tensor",
        doc=f"The {_word} of all elements.",
        reduce=_body,
        dtypes=_REAL,
        grad={"self": "_extremum_backward(grad, self, result, [])"},
        out="unary_out",
    )
    op(
        f"{_name}.other(Tensor self, Tensor other) -> Tensor",
        doc=f"The {_word} of both, element by element; NaN wins.",
        compose=f"{_name}imum(self, other)",
        out="out",
    )


def _value_selecting_reduction_backward(
    grad: Any, dim: Any, indices: Any, sizes: Any, keepdim: Any
) -> Any:
    if len(sizes) == 0:
        return grad.reshape(sizes)
    zeros = grad.new_zeros(sizes)
    if keepdim:
        return zeros.scatter(dim, indices, grad)
    return zeros.scatter(dim, indices.unsqueeze(dim), grad.unsqueeze(dim))


backward_op(
    "value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, int[] sizes, "
    "bool keepdim) -> Tensor",
    doc="grad at the selected indices of a tensor of zeros.",
    compose=_value_selecting_reduction_backward,
)


def _argmax(row: Any, self: Any) -> Any:
    return row.argmax(self)


def _argmin(row: Any, self: Any) -> Any:
    return row.argmin(self)


for _name, _body, _word in (("argmax", _argmax, "greatest"), ("argmin", _argmin, "least")):
    op(
        f"{_name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        doc=f"Where the {_word} element lies along `dim` (None: in the flattened tensor).",
        reduce=_body,
        result="int64",
        dtypes=_REAL,
        tags=("nondifferentiable",),
    )

# ---- any, all ----


def _any(row: Any, self: Any) -> Any:
    return row.any(to_bool(self))


def _all(row: Any, self: Any) -> Any:
    return row.all(to_bool(self))


for _name, _body, _word in (("any", _any, "any element holds"), ("all", _all, "all elements hold")):
    op(
        f"{_name}(Tensor self) -> Tensor",
        doc=f"Whether {_word} (is not 0), as bool.",
        reduce=_body,
        result="bool",
        tags=("nondifferentiable",),
        out="all_out",
    )
    op(
        f"{_name}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
        doc=f"Whether {_word} along the dimension `dim`, as bool.",
        reduce=_body,
        result="bool",
        tags=("nondifferentiable",),
        out="out",
    )
    op(
        f"{_name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
        doc=f"Whether {_word} over the dimensions `dim` (None: all), as bool.",
        reduce=_body,
        result="bool",
        tags=("nondifferentiable",),
    )

# ---- variance, standard deviation ----


def _variance(row: Any, self: Any, correction: Any) -> Any:
    mean = row.sum(self) / row.length
    centred = self - mean
    return row.sum(centred * centred) / maximum(row.length - correction, 0)


def _deviation(row: Any, self: Any, correction: Any) -> Any:
    return sqrt(_variance(row, self, correction))


def _var_backward(grad: Any, self: Any, dim: Any, correction: Any) -> Any:
    count = float(ops.reduced_count(self.shape, dim))
    scale = 2.0 / ops.max(count - correction, 0.0)
    kept = ops.kept_sizes(self.shape, dim)
    return (grad.reshape(kept) * scale) * (self - self.mean(dim, True).reshape(kept))


backward_op(
    "_var(Tensor self, int[]? dim, float correction, bool keepdim) -> Tensor",
    doc="The variance: the mean square distance to the mean, for length - correction elements.",
    reduce=_variance,
    dtypes=FLOATS,
    grad={"self": "_var_backward(grad, self, dim, correction)"},
)
backward_op(
    "_std(Tensor self, int[]? dim, float correction, bool keepdim) -> Tensor",
    doc="The square root of the variance.",
    reduce=_deviation,
    dtypes=FLOATS,
    grad={
        "self": "_var_backward((grad / (result * 2)).masked_fill(result == 0, 0), "
        "self, dim, correction)"
    },
)
backward_op(
    "_var_backward(Tensor grad, Tensor self, int[]? dim, float correction) -> Tensor",
    doc="The gradient of the variance.",
    compose=_var_backward,
)


def _any_variance(self: Any, dim: Any, correction: Any, keepdim: Any) -> Any:
    if self.is_complex():
        distance = (self - self.mean(dim, True)).abs()
        count = float(ops.reduced_count(self.shape, dim))
        return distance.square().sum(dim, keepdim) / ops.max(count - correction, 0.0)
    return ops._var(self, dim, correction, keepdim)


backward_op(
    "_variance(Tensor self, int[]? dim, float correction, bool keepdim) -> Tensor",
    doc="The variance; of complex numbers the mean square of distances in the plane.",
    compose=_any_variance,
)
backward_op(
    "_deviation(Tensor self, int[]? dim, float correction, bool keepdim) -> Tensor",
    doc="The standard deviation; of complex numbers that of both parts together.",
    compose="_variance(self, dim, correction, keepdim).sqrt() if self.is_complex() "
    "else _std(self, dim, correction, keepdim)",
)
for _name, _formula, _doc in (
    ("var", "_variance", "The variance"),
    ("std", "_deviation", "The standard deviation"),
):
    op(
        f"{_name}(Tensor self, bool unbiased=True) -> Tensor",
        doc=f"{_doc} of all elements; unbiased divides by one less than their count.",
        compose=f"{_formula}(self, None, 1.0 if unbiased else 0.0, False)",
    )
    op(
        f"{_name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
        doc=f"{_doc} over the dimensions `dim`.",
        compose=f"{_formula}(self, dim, 1.0 if unbiased else 0.0, keepdim)",
        out="out",
    )
    op(
        f"{_name}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
        "bool keepdim=False) -> Tensor",
        doc=f"{_doc} over the dimensions `dim`, dividing by count - correction (None: 1).",
        compose=f"{_formula}(self, dim, 1.0 if correction is None else float(correction), keepdim)",
        out="correction_out",
    )

# ---- norms ----


def _norm2(row: Any, self: Any) -> Any:
    return sqrt(row.sum(self * self))


def _norm_p(row: Any, self: Any, p: Any) -> Any:
    return row.sum(absolute(self) ** p) ** (1 / p)


def _norm2_backward(grad: Any, self: Any, result: Any, dim: Any) -> Any:
    zero = result == 0
    scale = (grad / result.masked_fill(zero, 1)).masked_fill(zero, 0)
    return self * scale.reshape(ops.kept_sizes(self.shape, dim))


def _norm_p_backward(grad: Any, self: Any, result: Any, p: Any, dim: Any) -> Any:
    zero = result == 0
    scale = (grad / result.masked_fill(zero, 1).pow(p - 1.0)).masked_fill(zero, 0)
    size = self.abs().masked_fill(self == 0, 1).pow(p - 1.0)
    return self.sgn() * size * scale.reshape(ops.kept_sizes(self.shape, dim))


backward_op(
    "_norm2(Tensor self, int[]? dim, bool keepdim) -> Tensor",
    doc="The Euclidean norm.",
    reduce=_norm2,
    dtypes=FLOATS,
    grad={"self": "_norm2_backward(grad, self, result, dim)"},
)
backward_op(
    "_norm_p(Tensor self, float p, int[]? dim, bool keepdim) -> Tensor",
    doc="The p-norm for p other than 0, 1, 2 and infinity.",
    reduce=_norm_p,
    dtypes=FLOATS,
    grad={"self": "_norm_p_backward(grad, self, result, p, dim)"},
)
backward_op(
    "_norm2_backward(Tensor grad, Tensor self, Tensor result, int[]? dim) -> Tensor",
    doc="The gradient of the Euclidean norm; 0 at 0.",
    compose=_norm2_backward,
)
backward_op(
    "_norm_p_backward(Tensor grad, Tensor self, Tensor result, float p, int[]? dim) -> Tensor",
    doc="The gradient of the p-norm; 0 at 0.",
    compose=_norm_p_backward,
)


def _vector_norm(self: Any, ord: Any, dim: Any, keepdim: Any, dtype: Any) -> Any:
    ops.check(
        self.is_floating_point() or self.is_complex(),
        "linalg_vector_norm: expected a floating or complex tensor, got ",
        self.dtype,
    )
    x = self if dtype is None else self.to(dtype)
    x = x.abs() if x.is_complex() else x
    p = float(ord)
    if p == 2.0:
        return ops._norm2(x, dim, keepdim)
    if p == ops.inf:
        return x.abs().amax(ops.list_or_empty(dim), keepdim)
    if p == -ops.inf:
        return x.abs().amin(ops.list_or_empty(dim), keepdim)
    if p == 1.0:
        return x.abs().sum(dim, keepdim)
    if p == 0.0:
        return (x != 0).sum(dim, keepdim, dtype=x.dtype)
    return ops._norm_p(x, p, dim, keepdim)


op(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    doc="The norm of order `ord` over the dimensions `dim` (None: all), as of one long vector.",
    compose=_vector_norm,
    variants="",
)
op(
    "norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
    doc="The p-norm of all elements.",
    compose="linalg_vector_norm(self, p, None, False, dtype=None)",
)
op(
    "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
    doc="The p-norm over the dimensions `dim` (p None: 2).",
    compose="linalg_vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=None)",
)
op(
    "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, "
    "ScalarType dtype) -> Tensor",
    doc="The p-norm over the dimensions `dim`, computed in `dtype`.",
    compose="linalg_vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)",
)
op(
    "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
    doc="The p-norm of all elements, computed in `dtype`.",
    compose="linalg_vector_norm(self, 2 if p is None else p, None, False, dtype=dtype)",
)

# ---- logsumexp ----


def _logsumexp(row: Any, self: Any) -> Any:
    greatest = row.max(self.real)
    shift = where(isinf(greatest), 0, greatest)
    return log(row.sum(exp(self - shift))) + shift


def _logsumexp_backward(grad: Any, self: Any, result: Any, dim: Any) -> Any:
    kept = ops.kept_sizes(self.shape, dim)
    return grad.reshape(kept) * (self - result.reshape(kept)).exp().conj()


op(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    doc="log of the sum of exp(self) over the dimensions `dim`, without overflow.",
    reduce=_logsumexp,
    promotion="floating",
    dtypes=FLOATS + COMPLEX,
    grad={"self": "_logsumexp_backward(grad, self, result, dim)"},
)
backward_op(
    "_logsumexp_backward(Tensor grad, Tensor self, Tensor result, int[] dim) -> Tensor",
    doc="The gradient of logsumexp.",
    compose=_logsumexp_backward,
)
op(
    "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
    doc="How many elements are not 0, over the dimensions `dim`.",
    compose="(self != 0).sum(dim)",
    tags=("nondifferentiable",),
)
op(
    "count_nonzero(Tensor self, int? dim=None) -> Tensor",
    doc="How many elements are not 0 (along `dim`, or all).",
    compose="(self != 0).sum(None if dim is None else [dim])",
    tags=("nondifferentiable",),
)
