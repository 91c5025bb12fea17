"""Special functions: gamma, its derivatives and its parts, the inverse of erf, Bessel functions."""

from __future__ import annotations

from typing import Any

from weft._kernels import lang
from weft._ops.table import FLOATS, body_of, op, ops


def _function(name: str, body: Any, gradient: str, doc: str, inplace: str = "") -> None:
    """A function of floating numbers; inplace: where Python sees the form that writes, "" none."""
    op(
        f"{name}(Tensor self) -> Tensor",
        doc=doc,
        pointwise=lambda self: body(self),
        promotion="floating",
        dtypes=FLOATS,
        grad={"self": gradient},
        variants=None if inplace else "",
        inplace="" if inplace else None,
        inplace_variants=inplace,
    )


def _native(schema: str, gradient: str, doc: str, variants: str | None = "") -> None:
    """A function of floating numbers that is written by hand."""
    op(
        schema,
        doc=doc,
        grad={"self": gradient},
        variants=variants,
        out="out",
        shape="self",
        tags=("casts_out",),
    )


_function(
    "lgamma",
    lang.lgamma,
    "grad * self.digamma()",
    "The logarithm of the absolute value of gamma.",
    inplace="m",
)
_function(
    "digamma", lang.digamma, "grad * polygamma(1, self)", "The derivative of lgamma.", inplace="m"
)
_native(
    "polygamma(int n, Tensor self) -> Tensor",
    "grad * polygamma(n + 1, self)",
    "The n-th derivative of digamma.",
    variants="fm",
)
_function(
    "erfinv",
    lang.erfinv,
    "grad * (result * result).exp() * 0.886226925452758",
    "x with erf(x) = self.",
    inplace="m",
)


@body_of("mvlgamma(Tensor self, int p) -> Tensor", out="out", tags=("casts_out",))
def _mvlgamma(self: Any, p: Any) -> Any:
    """The logarithm of the multivariate gamma function of dimension p."""
    ops.check(p >= 1, "mvlgamma: expected p >= 1, got ", p)
    ops.check_implemented(
        self.dtype != ops.bool and not self.is_complex(),
        "mvlgamma: expected a tensor of real numbers, got dtype ", self.dtype,
    )  # fmt: skip
    x = self if self.is_floating_point() else self.to(ops.default_dtype())
    steps = ops.arange(p, dtype=x.dtype, device=x.device) * 0.5
    quarter_log_pi = 0.28618247146235004
    return (x.unsqueeze(-1) - steps).lgamma().sum([-1]) + float(p * (p - 1)) * quarter_log_pi


_function(
    "i0",
    lang.bessel_i0,
    "grad * special_i1(self)",
    "The modified Bessel function of the first kind, of order 0.",
    inplace="fm",
)
_function(
    "special_i1",
    lang.bessel_i1,
    "grad * where(self == 0, 0.5, self.i0() - result / self.masked_fill(self == 0, 1))",
    "The modified Bessel function of the first kind, of order 1.",
)
_function(
    "special_i0e",
    lang.bessel_i0e,
    "grad * (special_i1e(self) - self.sgn() * result)",
    "i0 times exp(-|self|).",
)
_function(
    "special_i1e",
    lang.bessel_i1e,
    "grad * where(self == 0, 0.5, special_i0e(self) - result * (self.sgn() + "
    "self.masked_fill(self == 0, 1).reciprocal()))",
    "i1 times exp(-|self|).",
)
_native(
    "special_erfcx(Tensor self) -> Tensor",
    "grad * (2.0 * self * result - 1.1283791670955126)",
    "exp(self**2) * erfc(self), which neither overflows nor underflows for large self.",
)
op(
    "special_ndtr(Tensor self) -> Tensor",
    doc="The distribution function of the standard normal: erfc(-self / sqrt(2)) / 2.",
    compose="(self * -0.7071067811865476).erfc() * 0.5",
    out="out",
    tags=("casts_out",),
)
_native(
    "special_log_ndtr(Tensor self) -> Tensor",
    "grad / special_erfcx(self * -0.7071067811865476) * 0.7978845608028654",
    "The logarithm of ndtr, exact where ndtr itself underflows.",
)
_native(
    "special_ndtri(Tensor self) -> Tensor",
    "grad * 2.5066282746310002 * (result * result * 0.5).exp()",
    "x with ndtr(x) = self.",
)


