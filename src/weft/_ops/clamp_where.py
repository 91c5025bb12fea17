"""The greater and the lesser of two, limits, and choice by a mask."""

from __future__ import annotations

from typing import Any

from weft._kernels.lang import maximum, minimum, where
from weft._ops.table import FLOATS, INTEGERS, backward_op, body_of, op, ops

_REAL = INTEGERS + FLOATS

# ---- the greater and the lesser, limits ----

for _name, _body, _which, _loses in (
    ("maximum", lambda self, other: maximum(self, other), "greater", "<>"),
    ("minimum", lambda self, other: minimum(self, other), "lesser", "><"),
):
    op(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        doc=f"The {_which} of both, element by element; NaN wins.",
        pointwise=_body,
        dtypes=("bool", *_REAL),
        tags=("commutative", "cheap", "any_integers"),
        grad={
            name: f"where(self == other, grad / 2, grad).masked_fill(self {loses} other, 0)"
            for name, loses in zip(("self", "other"), _loses)
        },
        inplace=None,
    )


@body_of(
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    out="out",
    tags=("cheap",),
    shape="self",
)
def _clamp(self: Any, min: Any, max: Any) -> Any:
    """self held between min and max; either may be None."""
    if min is None and max is None:
        ops.check(False, "clamp: expected min or max or both, got none")
    if max is None:
        return self.clamp_min(min)
    if min is None:
        return self.clamp_max(max)
    return ops._clamp(self, min, max)


@body_of(
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    out="Tensor_out",
    tags=("cheap", "casts_out"),
    shape="broadcast(self, min, max)",
)
def _clamp_tensor(self: Any, min: Any, max: Any) -> Any:
    """self held between the tensors min and max; either may be None."""
    if min is None and max is None:
        ops.check(False, "clamp: expected min or max or both, got none")
    if max is None:
        return self.clamp_min(min)
    if min is None:
        return self.clamp_max(max)
    ops.check_implemented(
        self.dtype != ops.bool or min.dtype != ops.bool or max.dtype != ops.bool,
        "clamp: expected a numeric dtype, got bool",
    )
    # 0-d tensors and others have a dtype each, before one of them decides
    flat = self.dim() == 0
    if flat != (min.dim() == 0) and flat == (max.dim() == 0):
        return self.to(ops.promote(self.dtype, max.dtype)).clamp_min(min).clamp_max(max)
    if flat != (min.dim() == 0):
        return self.clamp_min(min.to(ops.promote(min.dtype, max.dtype))).clamp_max(max)
    return self.clamp_min(min).clamp_max(max)


@body_of("clamp_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)", variants="fm")
def _clamp_in_place(self: Any, min: Any, max: Any) -> Any:
    """In-place clamp."""
    if min is None and max is None:
        ops.check(False, "clamp_: expected min or max or both, got none")
    if max is None:
        return self.clamp_min_(min)
    if min is None:
        return self.clamp_max_(max)
    return ops._clamp_(self, min, max)


@body_of(
    "clamp_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)",
    variants="fm",
)
def _clamp_tensor_in_place(self: Any, min: Any, max: Any) -> Any:
    """In-place clamp by tensors."""
    if min is None and max is None:
        ops.check(False, "clamp_: expected min or max or both, got none")
    if max is None:
        return self.clamp_min_(min)
    if min is None:
        return self.clamp_max_(max)
    ops.check_implemented(
        self.dtype != ops.bool or min.dtype != ops.bool or max.dtype != ops.bool,
        "clamp_: expected a numeric dtype, got bool",
    )
    return self.clamp_min_(min).clamp_max_(max)


