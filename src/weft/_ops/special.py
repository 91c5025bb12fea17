"""Special functions: gamma and its derivatives, the inverse of erf, Bessel functions."""

from __future__ import annotations

from typing import Any

from weft._kernels.lang import call
from weft._ops.table import FLOATS, op, ops

op(
    "lgamma(Tensor self) -> Tensor",
    doc="The logarithm of the absolute value of gamma.",
    pointwise=lambda self: call("lgamma", self),
    promotion="floating",
    dtypes=FLOATS,
    grad={"self": "grad * self.digamma()"},
    inplace_variants="m",
)
op(
    "digamma(Tensor self) -> Tensor",
    doc="The derivative of lgamma.",
    native="digamma",
    grad={"self": "grad * polygamma(1, self)"},
)
op(
    "polygamma(int n, Tensor self) -> Tensor",
    doc="The n-th derivative of digamma.",
    native="polygamma",
    variants="fm",
    grad={"self": "grad * polygamma(n + 1, self)"},
)
op(
    "erfinv(Tensor self) -> Tensor",
    doc="x with erf(x) = self.",
    native="erfinv",
    grad={"self": "grad * (result * result).exp() * 0.886226925452758"},
)


def _erfinv_in_place(self: Any) -> Any:
    ops.check(
        self.is_floating_point(), "erfinv_: expected a floating tensor, got dtype ", self.dtype
    )
    return self.copy_(self.erfinv())


op(
    "erfinv_(Tensor(a!) self) -> Tensor(a!)",
    doc="In-place erfinv.",
    compose=_erfinv_in_place,
)
op(
    "i0(Tensor self) -> Tensor",
    doc="The modified Bessel function of the first kind, of order 0.",
    native="i0",
    grad={"self": "grad * special_i1(self)"},
)
op(
    "special_i1(Tensor self) -> Tensor",
    doc="The modified Bessel function of the first kind, of order 1.",
    native="special_i1",
    grad={
        "self": "grad * where(self == 0, 0.5, self.i0() - result / self.masked_fill(self == 0, 1))"
    },
    variants="",
)
