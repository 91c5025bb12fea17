"""Matrix products."""

from __future__ import annotations

from typing import Any

from weft._ops.table import backward_of, backward_op, body_of, op, ops

op(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    doc="The product of two matrices.",
    grad={"self": "grad.mm(mat2.mH)", "mat2": "self.mH.mm(grad)"},
    out="out",
    tags=("autocast_lower",),
    shape="[self[0], mat2[1]]",
    result="self",
)
op(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    doc="The products of two batches of matrices.",
    grad={"self": "grad.bmm(mat2.mH)", "mat2": "self.mH.bmm(grad)"},
    out="out",
    tags=("autocast_lower",),
    shape="[same(self[0], mat2[0]), self[1], mat2[2]]",
    result="self",
)
op(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    doc="beta * self + alpha * (mat1 @ mat2).",
    grad={
        "self": "grad if beta == 1 else grad * beta.conj()",
        "mat1": "grad.mm(mat2.mH) if alpha == 1 else grad.mm(mat2.mH) * alpha.conj()",
        "mat2": "mat1.mH.mm(grad) if alpha == 1 else mat1.mH.mm(grad) * alpha.conj()",
    },
    out="out",
    tags=("autocast_lower", "numbers_between"),
    shape="[mat1[0], mat2[1]]",
    result="self",
)
op(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)"
    " -> Tensor",
    doc="beta * self + alpha * (batch1 @ batch2), matrix by matrix.",
    grad={
        "self": "grad if beta == 1 else grad * beta.conj()",
        "batch1": "grad.bmm(batch2.mH) if alpha == 1 else grad.bmm(batch2.mH) * alpha.conj()",
        "batch2": "batch1.mH.bmm(grad) if alpha == 1 else batch1.mH.bmm(grad) * alpha.conj()",
    },
    out="out",
    tags=("autocast_lower", "numbers_between"),
    shape="[same(batch1[0], batch2[0]), batch1[1], batch2[2]]",
    result="self",
)
for _name, _operands, _numbers in (
    ("mm", "Tensor self, Tensor mat2", ""),
    ("bmm", "Tensor self, Tensor mat2", ""),
    ("addmm", "Tensor self, Tensor mat1, Tensor mat2", ", *, Scalar beta=1, Scalar alpha=1"),
    ("baddbmm", "Tensor self, Tensor batch1, Tensor batch2", ", *, Scalar beta=1, Scalar alpha=1"),
):
    op(
        f"{_name}.dtype({_operands}, ScalarType out_dtype{_numbers}) -> Tensor",
        doc="Raises NotImplementedError, as on PyTorch's CPU: products have their operands' dtype.",
        compose=f"_no_product(self, '{_name}', out_dtype)",
    )


@body_of("_no_product(Tensor self, str name, ScalarType dtype) -> Tensor")
def _no_product(self: Any, name: Any, dtype: Any) -> Any:
    """Raises NotImplementedError: what products that have a dtype of their own do on the CPU."""
    ops.check_implemented(
        False, name, ": expected no out_dtype for products on the CPU, got ", dtype
    )
    return self


op(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    doc="The sum of the products of two vectors.",
    grad={"self": "grad * tensor.conj()", "tensor": "grad * self.conj()"},
    out="out",
    shape="[]",
    result="self",
)
op(
    "mv(Tensor self, Tensor vec) -> Tensor",
    doc="The product of a matrix and a vector.",
    grad={"self": "grad.outer(vec.conj())", "vec": "self.mH.mv(grad)"},
    out="out",
    shape="[self[0]]",
    result="self",
)


@body_of("outer(Tensor self, Tensor vec2) -> Tensor", out="out", tags=("casts_out",))
def _outer(self: Any, vec2: Any) -> Any:
    """All products of the entries of two vectors, as a matrix."""
    ops.check(
        self.dim() == 1 and vec2.dim() == 1,
        "outer: expected two vectors, got shapes ",
        self.shape,
        " and ",
        vec2.shape,
    )
    return self.unsqueeze(1) * vec2


op(
    "matmul(Tensor self, Tensor other) -> Tensor",
    doc="The matrix product of the last two dimensions; the others are broadcast. Vectors count "
    "as a row on the left, as a column on the right.",
    tags=("composite", "autocast_lower"),
    out="out",
    shape="matmul(self, other)",
    result="self",
)
op(
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    doc="input @ weight.T + bias, for any leading dimensions of input.",
    grad={
        "input": "_linear_backward_input(grad, weight.conj())",
        "weight": "_linear_backward_weight(_columns(grad, input), input.conj())",
        "bias": "grad",
    },
    variants="nn",
    tags=("autocast_lower", "layer"),
    out="out",
    shape="matmul(input, weight[::-1])",
    result="input",
)


@backward_of("_linear_backward_input(Tensor grad_output, Tensor weight) -> Tensor")
def _linear_backward_input(grad_output: Any, weight: Any) -> Any:
    """The gradient of `linear` to its input; a weight that is a vector counts as one row."""
    if weight.dim() == 1:
        return grad_output.unsqueeze(-1) * weight
    return grad_output.matmul(weight)


@backward_of("_columns(Tensor grad_output, Tensor input) -> Tensor")
def _columns(grad_output: Any, input: Any) -> Any:
    """The gradient of `linear`, with the last dim that a weight which is a vector leaves out."""
    return grad_output.unsqueeze(-1) if grad_output.dim() < input.dim() else grad_output


