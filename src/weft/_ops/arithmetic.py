"""Arithmetic on two or three operands, choice, and limits."""

from __future__ import annotations

from typing import Any

from weft._kernels.lang import abs as absolute
from weft._kernels.lang import floor_divide, fmod, maximum, minimum, remainder, trunc_divide, where
from weft._kernels.lang import pow as power
from weft._ops.table import COMPLEX, FLOATS, INTEGERS, NUMBERS, backward_op, op, ops

_REAL = INTEGERS + FLOATS
_DIVISION_NUMBERS = FLOATS + COMPLEX

# ---- add, sub, mul, div ----

op(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    doc="self + alpha * other, element by element.",
    pointwise=lambda self, other, alpha: self + alpha * other,
    weak=("alpha",),
    tags=("commutative",),
    grad={"self": "grad", "other": "grad if alpha == 1 else grad * alpha.conj()"},
    out="out",
)
op(
    "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    doc="self + alpha * other for a number `other`.",
    pointwise=lambda self, other, alpha: self + alpha * other,
    weak=("alpha",),
    grad={"self": "grad"},
)
op(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    doc="self - alpha * other, element by element.",
    pointwise=lambda self, other, alpha: self - alpha * other,
    weak=("alpha",),
    dtypes=NUMBERS,
    grad={"self": "grad", "other": "-grad if alpha == 1 else grad * -alpha.conj()"},
    out="out",
)
op(
    "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    doc="self - alpha * other for a number `other`.",
    pointwise=lambda self, other, alpha: self - alpha * other,
    weak=("alpha",),
    dtypes=NUMBERS,
    grad={"self": "grad"},
)
op(
    "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    doc="other - alpha * self.",
    pointwise=lambda self, other, alpha: other - alpha * self,
    weak=("alpha",),
    dtypes=NUMBERS,
    grad={"self": "-grad if alpha == 1 else grad * -alpha.conj()", "other": "grad"},
    variants="f",
    inplace=None,
    out=None,
)
op(
    "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    doc="other - alpha * self for a number `other`.",
    pointwise=lambda self, other, alpha: other - alpha * self,
    weak=("alpha",),
    dtypes=NUMBERS,
    grad={"self": "-grad if alpha == 1 else grad * -alpha.conj()"},
    variants="f",
    inplace=None,
    out=None,
)
op(
    "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    doc="self * other, element by element.",
    pointwise=lambda self, other: self * other,
    tags=("commutative",),
    grad={"self": "grad * other.conj()", "other": "grad * self.conj()"},
    out="out",
)
op(
    "mul.Scalar(Tensor self, Scalar other) -> Tensor",
    doc="self * other for a number `other`.",
    pointwise=lambda self, other: self * other,
    grad={"self": "grad * other.conj()"},
    out=None,
)
op(
    "div.Tensor(Tensor self, Tensor other) -> Tensor",
    doc="self / other; integers divide to the default float.",
    pointwise=lambda self, other: self / other,
    promotion="floating",
    grad={
        "self": "grad / other.conj()",
        "other": "-grad * ((self / other) / other).conj()",
    },
    out="out",
)
op(
    "div.Scalar(Tensor self, Scalar other) -> Tensor",
    doc="self / other for a number `other`.",
    pointwise=lambda self, other: self / other,
    promotion="floating",
    grad={"self": "grad / other.conj()"},
    out=None,
)


def _div_mode(self: Any, other: Any, rounding_mode: Any) -> Any:
    if rounding_mode is None:
        return self / other
    if rounding_mode == "trunc":
        return ops._div_trunc(self, other)
    ops.check(
        rounding_mode == "floor",
        "div: expected rounding_mode to be None, 'trunc' or 'floor', got ",
        rounding_mode,
    )
    return self.floor_divide(other)


def _div_mode_in_place(self: Any, other: Any, rounding_mode: Any) -> Any:
    if rounding_mode is None:
        return self.div_(other)
    if rounding_mode == "trunc":
        return self._div_trunc_(other)
    ops.check(
        rounding_mode == "floor",
        "div_: expected rounding_mode to be None, 'trunc' or 'floor', got ",
        rounding_mode,
    )
    return self.floor_divide_(other)


