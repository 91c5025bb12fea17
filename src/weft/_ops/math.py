"""Further functions of one or two numbers: signs, logarithms of sums, shifts, exact limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft._kernels import lang
from weft._ops.table import (
    AUTO,
    COMPLEX,
    FLOATS,
    INTEGERS,
    backward_of,
    backward_op,
    body_of,
    op,
    ops,
)

_REAL = INTEGERS + FLOATS
_LOG_2 = 0.6931471805599453
_DEGREE = 0.017453292519943295  # in radians


# ---- tests ----


def _test(
    name: str, body: Callable[[Any], Any], doc: str, dtypes: tuple[str, ...] = (), **more: Any
) -> None:
    op(
        f"{name}(Tensor self) -> Tensor",
        doc=doc,
        pointwise=lambda self: body(self),
        dtypes=dtypes,
        result="bool",
        tags=("nondifferentiable", "exact_out"),
        inplace=None,
        **more,
    )


def _never(self: Any) -> Any:
    return self != self


_test(
    "signbit",
    lambda self: _never(self) if lang.is_bool(self) else lang.signbit(self),
    "Whether the sign bit is set (also of -0.0), as bool.",
    ("bool", *_REAL),
)
_test(
    "isposinf",
    lambda self: self == lang.inf if lang.is_floating(self) else _never(self),
    "Whether self is +infinity, as bool.",
    ("bool", *_REAL),
)
_test(
    "isneginf",
    lambda self: self == -lang.inf if lang.is_floating(self) else _never(self),
    "Whether self is -infinity, as bool.",
    ("bool", *_REAL),
)
_test(
    "isreal",
    lambda self: lang.imag(self) == 0 if lang.is_complex(self) else lang.logical_or(self, True),
    "Whether the imaginary part is 0, as bool.",
    out=None,
)

# ---- angles ----

op(
    "deg2rad(Tensor self) -> Tensor",
    doc="Degrees as radians.",
    pointwise=lambda self: self * _DEGREE,
    promotion="floating",
    dtypes=FLOATS,
    grad={"self": f"grad * {_DEGREE!r}"},
)
op(
    "rad2deg(Tensor self) -> Tensor",
    doc="Radians as degrees.",
    pointwise=lambda self: self * (1.0 / _DEGREE),
    promotion="floating",
    dtypes=FLOATS,
    grad={"self": f"grad * {1.0 / _DEGREE!r}"},
)
op(
    "angle(Tensor self) -> Tensor",
    doc="The argument of a complex number; 0 or pi of a real one.",
    pointwise=lambda self: lang.angle(self),
    promotion="floating",
    result="real",
    grad={"self": "_angle_backward(grad, self)"},
    inplace=None,
)


@backward_of("_atan2_backward(Tensor grad, Tensor self, Tensor other, Tensor part) -> Tensor")
def _atan2_backward(grad: Any, self: Any, other: Any, part: Any) -> Any:
    """The gradient of atan2: `part` over the squared distance, 0 at the origin."""
    distance = self.hypot(other)
    distance = distance.masked_fill(distance == 0, 1)
    return grad * (part / distance / distance)


@backward_of("_angle_backward(Tensor grad, Tensor self) -> Tensor")
def _angle_backward(grad: Any, self: Any) -> Any:
    """The gradient of angle: i z / |z|^2; the argument of a real number is constant."""
    if not self.is_complex():
        return ops.zeros_like(grad)
    size = self.abs().square()
    step = grad / size.masked_fill(size == 0, 1)
    return ops.stack([-(ops.imag(self) * step), ops.real(self) * step], -1).view_as_complex()


@body_of(
    "sinc(Tensor self) -> Tensor",
    "pointwise",
    promotion="floating",
    grad={"self": "grad * (((self * pi).cos() - result) / self.masked_fill(self == 0, 1)).conj()"},
)
def _sinc(self: Any) -> Any:
    """sin(pi * self) / (pi * self); 1 at 0."""
    # The angle of a real number is taken of the distance to an integer, so that it stays exact.
    x = self * lang.pi
    if lang.is_complex(self):
        return lang.where(self == 0, 1.0, lang.sin(x) / x)
    whole = lang.round(self)
    sine = lang.sin((self - whole) * lang.pi)
    odd = lang.round(whole * 0.5) * 2 != whole
    return lang.where(self == 0, 1.0, lang.where(odd, -sine, sine) / x)


# ---- logarithms and roots of two ----


def _log_add(self: Any, other: Any, log_of_one_plus: Any) -> Any:
    big = lang.maximum(self, other)
    small = lang.minimum(self, other)
    same = (self == other) & (lang.abs(big) == lang.inf)  # inf - inf would be NaN
    return lang.where(same, big, big + log_of_one_plus(small - big))


@body_of(
    "logaddexp(Tensor self, Tensor other) -> Tensor",
    "pointwise",
    dtypes=FLOATS + COMPLEX,
    tags=("commutative",),
    grad={
        "self": "grad / ((other - self).exp() + 1).conj()",
        "other": "grad / ((self - other).exp() + 1).conj()",
    },
    inplace=None,
)
def _log_add_exp(self: Any, other: Any) -> Any:
    """log(exp(self) + exp(other)), without overflow."""
    if not lang.is_complex(self):
        return _log_add(self, other, lambda x: lang.log1p(lang.exp(x)))
    x, y = lang.real(self), lang.real(other)
    first = (x > y) | ((x == y) & (lang.imag(self) >= lang.imag(other)))
    big, small = lang.where(first, self, other), lang.where(first, other, self)
    none = lang.real(big) == -lang.inf  # -inf less -inf would be NaN
    total = lang.where(none, big, big + lang.log1p(lang.exp(small - big)))
    infinite = (x == lang.inf) & (y == lang.inf)
    total = lang.where(infinite, lang.log(lang.exp(self) + lang.exp(other)), total)
    p, q = lang.imag(self), lang.imag(other)
    lost = (x != x) | (y != y) | (p != p) | (q != q)
    return lang.where(lost, self * other, total)  # NaN in both parts


op(
    "logaddexp2(Tensor self, Tensor other) -> Tensor",
    doc="log2(2 ** self + 2 ** other), without overflow.",
    pointwise=lambda self, other: _log_add(
        self, other, lambda x: lang.log1p(lang.exp2(x)) * (1.0 / _LOG_2)
    ),
    dtypes=FLOATS,
    tags=("commutative",),
    grad={
        "self": "grad / ((other - self).exp2() + 1)",
        "other": "grad / ((self - other).exp2() + 1)",
    },
    inplace=None,
)
op(
    "hypot(Tensor self, Tensor other) -> Tensor",
    doc="sqrt(self ** 2 + other ** 2), without overflow.",
    pointwise=lambda self, other: lang.hypot(self, other),
    dtypes=FLOATS,
    tags=("commutative",),
    grad={"self": "grad * (self / result)", "other": "grad * (other / result)"},
)


def _x_log(self: Any, other: Any, log: Any) -> Any:
    value = lang.where(self == 0, 0.0, self * log(other))
    return lang.where(other != other, other, value)


_SELF_SLOPE = "grad * other.log().masked_fill((self == 0).logical_and(other <= 0), 0)"
op(
    "xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
    doc="self * log(other); 0 where self is 0.",
    pointwise=lambda self, other: _x_log(self, other, lang.log),
    promotion="floating",
    dtypes=FLOATS,
    grad={"self": _SELF_SLOPE, "other": "grad * self / other"},
    inplace_variants="fm",
    out="OutTensor",
)
op(
    "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor",
    doc="self * log(other) for a number `self`.",
    pointwise=lambda self, other: _x_log(self, other, lang.log),
    promotion="floating",
    dtypes=FLOATS,
    grad={"other": "grad * self / other"},
    inplace=None,
    out="OutScalar_Self",
)
op(
    "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor",
    doc="self * log(other) for a number `other`.",
    pointwise=lambda self, other: _x_log(self, other, lang.log),
    promotion="floating",
    dtypes=FLOATS,
    grad={"self": "grad * scalar_tensor(other, dtype=grad.dtype).log()"},
    inplace_variants="fm",
    out="OutScalar_Other",
)
op(
    "logit(Tensor self, float? eps=None) -> Tensor",
    doc="log(self / (1 - self)); with eps, of self held between eps and 1 - eps.",
    compose="_logit(self) if eps is None else _logit(self.clamp(0.0 + eps, 1.0 - eps))",
    out="out",
    shape="self",
    tags=("casts_out",),
)


@body_of("logit_(Tensor(a!) self, float? eps=None) -> Tensor(a!)", variants="fm")
def _logit_in_place(self: Any, eps: Any) -> Any:
    """In-place logit."""
    ops.check(
        self.is_floating_point(), "logit_: expected a floating tensor, got dtype ", self.dtype
    )
    # The gradient reads what is overwritten: a copy of it.
    return self.copy_((self.clone() if ops.grad_enabled() else self).logit(eps))


backward_op(
    "_logit(Tensor self) -> Tensor",
    doc="logit without limits.",
    pointwise=lambda self: lang.log(self / (1.0 - self)),
    promotion="floating",
    dtypes=FLOATS,
    grad={"self": "(grad / (self * (1 - self))).masked_fill(result.isnan(), nan)"},
)

# ---- the greater and the lesser beside NaN ----

for _name, _which, _wins, _formula in (
    ("fmax", "greater", ">=", lambda self, other: lang.fmax(self, other)),
    ("fmin", "lesser", "<=", lambda self, other: lang.fmin(self, other)),
):
    op(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        doc=f"The {_which} of both, element by element; NaN only where both are.",
        pointwise=_formula,
        dtypes=("bool", *_REAL),
        tags=("commutative",),
        grad={
            "self": f"where((self {_wins} other).logical_or(other.isnan()), grad, 0)",
            "other": f"where((self {_wins} other).logical_or(other.isnan()), 0, grad)",
        },
        inplace=None,
    )
op(
    "copysign.Tensor(Tensor self, Tensor other) -> Tensor",
    "copysign.Scalar(Tensor self, Scalar other) -> Tensor",
    doc=(
        "The size of self with the sign of other.",
        "The size of self with the sign of a number `other`.",
    ),
    pointwise=lambda self, other: lang.copysign(self, other),
    promotion="floating",
    dtypes=FLOATS,
    grad={
        "self": "grad * (result / self.masked_fill(self == 0, 1)).masked_fill(self == 0, 0)",
        "other": "zeros_like(grad)",
    },
    out="out",
)
op(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    doc="0 where self is negative, 1 where it is positive, values where it is 0.",
    pointwise=lambda self, values: lang.where(
        self == 0, values, lang.cast(self > 0 if not lang.is_bool(self) else self, self.dtype)
    ),
    dtypes=("bool", *_REAL),
    validate="one_dtype",
    no_gradient=("self", "values"),
    tags=("exact_out",),
)


def _finite(self: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    if lang.is_complex(self):
        numbers = [lang.real(number) for number in (nan, posinf, neginf)]
        return lang.Complex(_finite(lang.real(self), *numbers), _finite(lang.imag(self), *numbers))
    value = lang.where(self == lang.inf, posinf, lang.where(self == -lang.inf, neginf, self))
    return lang.where(self != self, nan, value)


@body_of(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    out="out",
    shape="self",
)
def _nan_to_num(self: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    """self with `nan` (or 0) for NaN, and numbers (or the limits of the dtype) for infinities."""
    if not self.is_floating_point() and not self.is_complex():
        return self.clone()
    return ops._nan_to_num(
        self,
        0.0 if nan is None else nan,
        ops._greatest(self.dtype) if posinf is None else posinf,
        -ops._greatest(self.dtype) if neginf is None else neginf,
    )


op(
    "nan_to_num_(Tensor(a!) self, float? nan=None, float? posinf=None, float? neginf=None)"
    " -> Tensor(a!)",
    doc="In-place nan_to_num.",
    compose="self.copy_((self.clone() if ops.grad_enabled() else self)"
    ".nan_to_num(nan, posinf, neginf))",
    variants="fm",
)
backward_op(
    "_nan_to_num(Tensor self, float nan, float posinf, float neginf) -> Tensor",
    doc="nan_to_num with every number given.",
    pointwise=_finite,
    dtypes=FLOATS + COMPLEX,
    grad={"self": "grad * self.isfinite()"},
)


@backward_of("_greatest(ScalarType dtype) -> float")
def _greatest(dtype: Any) -> Any:
    """The greatest finite number of a floating dtype."""
    if dtype == ops.float16:
        return 65504.0
    if dtype == ops.bfloat16:
        return 3.3895313892515355e38
    if dtype == ops.float64 or dtype == ops.complex128:
        return 1.7976931348623157e308
    return 3.4028234663852886e38


# ---- powers of two, powers in float64 ----


backward_op(
    "_scales(Tensor self, Tensor other) -> bool",
    doc="Whether self * 2 ** other keeps the dtype of self: floating, by whole numbers.",
    compose="self.is_floating_point() and not other.is_floating_point() "
    "and not other.is_complex() and other.dtype != bool",
)


@backward_of(
    "_scaled(Tensor self, Tensor other) -> Tensor",
    "pointwise",
    int_inputs=("other",),
    dtypes=FLOATS,
    grad={"self": "_scaled(grad, other)"},
)
def _scaled(self: Any, other: Any) -> Any:
    """self * 2 ** other by moving the exponent, for whole numbers."""
    # In float64, whose range is left in steps, so that one rounding is all there is.
    wide, n = lang.cast(self, "float64"), lang.cast(other, "float64")
    for step in (-969.0, -969.0, 1023.0, 1023.0):  # a subnormal result is rounded by the last step
        beyond = n < -1022.0 if step < 0 else n > 1023.0
        wide = lang.where(beyond, wide * 2.0**step, wide)
        n = lang.where(beyond, n - step, n)
    return lang.cast(wide * lang.exp2(lang.minimum(lang.maximum(n, -1022.0), 1023.0)), self.dtype)


@body_of("ldexp.Tensor(Tensor self, Tensor other) -> Tensor", out="out", tags=("casts_out",))
def _ldexp(self: Any, other: Any) -> Any:
    """self * 2 ** other; floats by whole numbers keep their dtype, and powers beyond it count."""
    return ops._scaled(self, other) if ops._scales(self, other) else self * ops.pow(2.0, other)


@body_of("ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)", variants="fm")
def _ldexp_in_place(self: Any, other: Any) -> Any:
    """In-place ldexp."""
    if ops._scales(self, other):
        return self.copy_(ops._scaled(self, other))
    return self.mul_(ops.pow(2.0, other))


@body_of(
    "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    out="Tensor_Tensor_out",
    tags=("exact_out",),
)
def _wide_power(self: Any, exponent: Any) -> Any:
    """self ** exponent in float64 (complex128)."""
    if self.is_complex() or exponent.is_complex():
        return self.to(ops.complex128).pow(exponent.to(ops.complex128))
    return self.to(ops.float64).pow(exponent.to(ops.float64))


op(
    "float_power.Scalar(Scalar self, Tensor exponent) -> Tensor",
    doc="self ** exponent in float64 (complex128) for a number `self`.",
    compose="pow(self, exponent.to(complex128 if exponent.is_complex() or self.dtype.is_complex() "
    "else float64))",
    out="Scalar_out",
    tags=("exact_out",),
)
op(
    "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    doc="self ** exponent in float64 (complex128) for a number `exponent`.",
    compose="self.to(complex128 if self.is_complex() or exponent.dtype.is_complex() "
    "else float64).pow(exponent)",
    out="Tensor_Scalar_out",
    tags=("exact_out",),
)

# ---- shifts ----


def _shift_left(self: Any, other: Any) -> Any:
    far = (other < 0) | (other >= self.dtype.bits)
    return lang.where(far, 0, self << lang.where(far, 0, other))


def _shift_right(self: Any, other: Any) -> Any:
    far = (other < 0) | (other >= self.dtype.bits)
    if self.dtype.kind == "uint":
        return lang.where(far, 0, self >> lang.where(far, 0, other))
    return self >> lang.where(far, self.dtype.bits - 1, other)


def _shift(name: str, body: Callable[[Any, Any], Any], doc: str) -> None:
    def bits(self: Any, other: Any) -> Any:
        first, second = lang.unify(self, other)
        return body(first, second)

    for overload, self_type, other_type in (
        ("Tensor", "Tensor", "Tensor"),
        ("Tensor_Scalar", "Tensor", "Scalar"),
        ("Scalar_Tensor", "Scalar", "Tensor"),
    ):
        op(
            f"bitwise_{name}_shift.{overload}({self_type} self, {other_type} other) -> Tensor",
            doc=doc,
            pointwise=lambda self, other: bits(self, other),
            dtypes=INTEGERS,
            tags=("nondifferentiable",),
            inplace=None if self_type == "Scalar" else AUTO,
        )


_shift("left", _shift_left, "self * 2 ** other by moving bits; 0 where all of them leave.")
_shift("right", _shift_right, "self // 2 ** other by moving bits.")
