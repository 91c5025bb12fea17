"""Arithmetic on two or three operands."""

from __future__ import annotations

from typing import Any

from weft._kernels.lang import abs as absolute
from weft._kernels.lang import floor_divide, fmod, remainder, trunc_divide, where
from weft._kernels.lang import pow as power
from weft._ops.table import COMPLEX, FLOATS, INTEGERS, NUMBERS, backward_op, op, ops

_REAL = INTEGERS + FLOATS
_DIVISION_NUMBERS = FLOATS + COMPLEX

# ---- add, sub, mul, div ----

op(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    doc=("self + alpha * other, element by element.", "self + alpha * other for a number `other`."),
    pointwise=lambda self, other, alpha: self + alpha * other,
    weak=("alpha",),
    validate="alpha",
    tags=("commutative", "cheap", "number_first", "two_numbers", "numbers_between", "any_integers"),
    grad={"self": "grad", "other": "grad if alpha == 1 else grad * alpha.conj()"},
    out="out",
)
op(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    doc=("self - alpha * other, element by element.", "self - alpha * other for a number `other`."),
    pointwise=lambda self, other, alpha: self - alpha * other,
    weak=("alpha",),
    validate="alpha",
    dtypes=NUMBERS,
    grad={"self": "grad", "other": "-grad if alpha == 1 else grad * -alpha.conj()"},
    out="out",
    tags=("cheap", "number_first", "two_numbers", "numbers_between", "no_masks", "any_integers"),
)
op(
    "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    doc=("other - alpha * self.", "other - alpha * self for a number `other`."),
    pointwise=lambda self, other, alpha: other - alpha * self,
    weak=("alpha",),
    validate="alpha",
    dtypes=NUMBERS,
    grad={"self": "-grad if alpha == 1 else grad * -alpha.conj()", "other": "grad"},
    variants="f",
    inplace=None,
    out=None,
    tags=("cheap", "no_masks"),
)
op(
    "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    "mul.Scalar(Tensor self, Scalar other) -> Tensor",
    doc=("self * other, element by element.", "self * other for a number `other`."),
    pointwise=lambda self, other: self * other,
    tags=("commutative", "cheap", "number_first", "two_numbers", "exact_number", "any_integers"),
    grad={"self": "grad * other.conj()", "other": "grad * self.conj()"},
    out="out",
)
op(
    "div.Tensor(Tensor self, Tensor other) -> Tensor",
    "div.Scalar(Tensor self, Scalar other) -> Tensor",
    doc=(
        "self / other; integers divide to the default float.",
        "self / other for a number `other`.",
    ),
    pointwise=lambda self, other: self / other,
    promotion="floating",
    grad={"self": "grad / other.conj()", "other": "-grad * ((self / other) / other).conj()"},
    out="out",
    tags=("number_first", "two_numbers", "exact_number"),
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
    "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
    doc=(
        "self / other, rounded: None (not), 'trunc' (toward zero) or 'floor' (down).",
        "self / other for a number `other`, rounded: None, 'trunc' or 'floor'.",
    ),
    compose=_div_mode,
    out="out_mode",
    tags=("casts_out",),
)
op(
    "div_.Tensor_mode(Tensor(a!) self, Tensor other, *, str? rounding_mode) -> Tensor(a!)",
    "div_.Scalar_mode(Tensor(a!) self, Scalar other, *, str? rounding_mode) -> Tensor(a!)",
    doc=("In-place div with a rounding mode.", "In-place div by a number with a rounding mode."),
    compose=_div_mode_in_place,
)


def _trunc_of_quotient(self: Any, other: Any) -> Any:
    return trunc_divide(self, other)


backward_op(
    "_div_trunc.Tensor(Tensor self, Tensor other) -> Tensor",
    "_div_trunc.Scalar(Tensor self, Scalar other) -> Tensor",
    doc="self / other rounded toward zero.",
    pointwise=_trunc_of_quotient,
    validate="divisor",
    dtypes=_REAL,
    grad={"self": "zeros_like(grad)", "other": "zeros_like(grad)"},
    inplace="Tensor",
)
op(
    "floor_divide(Tensor self, Tensor other) -> Tensor",
    "floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
    doc=("self // other: the quotient rounded down.", "self // other for a number `other`."),
    pointwise=lambda self, other: floor_divide(self, other),
    validate="divisor",
    dtypes=_REAL,
    grad={"self": "zeros_like(grad)", "other": "zeros_like(grad)"},
    inplace="Tensor",
    tags=("number_first", "two_numbers"),
)
op(
    "remainder.Scalar(Tensor self, Scalar other) -> Tensor",
    "remainder.Tensor(Tensor self, Tensor other) -> Tensor",
    doc=(
        "self % other for a number `other`; the result has the sign of other.",
        "self % other as in Python: the result has the sign of other.",
    ),
    pointwise=lambda self, other: remainder(self, other),
    validate="divisor",
    dtypes=_REAL,
    grad={"self": "grad", "other": "-grad * self.floor_divide(other)"},
    tags=("number_first",),
)
op(
    "fmod.Scalar(Tensor self, Scalar other) -> Tensor",
    "fmod.Tensor(Tensor self, Tensor other) -> Tensor",
    doc=(
        "The remainder of self / other with the sign of self, for a number `other`.",
        "The remainder of self / other with the sign of self.",
    ),
    pointwise=lambda self, other: fmod(self, other),
    validate="divisor",
    dtypes=_REAL,
    grad={"self": "grad", "other": "-grad * _div_trunc(self, other)"},
)

# ---- powers ----

op(
    "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    doc="self ** exponent for a number `exponent`.",
    pointwise=lambda self, exponent: power(self, exponent),
    validate="exponent",
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
    dtypes=NUMBERS,
    grad={
        "self": "grad * where(exponent == 0, 0, exponent * self.pow(exponent - 1)).conj()",
        "exponent": "grad * where((self == 0).logical_and(real(exponent) >= 0), 0, "
        "result * self.to(result.dtype).log()).conj()",
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

# ---- three operands ----


def _lerp(self: Any, end: Any, weight: Any) -> Any:
    """From the nearer end, so that weights 0 and 1 give the ends exactly."""
    step = end - self
    return where(absolute(weight) < 0.5, self + weight * step, end - step * (1 - weight))


op(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    doc=(
        "self + weight * (end - self) for a number `weight`; self and end of one dtype.",
        "self + weight * (end - self), element by element; of one dtype.",
    ),
    pointwise=_lerp,
    weak=("weight",),
    dtypes=_DIVISION_NUMBERS,
    validate="one_dtype",
    grad={
        "self": "grad * (1 - weight).conj()",
        "end": "grad * weight.conj()",
        "weight": "grad * (end - self).conj()",
    },
    tags=("cheap",),
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
    tags=("cheap", "numbers_between", "converts_number"),
)
op(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    doc="self + value * tensor1 / tensor2; tensor1 or tensor2 is floating or complex.",
    pointwise=lambda self, tensor1, tensor2, value: self + value * tensor1 / tensor2,
    weak=("value",),
    dtypes=_DIVISION_NUMBERS,
    validate="quotient",
    grad={
        "self": "grad",
        "tensor1": "grad * (value / tensor2).conj()",
        "tensor2": "-grad * (tensor1 * value / (tensor2 * tensor2)).conj()",
    },
    tags=("numbers_between",),
)