op(
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    doc="self / other, rounded: None (not), 'trunc' (toward zero) or 'floor' (down).",
    compose=_div_mode,
    out="out_mode",
)
op(
    "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
    doc="self / other for a number `other`, rounded: None, 'trunc' or 'floor'.",
    compose=_div_mode,
)
op(
    "div_.Tensor_mode(Tensor(a!) self, Tensor other, *, str? rounding_mode) -> Tensor(a!)",
    doc="In-place div with a rounding mode.",
    compose=_div_mode_in_place,
)
op(
    "div_.Scalar_mode(Tensor(a!) self, Scalar other, *, str? rounding_mode) -> Tensor(a!)",
    doc="In-place div by a number with a rounding mode.",
    compose=_div_mode_in_place,
)


def _trunc_of_quotient(self: Any, other: Any) -> Any:
    return trunc_divide(self, other)


backward_op(
    "_div_trunc.Tensor(Tensor self, Tensor other) -> Tensor",
    doc="self / other rounded toward zero.",
    pointwise=_trunc_of_quotient,
    precheck="divisor",
    dtypes=_REAL,
    grad={"self": "zeros_like(grad)", "other": "zeros_like(grad)"},
    inplace="Tensor",
)
backward_op(
    "_div_trunc.Scalar(Tensor self, Scalar other) -> Tensor",
    doc="self / other rounded toward zero.",
    pointwise=_trunc_of_quotient,
    precheck="divisor",
    dtypes=_REAL,
    grad={"self": "zeros_like(grad)"},
    inplace="Scalar",
)
op(
    "floor_divide(Tensor self, Tensor other) -> Tensor",
    doc="self // other: the quotient rounded down.",
    pointwise=lambda self, other: floor_divide(self, other),
    precheck="divisor",
    dtypes=_REAL,
    grad={"self": "zeros_like(grad)", "other": "zeros_like(grad)"},
    inplace="Tensor",
)
op(
    "floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
    doc="self // other for a number `other`.",
    pointwise=lambda self, other: floor_divide(self, other),
    precheck="divisor",
    dtypes=_REAL,
    grad={"self": "zeros_like(grad)"},
    out=None,
)
op(
    "remainder.Scalar(Tensor self, Scalar other) -> Tensor",
    doc="self % other for a number `other`; the result has the sign of other.",
    pointwise=lambda self, other: remainder(self, other),
    precheck="divisor",
    dtypes=_REAL,
    grad={"self": "grad"},
)
op(
    "remainder.Tensor(Tensor self, Tensor other) -> Tensor",
    doc="self % other as in Python: the result has the sign of other.",
    pointwise=lambda self, other: remainder(self, other),
    precheck="divisor",
    dtypes=_REAL,
    grad={"self": "grad", "other": "-grad * self.floor_divide(other)"},
)
op(
    "fmod.Scalar(Tensor self, Scalar other) -> Tensor",
    doc="The remainder of self / other with the sign of self, for a number `other`.",
    pointwise=lambda self, other: fmod(self, other),
    precheck="divisor",
    dtypes=_REAL,
    grad={"self": "grad"},
)
op(
    "fmod.Tensor(Tensor self, Tensor other) -> Tensor",
    doc="The remainder of self / other with the sign of self.",
    pointwise=lambda self, other: fmod(self, other),
    precheck="divisor",
    dtypes=_REAL,
    grad={"self": "grad", "other": "-grad * _div_trunc(self, other)"},
)

# ---- powers ----

op(
    "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    doc="self ** exponent for a number `exponent`.",
    pointwise=lambda self, exponent: power(self, exponent),
    precheck="exponent",
    grad={
        "self": "zeros_like(grad) if exponent == 0 else "
        "grad * (exponent * self.pow(exponent - 1)).conj()"
    },
    inplace="Scalar",
)
op(
    "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    doc="self ** exponent, element by element.",
    pointwise=lambda self, exponent: power(self, exponent),
    grad={
        "self": "grad * where(exponent == 0, 0, exponent * self.pow(exponent - 1)).conj()",
        "exponent": "grad * where((self == 0).logical_and(real(exponent) >= 0), 0, "
        "result * self.log()).conj()",
    },
    inplace="Tensor",
)
op(
    "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    doc="self ** exponent for a number `self`.",
    pointwise=lambda self, exponent: power(self, exponent),
    grad={
        "exponent": "grad * (where(exponent >= 0, 0, result * -inf) if self == 0 "
        "else result * scalar_tensor(self, dtype=result.dtype).log()).conj()"
    },
    variants="f",
)