backward_op(
    "_clamp(Tensor self, Scalar min, Scalar max) -> Tensor",
    doc="self held between min and max.",
    pointwise=lambda self, min, max: minimum(maximum(self, min), max),
    dtypes=_REAL,
    validate="number_fits",
    grad={"self": "where((self >= min).logical_and(self <= max), grad, 0)"},
    inplace="",
)
for _limit, _body, _word, _kept, _cut in (
    ("min", lambda self, min: maximum(self, min), "least", ">=", "<"),
    ("max", lambda self, max: minimum(self, max), "most", "<=", ">"),
):
    op(
        f"clamp_{_limit}(Tensor self, Scalar {_limit}) -> Tensor",
        doc=f"self, but at {_word} {_limit}.",
        pointwise=_body,
        dtypes=_REAL,
        grad={"self": f"where(self {_kept} {_limit}, grad, 0)"},
        validate="number_fits",
        inplace_variants="fm",
        tags=("cheap",),
    )
    op(
        f"clamp_{_limit}.Tensor(Tensor self, Tensor {_limit}) -> Tensor",
        doc=f"self, but at {_word} {_limit}, element by element.",
        pointwise=_body,
        dtypes=("bool", *_REAL),
        grad={
            "self": f"where(self {_kept} {_limit}, grad, 0)",
            _limit: f"where(self {_cut} {_limit}, grad, 0)",
        },
        inplace_variants="fm",
        tags=("cheap",),
    )

# ---- choice ----

op(
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    doc="self where condition holds, else other.",
    pointwise=lambda condition, self, other: where(condition, self, other),
    bool_inputs=("condition",),
    grad={"self": "where(condition, grad, 0)", "other": "where(condition, 0, grad)"},
    variants="fm",
    tags=("cheap", "exact_out", "any_integers"),
)
op(
    "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
    doc="The number self where condition holds, else other.",
    pointwise=lambda condition, self, other: where(condition, self, other),
    bool_inputs=("condition",),
    grad={"other": "where(condition, 0, grad)"},
    variants="f",
    validate="where_fits",
    out=None,
    tags=("cheap",),
)
op(
    "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
    doc="self where condition holds, else the number other.",
    pointwise=lambda condition, self, other: where(condition, self, other),
    bool_inputs=("condition",),
    grad={"self": "where(condition, grad, 0)"},
    variants="fm",
    out=None,
    validate="where_fits",
    tags=("cheap",),
)
op(
    "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
    doc="The number self where condition holds, else the number other.",
    compose="where(condition, scalar_tensor(self, dtype=self.dtype), "
    "scalar_tensor(other, dtype=other.dtype))",
    variants="f",
    tags=("cheap",),
)
op(
    "where(Tensor condition) -> Tensor[]",
    doc="Indices of the elements that hold, one tensor a dimension; a number counts as a vector.",
    compose="(condition if condition.dim() > 0 else condition.unsqueeze(0)).nonzero().unbind(1)",
    tags=("nondifferentiable",),
    variants="f",
)
op(
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
    doc="self with `value` where mask holds.",
    pointwise=lambda self, mask, value: where(mask, value, self),
    bool_inputs=("mask",),
    weak=("value",),
    grad={"self": "grad.masked_fill(mask, 0)"},
    out=None,
    validate="mask_and_value",
    tags=("converts_number", "row_major"),
)


backward_op(
    "_value_as(Tensor value, ScalarType dtype) -> Tensor",
    doc="A 0-d tensor in another dtype, which it must fit.",
    native="value_as",
    tags=("composite",),
)


@body_of("masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", result="self")
def _masked_fill(self: Any, mask: Any, value: Any) -> Any:
    """self with the 0-d tensor `value` where mask holds."""
    # The result is of self's dtype, whatever the value's.
    ops.check(
        mask.dtype == ops.bool, "masked_fill: expected a mask of dtype bool, got ", mask.dtype
    )
    ops.check(value.dim() == 0, "masked_fill: expected a 0-d value, got shape ", value.shape)
    return ops.where(mask, ops._value_as(value, self.dtype), self).contiguous()


op(
    "masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)",
    doc="In-place masked_fill.",
    compose="self.copy_(self.masked_fill(mask, value))",
)
