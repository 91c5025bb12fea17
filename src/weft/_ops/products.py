"""Products of several kinds."""

from __future__ import annotations

from typing import Any

from weft._ops.table import backward_of, backward_op, body_of, op, ops


@body_of("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", out="out")
def _cross(self: Any, other: Any, dim: Any) -> Any:
    """The vector product along `dim`, of 3 entries."""
    ops.check(
        self.dim() == other.dim() and self.size(dim) == 3 and other.size(dim) == 3,
        "linalg.cross: expected as many dims, and 3 entries along dim ", dim,
        ", got shapes ", self.shape, " and ", other.shape,
    )  # fmt: skip
    ops.check(
        self.dtype == other.dtype,
        "linalg.cross: expected tensors of one dtype, got ", self.dtype, " and ", other.dtype,
    )  # fmt: skip
    sizes = ops.broadcast_sizes(self.shape, other.shape)
    a, b = self.expand(sizes), other.expand(sizes)
    return a.roll([-1], [dim]) * b.roll([-2], [dim]) - a.roll([-2], [dim]) * b.roll([-1], [dim])


op(
    "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
    doc="The vector product along `dim` (None: the first of 3 entries).",
    tags=("composite",),
    out="out",
)
op(
    "kron(Tensor self, Tensor other) -> Tensor",
    doc="Kronecker's product: each entry of self times all of other.",
    tags=("composite", "casts_out"),
    out="out",
)


@body_of(
    "cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor",
    tags=("autocast_float32",),
)
def _cdist(x1: Any, x2: Any, p: Any, compute_mode: Any) -> Any:
    """The p-norm distances between the rows of x1 and those of x2."""
    ops.check(
        x1.dim() >= 2 and x2.dim() >= 2 and x1.size(-1) == x2.size(-1),
        "cdist: expected shapes (..., m, k) and (..., n, k), got ", x1.shape, " and ", x2.shape,
    )  # fmt: skip
    ops.check(
        x1.dtype == x2.dtype and x1.is_floating_point(),
        "cdist: expected one floating dtype, got ", x1.dtype, " and ", x2.dtype,
    )  # fmt: skip
    # PyTorch has 16 bits for distances that it computes by a product.
    many = x1.size(-2) > 25 or x2.size(-2) > 25
    by_product = many if compute_mode is None else compute_mode == 1
    ops.check_implemented(
        x1.dtype == ops.float32 or x1.dtype == ops.float64 or (p == 2.0 and by_product),
        "cdist: expected dtype float32 or float64, got ", x1.dtype,
    )  # fmt: skip
    if p == 2.0 or p == 1.0:
        return x1._distances(x2, p)
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).linalg_vector_norm(p, [-1])


op(
    "_distances(Tensor self, Tensor other, float p) -> Tensor",
    doc="The p-norm distances between the rows of self and those of other, for p of 1 or 2.",
    grad={
        "self": "_distances_backward(grad, result, self, other, p)",
        "other": "_distances_backward(grad.mT, result.mT, other, self, p)",
    },
    shape="[*broadcast(self[:-2], other[:-2]), self[-2], other[-2]]",
    result="self",
)


@backward_of(
    "_distances_backward(Tensor grad, Tensor distances, Tensor x1, Tensor x2, float p) -> Tensor"
)
def _distances_backward(grad: Any, distances: Any, x1: Any, x2: Any, p: Any) -> Any:
    """The gradient of _distances for x1."""
    if p == 1.0:
        return ops._difference_sums(grad, x1, x2, True)
    return ops._difference_sums(
        grad / distances.masked_fill(distances == 0, ops.inf), x1, x2, False
    )


backward_op(
    "_difference_sums(Tensor weight, Tensor x1, Tensor x2, bool signs=False) -> Tensor",
    doc="Entry (..., i, k) is the sum over j of weight[..., i, j] times x1[..., i, k] - x2[..., j, "
    "k], or its sign.",
    grad={
        "weight": "_difference_products(grad, x1, x2, signs)",
        "x1": "zeros_like(x1) if signs else grad * weight.sum([-1], keepdim=True)",
        "x2": "zeros_like(x2) if signs else -(weight.mT @ grad)",
    },
    shape="[*broadcast(x1[:-2], x2[:-2]), x1[-2], x1[-1]]",
    result="x1",
)


@backward_of("_difference_products(Tensor grad, Tensor x1, Tensor x2, bool signs) -> Tensor")
def _difference_products(grad: Any, x1: Any, x2: Any, signs: Any) -> Any:
    """The gradient of _difference_sums for weight."""
    if signs:
        return (grad.unsqueeze(-2) * (x1.unsqueeze(-2) - x2.unsqueeze(-3)).sign()).sum([-1])
    return (grad * x1).sum([-1], True) - grad @ x2.mT