# ---- the greater and the lesser, limits ----

op(
    "maximum(Tensor self, Tensor other) -> Tensor",
    doc="The greater of both, element by element; NaN wins.",
    pointwise=lambda self, other: maximum(self, other),
    dtypes=("bool", *_REAL),
    tags=("commutative",),
    grad={
        "self": "where(self == other, grad / 2, grad).masked_fill(self < other, 0)",
        "other": "where(self == other, grad / 2, grad).masked_fill(self > other, 0)",
    },
    inplace=None,
)
op(
    "minimum(Tensor self, Tensor other) -> Tensor",
    doc="The lesser of both, element by element; NaN wins.",
    pointwise=lambda self, other: minimum(self, other),
    dtypes=("bool", *_REAL),
    tags=("commutative",),
    grad={
        "self": "where(self == other, grad / 2, grad).masked_fill(self > other, 0)",
        "other": "where(self == other, grad / 2, grad).masked_fill(self < other, 0)",
    },
    inplace=None,
)


def _clamp(self: Any, min: Any, max: Any) -> Any:
    if min is None and max is None:
        ops.check(False, "clamp: expected min or max or both, got none")
    if max is None:
        return self.clamp_min(min)
    if min is None:
        return self.clamp_max(max)
    return ops._clamp(self, min, max)


def _clamp_in_place(self: Any, min: Any, max: Any) -> Any:
    if min is None and max is None:
        ops.check(False, "clamp_: expected min or max or both, got none")
    if max is None:
        return self.clamp_min_(min)
    if min is None:
        return self.clamp_max_(max)
    return ops._clamp_(self, min, max)


def _clamp_tensor(self: Any, min: Any, max: Any) -> Any:
    if min is None and max is None:
        ops.check(False, "clamp: expected min or max or both, got none")
    if max is None:
        return self.clamp_min(min)
    if min is None:
        return self.clamp_max(max)
    return self.clamp_min(min).clamp_max(max)


def _clamp_tensor_in_place(self: Any, min: Any, max: Any) -> Any:
    if min is None and max is None:
        ops.check(False, "clamp_: expected min or max or both, got none")
    if max is None:
        return self.clamp_min_(min)
    if min is None:
        return self.clamp_max_(max)
    return self.clamp_min_(min).clamp_max_(max)


op(
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    doc="self held between min and max; either may be None.",
    compose=_clamp,
    out="out",
)
op(
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    doc="self held between the tensors min and max; either may be None.",
    compose=_clamp_tensor,
    out="Tensor_out",
)
op(
    "clamp_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)",
    doc="In-place clamp.",
    compose=_clamp_in_place,
    variants="fm",
)
op(
    "clamp_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)",
    doc="In-place clamp by tensors.",
    compose=_clamp_tensor_in_place,
    variants="fm",
)
backward_op(
    "_clamp(Tensor self, Scalar min, Scalar max) -> Tensor",
    doc="self held between min and max.",
    pointwise=lambda self, min, max: minimum(maximum(self, min), max),
    dtypes=_REAL,
    grad={"self": "where((self >= min).logical_and(self <= max), grad, 0)"},
    inplace="",
)
op(
    "clamp_min(Tensor self, Scalar min) -> Tensor",
    doc="self, but at least min.",
    pointwise=lambda self, min: maximum(self, min),
    dtypes=("bool", *_REAL),
    grad={"self": "where(self >= min, grad, 0)"},
    inplace_variants="fm",
)
op(
    "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
    doc="self, but at least min, element by element.",
    pointwise=lambda self, min: maximum(self, min),
    dtypes=("bool", *_REAL),
    grad={"self": "where(self >= min, grad, 0)", "min": "where(self < min, grad, 0)"},
    inplace_variants="fm",
)
op(
    "clamp_max(Tensor self, Scalar max) -> Tensor",
    doc="self, but at most max.",
    pointwise=lambda self, max: minimum(self, max),
    dtypes=("bool", *_REAL),
    grad={"self": "where(self <= max, grad, 0)"},
    inplace_variants="fm",
)
op(
    "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
    doc="self, but at most max, element by element.",
    pointwise=lambda self, max: minimum(self, max),
    dtypes=("bool", *_REAL),
    grad={"self": "where(self <= max, grad, 0)", "max": "where(self > max, grad, 0)"},
    inplace_variants="fm",
)

