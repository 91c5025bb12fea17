"""Matrix products."""

from __future__ import annotations

from typing import Any

from weft._ops.table import backward_op, op, ops

op(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    doc="The product of two matrices.",
    native="mm",
    grad={"self": "grad.mm(mat2.mH)", "mat2": "self.mH.mm(grad)"},
    out="out",
)
op(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    doc="The products of two batches of matrices.",
    native="bmm",
    grad={"self": "grad.bmm(mat2.mH)", "mat2": "self.mH.bmm(grad)"},
    out="out",
)
op(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    doc="beta * self + alpha * (mat1 @ mat2).",
    native="addmm",
    grad={
        "self": "grad if beta == 1 else grad * beta.conj()",
        "mat1": "grad.mm(mat2.mH) if alpha == 1 else grad.mm(mat2.mH) * alpha.conj()",
        "mat2": "mat1.mH.mm(grad) if alpha == 1 else mat1.mH.mm(grad) * alpha.conj()",
    },
    out="out",
)
op(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)"
    " -> Tensor",
    doc="beta * self + alpha * (batch1 @ batch2), matrix by matrix.",
    native="baddbmm",
    grad={
        "self": "grad if beta == 1 else grad * beta.conj()",
        "batch1": "grad.bmm(batch2.mH) if alpha == 1 else grad.bmm(batch2.mH) * alpha.conj()",
        "batch2": "batch1.mH.bmm(grad) if alpha == 1 else batch1.mH.bmm(grad) * alpha.conj()",
    },
    out="out",
)
op(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    doc="The sum of the products of two vectors.",
    native="dot",
    grad={"self": "grad * tensor.conj()", "tensor": "grad * self.conj()"},
    out="out",
)
op(
    "mv(Tensor self, Tensor vec) -> Tensor",
    doc="The product of a matrix and a vector.",
    native="mv",
    grad={"self": "grad.outer(vec.conj())", "vec": "self.mH.mv(grad)"},
    out="out",
)


def _outer(self: Any, vec2: Any) -> Any:
    ops.check(
        self.dim() == 1 and vec2.dim() == 1,
        "outer: expected two vectors, got shapes ",
        self.shape,
        " and ",
        vec2.shape,
    )
    return self.unsqueeze(1) * vec2


op(
    "outer(Tensor self, Tensor vec2) -> Tensor",
    doc="All products of the entries of two vectors, as a matrix.",
    compose=_outer,
    out="out",
)
op(
    "matmul(Tensor self, Tensor other) -> Tensor",
    doc="The matrix product of the last two dimensions; the others are broadcast. Vectors count "
    "as a row on the left, as a column on the right.",
    native="matmul",
    tags=("composite",),
    out="out",
)
op(
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    doc="input @ weight.T + bias, for any leading dimensions of input.",
    native="linear",
    grad={
        "input": "grad.matmul(weight.conj())",
        "weight": "_linear_backward_weight(grad, input.conj())",
        "bias": "grad",
    },
    variants="nn",
)
backward_op(
    "_linear_backward_weight(Tensor grad_output, Tensor input) -> Tensor",
    doc="grad_output.T @ input, leading dimensions folded into one.",
    native="_linear_backward_weight",
    grad={
        "grad_output": "linear(input.conj(), grad)",
        "input": "grad_output.conj().matmul(grad)",
    },
)