backward_op(
    "_linear_backward_weight(Tensor grad_output, Tensor input) -> Tensor",
    doc="grad_output.T @ input, leading dimensions folded into one.",
    grad={"grad_output": "linear(input.conj(), grad)", "input": "grad_output.conj().matmul(grad)"},
    shape="[grad_output[-1], input[-1]]",
)
backward_op(
    "_bmm(Tensor self, Tensor mat2) -> Tensor",
    doc="bmm that autocast leaves in the precision it gets: the outer products of einsum.",
    native="bmm",
    grad={"self": "grad._bmm(mat2.mH)", "mat2": "self.mH._bmm(grad)"},
    shape="[same(self[0], mat2[0]), self[1], mat2[2]]",
    result="self",
)

# ---- attention ----

op(
    "_attention(Tensor query, Tensor key, Tensor value, Tensor? mask, bool is_causal, "
    "float scale) -> Tensor",
    doc="softmax(query @ key.T * scale + mask) @ value over the last two dimensions, by blocks of "
    "query rows; no gradient flows to the mask.",
    grad={
        "query, key, value": "_attention_backward(grad, query, key, value, mask, is_causal, scale)"
    },
    tags=("autocast_lower",),
    shape="[*broadcast(query[:-2], key[:-2], value[:-2], [] if mask is absent else mask[:-2]), "
    "query[-2], value[-1]]",
    result="query",
)
backward_op(
    "_attention_backward(Tensor grad_output, Tensor query, Tensor key, Tensor value, "
    "Tensor? mask, bool is_causal, float scale) -> (Tensor, Tensor, Tensor)",
    doc="The gradients of _attention for query, key and value, in sizes that broadcast to those of "
    "the result.",
    tags=("composite",),
    shape="each(query, key, value)",
    result=("query",) * 3,
)

# ---- further sums with a product, all by addmm ----


@body_of(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    out="out",
    tags=("autocast_given", "numbers_between"),
)
def _addmv(self: Any, mat: Any, vec: Any, beta: Any, alpha: Any) -> Any:
    """beta * self + alpha * (mat @ vec)."""
    ops.check(
        self.dim() <= 1 and mat.dim() == 2 and vec.dim() == 1,
        "addmv: expected a vector, a matrix and a vector, got shapes ", self.shape, ", ",
        mat.shape, " and ", vec.shape,
    )  # fmt: skip
    column = self.unsqueeze(-1).addmm(mat, vec.unsqueeze(1), beta=beta, alpha=alpha)
    return column.squeeze(1)


@body_of(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    out="out",
    tags=("casts_out", "autocast_given", "numbers_between"),
)
def _addr(self: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> Any:
    """beta * self + alpha * outer(vec1, vec2)."""
    ops.check(
        vec1.dim() == 1 and vec2.dim() == 1,
        "addr: expected two vectors, got shapes ", vec1.shape, " and ", vec2.shape,
    )  # fmt: skip
    kind = ops.promote(self.dtype, ops.promote(vec1.dtype, vec2.dtype))
    ops.check(
        kind.is_floating_point() or kind.is_complex() or (
            ops.is_integral(beta) and ops.is_integral(alpha)
        ),
        "addr: expected integers beta and alpha for dtype ", kind, ", got ", beta, " and ", alpha,
    )  # fmt: skip
    if kind == ops.bool:
        left = vec1 if bool(alpha) else ops.zeros_like(vec1)
        kept = self if bool(beta) else ops.zeros_like(self)
        return left.unsqueeze(1).logical_and(vec2.unsqueeze(0)).logical_or(kept)
    start = self if self.dim() == 0 else self.to(kind)
    column, row = vec1.to(kind).unsqueeze(1), vec2.to(kind).unsqueeze(0)
    return start.addmm(column, row, beta=beta, alpha=alpha)


@body_of(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    out="out",
    tags=("autocast_lower", "numbers_between"),
)
def _addbmm(self: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    """beta * self + alpha * (the sum of batch1 @ batch2 over the batch)."""
    ops.check(
        batch1.dim() == 3 and batch2.dim() == 3 and batch1.shape[:1] == batch2.shape[:1]
        and batch1.shape[2:] == batch2.shape[1:2],
        "addbmm: expected shapes (b, n, k) and (b, k, m), got ", batch1.shape, " and ",
        batch2.shape,
    )  # fmt: skip
    batch, rows, inner = batch1.size(0), batch1.size(1), batch1.size(2)
    left = batch1.transpose(0, 1).reshape([rows, batch * inner])
    right = batch2.reshape([batch * inner, batch2.size(2)])
    return self.addmm(left, right, beta=beta, alpha=alpha)


op(
    "vdot(Tensor self, Tensor other) -> Tensor",
    doc="dot with self conjugated.",
    compose="self.conj().dot(other)",
    out="out",
)
for _name, _first, _second in (
    ("addmm", "mat1", "mat2"),
    ("addmv", "mat", "vec"),
    ("addr", "vec1", "vec2"),
    ("addbmm", "batch1", "batch2"),
    ("baddbmm", "batch1", "batch2"),
):
    op(
        f"{_name}_(Tensor(a!) self, Tensor {_first}, Tensor {_second}, *, Scalar beta=1, "
        "Scalar alpha=1) -> Tensor(a!)",
        doc=f"In-place {_name}.",
        compose=f"self.copy_(self.{_name}({_first}, {_second}, beta=beta, alpha=alpha))",
        variants="fm" if _name == "addmv" else "m",
        tags=("numbers_between",),
    )