# ---- choice ----

op(
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    doc="self where condition holds, else other.",
    pointwise=lambda condition, self, other: where(condition, self, other),
    bool_inputs=("condition",),
    grad={"self": "where(condition, grad, 0)", "other": "where(condition, 0, grad)"},
    variants="fm",
)
op(
    "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
    doc="The number self where condition holds, else other.",
    pointwise=lambda condition, self, other: where(condition, self, other),
    bool_inputs=("condition",),
    grad={"other": "where(condition, 0, grad)"},
    variants="f",
    out=None,
)
op(
    "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
    doc="self where condition holds, else the number other.",
    pointwise=lambda condition, self, other: where(condition, self, other),
    bool_inputs=("condition",),
    grad={"self": "where(condition, grad, 0)"},
    variants="fm",
    out=None,
)
op(
    "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
    doc="The number self where condition holds, else the number other.",
    compose="where(condition, scalar_tensor(self, dtype=self.dtype), "
    "scalar_tensor(other, dtype=other.dtype))",
    variants="f",
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
    precheck="value_fits",
)


def _masked_fill(self: Any, mask: Any, value: Any) -> Any:
    """The result is of self's dtype, whatever the value's."""
    ops.check(value.dim() == 0, "masked_fill: expected a 0-d value, got shape ", value.shape)
    return ops.where(mask, ops._value_as(value, self.dtype), self)


backward_op(
    "_value_as(Tensor value, ScalarType dtype) -> Tensor",
    doc="A 0-d tensor in another dtype, which it must fit.",
    native="value_as",
    tags=("composite",),
)
op(
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    doc="self with the 0-d tensor `value` where mask holds.",
    compose=_masked_fill,
)
op(
    "masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)",
    doc="In-place masked_fill.",
    compose="self.copy_(self.masked_fill(mask, value))",
)

# ---- three operands ----


def _lerp(self: Any, end: Any, weight: Any) -> Any:
    """From the nearer end, so that weights 0 and 1 give the ends exactly."""
    step = end - self
    return where(absolute(weight) < 0.5, self + weight * step, end - step * (1 - weight))


op(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    doc="self + weight * (end - self) for a number `weight`.",
    pointwise=_lerp,
    weak=("weight",),
    dtypes=_DIVISION_NUMBERS,
    grad={"self": "grad * (1 - weight).conj()", "end": "grad * weight.conj()"},
)
op(
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    doc="self + weight * (end - self), element by element.",
    pointwise=_lerp,
    dtypes=_DIVISION_NUMBERS,
    grad={
        "self": "grad * (1 - weight).conj()",
        "end": "grad * weight.conj()",
        "weight": "grad * (end - self).conj()",
    },
)
op(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    doc="self + value * tensor1 * tensor2.",
    pointwise=lambda self, tensor1, tensor2, value: self + value * tensor1 * tensor2,
    weak=("value",),
    dtypes=NUMBERS,
    grad={
        "self": "grad",
        "tensor1": "grad * (tensor2 * value).conj()",
        "tensor2": "grad * (tensor1 * value).conj()",
    },
)
op(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    doc="self + value * tensor1 / tensor2; floating or complex operands.",
    pointwise=lambda self, tensor1, tensor2, value: self + value * tensor1 / tensor2,
    weak=("value",),
    dtypes=_DIVISION_NUMBERS,
    grad={
        "self": "grad",
        "tensor1": "grad * (value / tensor2).conj()",
        "tensor2": "-grad * (tensor1 * value / (tensor2 * tensor2)).conj()",
    },
)