@body_of(
    "special_entr(Tensor self) -> Tensor",
    "pointwise",
    promotion="floating",
    dtypes=FLOATS,
    grad={"self": "grad * (-self.log() - 1)"},
    inplace=None,
)
def _entr(self: Any) -> Any:
    """-self * log(self); 0 at 0 and -inf below."""
    size = lang.where(self > 0, self, 1.0)
    below = lang.where(self == 0, 0.0, lang.where(self < 0, -float("inf"), self))
    return lang.where(self > 0, -size * lang.log(size), below)


_SLOPE = "grad * other.log1p().masked_fill((self == 0).logical_and(other <= -1), 0)"


@body_of(
    "special_xlog1py(Tensor self, Tensor other) -> Tensor",
    "pointwise",
    promotion="floating",
    dtypes=FLOATS,
    grad={"self": _SLOPE, "other": "grad * self / (other + 1)"},
    inplace=None,
)
def _x_log1p(self: Any, other: Any) -> Any:
    """self * log1p(other); 0 where self is 0."""
    # 0 wherever self is 0, but NaN of a NaN.
    zero = (self == 0) & (other == other)
    return lang.where(zero, 0.0, self * lang.log1p(lang.where(zero, 0.0, other)))


op(
    "special_zeta(Tensor self, Tensor other) -> Tensor",
    doc="Hurwitz's zeta: the sum of (other + k) ** -self over k = 0, 1, ...",
    no_gradient=("self",),
    grad={"other": "grad * -self * special_zeta(self + 1, other)"},
    tags=("casts_out",),
    shape="broadcast(self, other)",
)
op(
    "_special_bessel(Tensor self, str kind) -> Tensor",
    doc="A Bessel function by its name in weft.special: bessel_j0, modified_bessel_k1, ...",
    tags=("nondifferentiable",),
    shape="self",
)
op(
    "_special_polynomial(Tensor x, Tensor n, str kind) -> Tensor",
    doc="The orthogonal polynomial of degree n by its name in weft.special, at x.",
    tags=("nondifferentiable",),
    shape="broadcast(x, n)",
)

# ---- incomplete gamma functions, and derivatives of samples ----


@body_of("_no_derivative(Tensor grad, str op, str name) -> Tensor")
def _no_derivative(grad: Any, op: Any, name: Any) -> Any:
    """Raises NotImplementedError: stands in formulas for the derivative that nobody wrote."""
    ops.check_implemented(
        False, op, ": expected no gradient for ", name, ", got one that requires it"
    )
    return grad


_DENSITY = "grad * ((self - 1) * other.log() - other - lgamma(self)).exp()"
for _name, _sign, _doc in (
    ("igamma", "", "The regularised lower incomplete gamma function of self at other."),
    ("igammac", "-", "The regularised upper one: 1 - igamma, without cancellation."),
):
    op(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        doc=_doc,
        grad={"self": f"_no_derivative(grad, '{_name}', 'self')", "other": f"{_sign}({_DENSITY})"},
        tags=("casts_out",),
        out="out",
        shape="broadcast(self, other)",
    )
op(
    "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
    doc="The derivative of samples of gamma distributions of rate 1 for their concentrations self.",
    grad={
        name: f"_no_derivative(grad, '_standard_gamma_grad', '{name}')"
        for name in ("self", "output")
    },
    shape="broadcast(self, output)",
)
op(
    "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
    doc="The derivative of samples x of the distributions Beta(alpha, total - alpha) for alpha, "
    "over 1 - x.",
    grad={
        name: f"_no_derivative(grad, '_dirichlet_grad', '{name}')"
        for name in ("x", "alpha", "total")
    },
    shape="broadcast(x, alpha)",
)

# ---- numbers as they are stored ----

op(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    doc="The next floating number after self in the direction of other.",
    grad={"self": "grad.masked_fill(self == other, 0)", "other": "grad * 0"},
    tags=("depends_on_dtype", "casts_out"),
    out="out",
    shape="broadcast(self, other)",
)
op(
    "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    doc="mantissa in [0.5, 1) and int32 exponent with self = mantissa * 2**exponent.",
    grad={"self": "grad.ldexp(-result1)"},
    out="Tensor_out",
    shape="self",
)
op(
    "gcd(Tensor self, Tensor other) -> Tensor",
    "lcm(Tensor self, Tensor other) -> Tensor",
    doc=("The greatest common divisor, at least 0.", "The least common multiple, at least 0."),
    tags=("nondifferentiable", "casts_out"),
    out=True,
    shape="broadcast(self, other)",
)
for _name in ("nextafter", "gcd", "lcm"):
    op(
        f"{_name}_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        doc=f"In-place {_name}.",
        compose=f"self.copy_(self.clone().{_name}(other))",  # which backward may need
        variants="m" if _name == "nextafter" else "fm",
    )
