"""Reductions that are more than one fold of a row: variances, norms, logsumexp."""

from __future__ import annotations

from typing import Any

from weft._kernels.lang import abs as absolute
from weft._kernels.lang import exp, isinf, log, maximum, sqrt, where
from weft._ops.table import COMPLEX, FLOATS, backward_of, backward_op, body_of, op, ops

# ---- variance, standard deviation ----


def _variance(row: Any, self: Any, correction: Any) -> Any:
    mean = row.sum(self) / row.length
    centred = self - mean
    # Of no elements the variance is NaN, whatever the correction: 0 by 0.
    count = where(row.length > 0, row.length - correction, 0)
    return row.sum(centred * centred) / maximum(count, 0)


backward_op(
    "_var(Tensor self, int[]? dim, float correction, bool keepdim) -> Tensor",
    doc="The variance: the mean square distance to the mean, for length - correction elements.",
    reduce=_variance,
    dtypes=FLOATS,
    grad={"self": "_var_backward(grad, self, dim, correction)"},
    tags=("fusible_rows",),
)


@backward_of(
    "_std(Tensor self, int[]? dim, float correction, bool keepdim) -> Tensor",
    "reduce",
    dtypes=FLOATS,
    grad={
        "self": "_var_backward((grad / (result * 2)).masked_fill(result == 0, 0), "
        "self, dim, correction)"
    },
    tags=("fusible_rows",),
)
def _deviation(row: Any, self: Any, correction: Any) -> Any:
    """The square root of the variance."""
    return sqrt(_variance(row, self, correction))


@backward_of("_var_backward(Tensor grad, Tensor self, int[]? dim, float correction) -> Tensor")
def _var_backward(grad: Any, self: Any, dim: Any, correction: Any) -> Any:
    """The gradient of the variance."""
    kept = ops.kept_sizes(self.shape, dim)
    scaled = ops._var_scale(grad.reshape(kept), ops.reduced_count(self.shape, dim), correction)
    return scaled * (self - self.mean(dim, True).reshape(kept))


# On values of rows: a fusion group knows their count when it runs.
backward_op(
    "_var_scale(Tensor self, Scalar count, Scalar correction) -> Tensor",
    doc="self times the derivative of the variance for the square of a distance to the mean.",
    pointwise=lambda self, count, correction: self * (2 / maximum(count - correction, 0)),
    dtypes=FLOATS,
    grad={"self": "_var_scale(grad, count, correction)"},
)


@backward_of("_variance(Tensor self, int[]? dim, float correction, bool keepdim) -> Tensor")
def _any_variance(self: Any, dim: Any, correction: Any, keepdim: Any) -> Any:
    """The variance; of complex numbers the mean square of distances in the plane."""
    if self.is_complex():
        distance = (self - self.mean(dim, True)).abs()
        count = float(ops.reduced_count(self.shape, dim))
        divisor = ops.max(count - correction, 0.0) if count > 0.0 else 0.0
        return distance.square().sum(dim, keepdim) / divisor
    return ops._var(self, dim, correction, keepdim)


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
        tags=("fusible", "casts_out"),
        shape="[]",
    )
    op(
        f"{_name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
        doc=f"{_doc} over the dimensions `dim`.",
        compose=f"{_formula}(self, dim, 1.0 if unbiased else 0.0, keepdim)",
        out="out",
        tags=("fusible", "casts_out"),
        shape="reduced(self, dim, keepdim)",
    )
    op(
        f"{_name}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
        "bool keepdim=False) -> Tensor",
        doc=f"{_doc} over the dimensions `dim`, dividing by count - correction (None: 1).",
        compose=f"{_formula}(self, dim, 1.0 if correction is None else float(correction), keepdim)",
        out="correction_out",
        tags=("fusible", "casts_out"),
        shape="reduced(self, dim, keepdim)",
    )

# ---- norms ----


@backward_of(
    "_norm2(Tensor self, int[]? dim, bool keepdim) -> Tensor",
    "reduce",
    dtypes=FLOATS,
    grad={"self": "_norm2_backward(grad, self, result, dim)"},
    tags=("fusible_rows",),
)
def _norm2(row: Any, self: Any) -> Any:
    """The Euclidean norm."""
    return sqrt(row.sum(self * self))


