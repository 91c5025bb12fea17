"""Running products and extrema, order statistics, and reductions that pass over NaN."""

from __future__ import annotations

from typing import Any

from weft._kernels.lang import is_bool, where
from weft._ops.table import FLOATS, INTEGERS, backward_of, body_of, op, ops

# ---- running values ----


op(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    doc="Products of the entries up to and with each, along `dim`.",
    grad={"self": "_cumprod_backward(grad, self.conj(), result.conj(), dim)"},
    out="out",
    shape="self",
    tags=("casts_out",),
)


@backward_of("_cumprod_backward(Tensor grad, Tensor self, Tensor result, int dim) -> Tensor")
def _cumprod_backward(grad: Any, self: Any, result: Any, dim: Any) -> Any:
    """The gradient of cumprod."""
    # Without division where an element is 0: halves are taken crosswise then.
    if self.dim() == 0 or self.numel() == 0:
        return grad
    if not bool((self == 0).any()):
        return (grad * result).flip([dim]).cumsum(dim).flip([dim]) / self
    n = self.size(dim)
    if n == 1:
        return grad
    left = self.narrow(dim, 0, n // 2)
    right = self.narrow(dim, n // 2, n - n // 2)
    upper = grad.narrow(dim, n // 2, n - n // 2)
    through = (upper * right.cumprod(dim)).sum([dim], True) * ops._prod_others(left, dim)
    lower = grad.narrow(dim, 0, n // 2)
    return ops.cat(
        [
            ops._cumprod_backward(lower, left, left.cumprod(dim), dim) + through,
            ops._cumprod_backward(upper * left.prod(dim, True), right, right.cumprod(dim), dim),
        ],
        dim,
    )


for _name, _word in (("cummax", "greatest"), ("cummin", "least")):
    op(
        f"{_name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        doc=f"The {_word} of the entries up to and with each along `dim`, and its last index.",
        grad={"self": "grad.new_zeros(self.shape).scatter_add(dim, result1, grad)"},
        out=True,
        shape="self",
        result=("self", "int64"),
    )
op(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    doc="Logarithms of the running sums of exp(self) along `dim`, without overflow.",
    grad={"self": "_logcumsumexp_backward(grad, self, result, dim)"},
    out="out",
    shape="self",
)


@backward_of("_logcumsumexp_backward(Tensor grad, Tensor self, Tensor result, int dim) -> Tensor")
def _logcumsumexp_backward(grad: Any, self: Any, result: Any, dim: Any) -> Any:
    """The gradient of logcumsumexp."""
    # Positive and negative gradients apart, each as a running sum of exponentials from the end.
    if grad.dim() == 0 or grad.numel() == 0:
        return grad
    if self.is_complex() and not ops.grad_enabled():
        logs = grad.conj().log() - result
        return (logs.flip([dim]).logcumsumexp(dim).flip([dim]) + self).exp().conj()
    if self.is_complex():
        most = ops.real(self.detach()).amax([dim], True)
        factor = grad * (most - result).exp().conj()
        return factor.flip([dim]).cumsum(dim).flip([dim]) * (self - most).exp().conj()
    if ops.grad_enabled():
        # Plain, so that it can be differentiated itself: logarithms of zeros cannot.
        shift = self.detach().amax([dim], True)
        scaled = grad * (shift - result).exp()
        return scaled.flip([dim]).cumsum(dim).flip([dim]) * (self - shift).exp()
    size = grad.abs().log()
    up = ops.where(grad > 0, size, -ops.inf) - result
    down = ops.where(grad < 0, size, -ops.inf) - result
    rising = (up.flip([dim]).logcumsumexp(dim).flip([dim]) + self).exp()
    return rising - (down.flip([dim]).logcumsumexp(dim).flip([dim]) + self).exp()


op(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    doc="Differences of neighbours along `dim`, taken n times.",
    tags=("composite",),
    out="out",
)

# ---- over NaN, and two at once ----


def _nanmean(self: Any, dim: Any, keepdim: Any, dtype: Any) -> Any:
    ops.check(self.is_floating_point(), "nanmean: expected a floating dtype, got ", self.dtype)
    count = self.isnan().logical_not().sum(dim, keepdim, dtype=None)
    return self.nansum(dim, keepdim, dtype=dtype) / count


def _nansum(row: Any, self: Any) -> Any:
    if is_bool(self):
        return row.any(self)
    return row.sum(where(self == self, self, 0))


op(
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)"
    " -> Tensor",
    doc="The sum over the dimensions `dim` (None: all), NaN counted as 0.",
    reduce=_nansum,
    promotion="sum",
    dtypes=("bool", *INTEGERS, *FLOATS),
    grad={"self": "_sum_backward(grad, self.shape, dim).masked_fill(self.isnan(), 0)"},
    out="out",
    tags=("fusible",),
)
op(
    "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)"
    " -> Tensor",
    doc="The mean over the dimensions `dim` (None: all) of the elements that are not NaN.",
    compose=_nanmean,
    out="out",
    shape="reduced(self, dim, keepdim)",
    tags=("casts_out",),
)
for _name, _doc in (("var", "variance"), ("std", "standard deviation")):
    op(
        f"{_name}_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
        doc=f"The {_doc} and the mean of all elements.",
        compose=f"({_name}(self, unbiased), self.mean())",
        variants="f",
    )
    op(
        f"{_name}_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)"
        " -> (Tensor, Tensor)",
        doc=f"The {_doc} and the mean over the dimensions `dim`.",
        compose=f"({_name}(self, dim, unbiased, keepdim), self.mean(dim, keepdim))",
        variants="f",
    )
    op(
        f"{_name}_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
        "bool keepdim=False) -> (Tensor, Tensor)",
        doc=f"The {_doc}, dividing by count - correction (None: 1), and the mean.",
        compose=f"({_name}(self, dim, correction=correction, keepdim=keepdim), "
        "self.mean(dim, keepdim))",
        variants="f",
    )


@body_of(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    out="out",
)
def _aminmax(self: Any, dim: Any, keepdim: Any) -> Any:
    """The least and the greatest element along `dim` (None: of all)."""
    if dim is None:
        return self.amin([], keepdim), self.amax([], keepdim)
    return self.amin([dim], keepdim), self.amax([dim], keepdim)


# ---- order statistics ----

_SELECTED = "value_selecting_reduction_backward(grad, dim, result1, self.shape, keepdim)"
for _name, _doc in (
    ("median", "The lower median"),
    ("nanmedian", "The lower median of the elements that are not NaN"),
):
    op(
        f"{_name}(Tensor self) -> Tensor",
        doc=f"{_doc}, of all elements.",
        grad={"self": "_extremum_backward(grad, self, result, [], True)"},
        shape="[]",
        result="self",
    )
    op(
        f"{_name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        doc=f"{_doc} along `dim`, and its index.",
        grad={"self": _SELECTED},
        out="dim_values",
        shape="reduced(self, dim, keepdim)",
        result=("self", "int64"),
        tags=("distinct_out",),
    )
op(
    "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False)"
    " -> (Tensor values, Tensor indices)",
    doc="The k-th least entry along `dim` (from 1), and its index.",
    grad={"self": _SELECTED},
    out="values",
    shape="reduced(self, dim, keepdim)",
    result=("self", "int64"),
    tags=("distinct_out",),
)
op(
    "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    doc="The commonest entry along `dim` (of several the least), and its last index.",
    grad={"self": _SELECTED},
    out="values",
    shape="reduced(self, dim, keepdim)",
    result=("self", "int64"),
    tags=("distinct_out",),
)
