"""Functions of one number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft._kernels import lang
from weft._ops.table import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    backward_of,
    backward_op,
    body_of,
    op,
    ops,
)

_REAL = INTEGERS + FLOATS


def _function(
    name: str,
    body: Callable[[Any], Any],
    gradient: str,
    doc: str,
    dtypes: tuple[str, ...] = FLOATS + COMPLEX,
) -> None:
    """A function of floating numbers; integers become the default float first."""
    op(
        f"{name}(Tensor self) -> Tensor",
        doc=doc,
        pointwise=lambda self: body(self),
        promotion="floating",
        dtypes=dtypes,
        grad={"self": gradient},
    )


def _real_function(name: str, body: Callable[[Any], Any], gradient: str, doc: str) -> None:
    """One that has no complex form."""
    _function(name, body, gradient, doc, FLOATS)


# ---- sign and rounding ----

op(
    "neg(Tensor self) -> Tensor",
    doc="The negative: -self.",
    pointwise=lambda self: -self,
    dtypes=NUMBERS,
    grad={"self": "-grad"},
    tags=("cheap", "exact_out", "any_integers"),
)


@body_of("positive(Tensor(a) self) -> Tensor(a)", shape="self")
def _positive(self: Any) -> Any:
    """+self: the tensor itself."""
    ops.check(self.dtype != ops.bool, "positive: expected a numeric dtype, got bool")
    return self


op(
    "abs(Tensor self) -> Tensor",
    doc="The absolute value; the modulus of a complex number.",
    pointwise=lambda self: lang.abs(self),
    dtypes=NUMBERS,
    result="real",
    grad={"self": "grad * self.sgn()"},
    tags=("cheap", "exact_out"),
)
op(
    "sign(Tensor self) -> Tensor",
    doc="The sign: -1, 0 or 1.",
    pointwise=lambda self: lang.sign(self),
    dtypes=("bool", *_REAL),
    grad={"self": "zeros_like(grad)"},
    inplace_variants="m",
    tags=("exact_out",),
)


op(
    "sgn(Tensor self) -> Tensor",
    doc="The sign: -1, 0 or 1; of a complex number z / |z|.",
    pointwise=lambda self: lang.sign(self),
    grad={"self": "_sgn_backward(grad, self, result)"},
    inplace_variants="m",
    tags=("exact_out",),
)


@backward_of("_sgn_backward(Tensor grad, Tensor self, Tensor result) -> Tensor")
def _sgn_backward(grad: Any, self: Any, result: Any) -> Any:
    """The gradient of sgn."""
    # Of a complex number the direction alone moves it; the sign of a real one is constant.
    if not self.is_complex():
        return ops.zeros_like(grad)
    size = self.abs()
    zero = size == 0
    along = result * ops.real(grad * result.conj())
    return ((grad - along) / size.masked_fill(zero, 1)).masked_fill(zero, 0)


def _rounding(name: str, body: Callable[[Any], Any], doc: str) -> None:
    op(
        f"{name}(Tensor self) -> Tensor",
        doc=doc,
        pointwise=lambda self: body(self),
        dtypes=_REAL,
        grad={"self": "zeros_like(grad)"},
        tags=("exact_out",),
    )


_rounding("floor", lang.floor, "The greatest integer not above self.")
_rounding("ceil", lang.ceil, "The least integer not below self.")
_rounding("round", lang.round, "The nearest integer, the even one of two.")
_rounding("trunc", lang.trunc, "self rounded toward 0.")


@body_of(
    "round.decimals(Tensor self, *, int decimals) -> Tensor",
    "pointwise",
    dtypes=FLOATS,
    grad={"self": "zeros_like(grad)"},
    inplace_variants="fm",
    tags=("exact_out",),
)
def _round_decimals(self: Any, decimals: Any) -> Any:
    """self rounded to a number of decimals; negative ones round to tens, hundreds and so on."""
    # To a power of ten; moving the point by a power that is exact errs least.
    power = lang.pow(10.0, lang.cast(lang.abs(decimals), self.dtype))
    return lang.where(
        decimals < 0, lang.round(self / power) * power, lang.round(self * power) / power
    )


op(
    "frac(Tensor self) -> Tensor",
    doc="The fraction of self, with its sign.",
    pointwise=lambda self: self - lang.trunc(self),
    dtypes=FLOATS,
    grad={"self": "grad"},
    tags=("exact_out",),
)

# ---- powers ----

op(
    "square(Tensor self) -> Tensor",
    doc="self ** 2; of bools as int64.",
    compose="self.pow(2)",
    grad={"self": "grad * (self.conj() * 2)"},
    out="out",
    tags=("casts_out",),
)
op(
    "square_(Tensor(a!) self) -> Tensor(a!)",
    doc="In-place square.",
    compose="self.pow_(2)",
    variants="fm",
)
_function("sqrt", lang.sqrt, "grad / (result.conj() * 2)", "The square root.")
_function("rsqrt", lang.rsqrt, "grad * (result.pow(3) * -0.5).conj()", "1 / sqrt(self).")
_function("reciprocal", lang.reciprocal, "-grad * (result * result).conj()", "1 / self.")

# ---- exponentials and logarithms ----

_function("exp", lang.exp, "grad * result.conj()", "e to the power of self.")
_function(
    "exp2", lang.exp2, "grad * (result.conj() * 0.6931471805599453)", "2 to the power of self."
)
_function("expm1", lang.expm1, "grad * (result.conj() + 1)", "exp(self) - 1, exact near 0.")
_function("log", lang.log, "grad / self.conj()", "The natural logarithm.")
_function(
    "log2", lang.log2, "grad / (self.conj() * 0.6931471805599453)", "The logarithm to base 2."
)
_function(
    "log10", lang.log10, "grad / (self.conj() * 2.302585092994046)", "The logarithm to base 10."
)
_function("log1p", lang.log1p, "grad / (self + 1).conj()", "log(1 + self), exact near 0.")

# ---- angles ----

_function("sin", lang.sin, "grad * self.cos().conj()", "The sine; radians.")
_function("cos", lang.cos, "grad * -self.sin().conj()", "The cosine; radians.")
_function("tan", lang.tan, "grad * (result.square() + 1).conj()", "The tangent; radians.")
_function("asin", lang.asin, "grad * (1 - self.square()).rsqrt().conj()", "The inverse of sin.")
_function("acos", lang.acos, "grad * -(1 - self.square()).rsqrt().conj()", "The inverse of cos.")
_function("atan", lang.atan, "grad / (self.square() + 1).conj()", "The inverse of tan.")
_function("sinh", lang.sinh, "grad * self.cosh().conj()", "The hyperbolic sine.")
_function("cosh", lang.cosh, "grad * self.sinh().conj()", "The hyperbolic cosine.")
_function("asinh", lang.asinh, "grad * (self.square() + 1).rsqrt().conj()", "The inverse of sinh.")
_function(
    "acosh",
    lang.acosh,
    "grad * ((self - 1).rsqrt() * (self + 1).rsqrt()).conj() if self.is_complex() "
    "else grad * (self.square() - 1).rsqrt()",
    "The inverse of cosh.",
)
_function("atanh", lang.atanh, "grad / (1 - self.square()).conj()", "The inverse of tanh.")
op(
    "atan2(Tensor self, Tensor other) -> Tensor",
    doc="The angle of the point (other, self), between -pi and pi.",
    pointwise=lambda self, other: lang.atan2(self, other),
    promotion="floating",
    dtypes=FLOATS,
    grad={
        "self": "_atan2_backward(grad, self, other, other)",
        "other": "_atan2_backward(grad, self, other, -self)",
    },
)
_function("tanh", lang.tanh, "tanh_backward(grad, result)", "The hyperbolic tangent.")
backward_op(
    "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
    doc="grad_output * (1 - output ** 2).",
    pointwise=lambda grad_output, output: grad_output * lang.conj(1 - output * output),
    dtypes=FLOATS + COMPLEX,
    grad={
        "grad_output": "tanh_backward(grad, output.conj())",
        "output": "grad.conj() * grad_output * (output.conj() * -2)",
    },
)

# ---- error function, sigmoid ----

_real_function(
    "erf",
    lang.erf,
    "grad * (self.square().neg().exp() * 1.1283791670955126)",
    "The error function.",
)
_real_function(
    "erfc", lang.erfc, "grad * (self.square().neg().exp() * -1.1283791670955126)", "1 - erf(self)."
)
_function("sigmoid", lang.sigmoid, "sigmoid_backward(grad, result)", "1 / (1 + exp(-self)).")
backward_op(
    "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    doc="grad_output * output * (1 - output).",
    pointwise=lambda grad_output, output: grad_output * lang.conj((1 - output) * output),
    dtypes=FLOATS + COMPLEX,
    grad={
        "grad_output": "sigmoid_backward(grad, output.conj())",
        "output": "grad.conj() * grad_output * (1 - output.conj() * 2)",
    },
)

# ---- complex numbers ----

op(
    "conj_physical(Tensor self) -> Tensor",
    doc="The complex conjugate.",
    pointwise=lambda self: lang.conj(self),
    grad={"self": "grad.conj()"},
    tags=("exact_out",),
)
op(
    "conj(Tensor(a) self) -> Tensor(a)",
    doc="The complex conjugate; a real tensor itself.",
    compose="self.conj_physical() if self.is_complex() else self",
    shape="self",
)
op(
    "real(Tensor(a) self) -> Tensor(a)",
    doc="The real part, a view; a real tensor itself.",
    compose="view_as_real(self).select(-1, 0) if self.is_complex() else self",
    shape="self",
)