@backward_of(
    "_norm_p(Tensor self, float p, int[]? dim, bool keepdim) -> Tensor",
    "reduce",
    dtypes=FLOATS,
    grad={"self": "_norm_p_backward(grad, self, result, p, dim)"},
    tags=("fusible_rows",),
)
def _norm_p(row: Any, self: Any, p: Any) -> Any:
    """The p-norm for p other than 0, 1, 2 and infinity."""
    return row.sum(absolute(self) ** p) ** (1 / p)


@backward_of("_norm2_backward(Tensor grad, Tensor self, Tensor result, int[]? dim) -> Tensor")
def _norm2_backward(grad: Any, self: Any, result: Any, dim: Any) -> Any:
    """The gradient of the Euclidean norm; 0 at 0."""
    zero = result == 0
    scale = (grad / result.masked_fill(zero, 1)).masked_fill(zero, 0)
    return self * scale.reshape(ops.kept_sizes(self.shape, dim))


@backward_of(
    "_norm_p_backward(Tensor grad, Tensor self, Tensor result, float p, int[]? dim) -> Tensor"
)
def _norm_p_backward(grad: Any, self: Any, result: Any, p: Any, dim: Any) -> Any:
    """The gradient of the p-norm; 0 at 0."""
    zero = result == 0
    scale = (grad / result.masked_fill(zero, 1).pow(p - 1.0)).masked_fill(zero, 0)
    size = self.abs().masked_fill(self == 0, 1).pow(p - 1.0)
    return self.sgn() * size * scale.reshape(ops.kept_sizes(self.shape, dim))


@body_of(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    tags=("fusible",),
    shape="reduced(self, dim, keepdim)",
)
def _vector_norm(self: Any, ord: Any, dim: Any, keepdim: Any, dtype: Any) -> Any:
    """The norm of order `ord` over the dimensions `dim` (None: all), as of one long vector."""
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
        return x.masked_fill(x != 0, 1).sign().sum(dim, keepdim)  # whose gradient is 0
    return ops._norm_p(x, p, dim, keepdim)


op(
    "norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
    doc="The p-norm of all elements.",
    compose="linalg_vector_norm(self, p, None, False, dtype=None)",
    tags=("fusible",),
    shape="[]",
)
op(
    "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
    doc="The p-norm over the dimensions `dim` (p None: 2).",
    compose="linalg_vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=None)",
    tags=("fusible",),
    shape="reduced(self, dim, keepdim)",
)
op(
    "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, "
    "ScalarType dtype) -> Tensor",
    doc="The p-norm over the dimensions `dim`, computed in `dtype`.",
    compose="linalg_vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)",
    shape="reduced(self, dim, keepdim)",
)
op(
    "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
    doc="The p-norm of all elements, computed in `dtype`.",
    compose="linalg_vector_norm(self, 2 if p is None else p, None, False, dtype=dtype)",
    shape="[]",
)

# ---- logsumexp ----


@body_of(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    "reduce",
    promotion="floating",
    dtypes=FLOATS + COMPLEX,
    grad={"self": "_logsumexp_backward(grad, self, result, dim)"},
    tags=("fusible_rows",),
)
def _logsumexp(row: Any, self: Any) -> Any:
    """log of the sum of exp(self) over the dimensions `dim`, without overflow."""
    greatest = row.max(self.real)
    shift = where(isinf(greatest), 0, greatest)
    return log(row.sum(exp(self - shift))) + shift


@backward_of("_logsumexp_backward(Tensor grad, Tensor self, Tensor result, int[] dim) -> Tensor")
def _logsumexp_backward(grad: Any, self: Any, result: Any, dim: Any) -> Any:
    """The gradient of logsumexp."""
    kept = ops.kept_sizes(self.shape, dim)
    return grad.reshape(kept) * (self - result.reshape(kept)).exp().conj()


# An int for `dim` is of the first row, as in PyTorch's programs.
op(
    "count_nonzero(Tensor self, int? dim=None) -> Tensor",
    doc="How many elements are not 0 (along `dim`, or all).",
    compose="(self != 0).sum(None if dim is None else [dim])",
    tags=("nondifferentiable",),
    shape="reduced(self, dim)",
)
op(
    "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
    doc="How many elements are not 0, over the dimensions `dim`.",
    compose="(self != 0).sum(dim)",
    tags=("nondifferentiable",),
    shape="reduced(self, dim)",
)