op(
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    doc="The p-norm of self - other.",
    compose="linalg_vector_norm(self - other, p)",
)
op(
    "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
    doc=(
        "Products summed over the dimensions dims_self and dims_other.",
        'Products summed over the letters that the equation ("ij,jk->ik") does not keep.',
    ),
    tags=("composite",),
    variants="",
)
op(
    "inner(Tensor self, Tensor other) -> Tensor",
    doc="Products summed over the last dimension of both.",
    tags=("composite",),
    out="out",
)
op(
    "matrix_power(Tensor self, int n) -> Tensor",
    doc="The product of n copies of the matrices (n < 0: of their inverses).",
    tags=("composite", "casts_out"),
    out="out",
)

# ---- floats of one byte ----


@body_of(
    "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, "
    "Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
    variants="f",
    tags=("nondifferentiable",),
)
def _scaled_mm(
    self: Any,
    mat2: Any,
    scale_a: Any,
    scale_b: Any,
    bias: Any,
    scale_result: Any,
    out_dtype: Any,
    use_fast_accum: Any,
) -> Any:
    """The product of matrices of floats of one byte, times scales (of one element, or for each row
    of self and column of mat2), plus bias, in out_dtype (None: that of self)."""
    ops.check(
        self.dim() == 2 and mat2.dim() == 2 and self.size(1) == mat2.size(0),
        "_scaled_mm: expected shapes (m, k) and (k, n), got ", self.shape, " and ", mat2.shape,
    )  # fmt: skip
    ops.check_value(
        self.dtype.is_float8() and mat2.dtype.is_float8(),
        "_scaled_mm: expected matrices of floats of one byte, got ", self.dtype, " and ",
        mat2.dtype,
    )  # fmt: skip
    m, n = self.size(0), mat2.size(1)
    ops.check_value(
        scale_a.dtype == ops.float32 and scale_b.dtype == ops.float32,
        "_scaled_mm: expected scales of float32, got ", scale_a.dtype, " and ", scale_b.dtype,
    )  # fmt: skip
    single = scale_a.numel() == 1 and scale_b.numel() == 1
    ops.check_value(
        single or (scale_a.shape == [m, 1] and scale_b.shape == [1, n]),
        "_scaled_mm: expected scales of one element, or of shapes ", [m, 1], " and ", [1, n],
        ", got ", scale_a.shape, " and ", scale_b.shape,
    )  # fmt: skip
    left = scale_a.reshape([1, 1]) if single else scale_a
    right = scale_b.reshape([1, 1]) if single else scale_b
    result = self.to(ops.float32).matmul(mat2.to(ops.float32)) * left * right
    if bias is not None:
        ops.check(bias.numel() == n, "_scaled_mm: expected bias of size ", n, ", got ", bias.shape)
        result = result + bias.to(ops.float32).reshape([n])
    kind = self.dtype if out_dtype is None else out_dtype
    if scale_result is not None and kind.is_float8():
        result = result * scale_result.reciprocal()
    return result.to(kind)


# ---- whole numbers of one byte ----

op(
    "_int_mm(Tensor self, Tensor mat2) -> Tensor",
    doc="The product of two matrices of int8, in int32.",
    variants="f",
    out="out",
    tags=("nondifferentiable",),
)


@body_of(
    "_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor",
    variants="f",
    tags=("nondifferentiable",),
)
def _weight_int8pack_mm(self: Any, mat2: Any, scales: Any) -> Any:
    """self @ mat2.T times scales, for a weight of int8 with a scale for each of its rows; the sums
    are float32."""
    ops.check(
        self.dim() == 2 and mat2.dim() == 2 and self.size(1) == mat2.size(1),
        "_weight_int8pack_mm: expected shapes (m, k) and (n, k), got ", self.shape, " and ",
        mat2.shape,
    )  # fmt: skip
    ops.check(
        mat2.dtype == ops.int8 and self.dtype.is_floating_point(),
        "_weight_int8pack_mm: expected rows of floats and a weight of int8, got ", self.dtype,
        " and ", mat2.dtype,
    )  # fmt: skip
    ops.check(
        scales.shape == [mat2.size(0)],
        "_weight_int8pack_mm: expected scales of shape ", [mat2.size(0)], ", got ", scales.shape,
    )  # fmt: skip
    sums = self.to(ops.float32).matmul(mat2.to(ops.float32).t())
    return (sums * scales.to(ops.float32)).to(self.dtype)
