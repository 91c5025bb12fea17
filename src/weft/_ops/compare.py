"""Comparisons, logic, bits, and the tests for special numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from weft._kernels import lang
from weft._ops.table import INTEGERS, body_of, op, ops

_ORDERED = ("bool", *INTEGERS, "float32", "float64")
_ANY = (*_ORDERED, "complex64", "complex128")


def _comparison(
    name: str, body: Callable[[Any, Any], Any], sign: str, dtypes: tuple[str, ...]
) -> None:
    for overload, other in (("Scalar", "Scalar"), ("Tensor", "Tensor")):
        op(
            f"{name}.{overload}(Tensor self, {other} other) -> Tensor",
            doc=f"Whether self {sign} other, element by element, as bool.",
            pointwise=lambda self, other: body(self, other),
            result="bool",
            dtypes=dtypes,
            tags=("nondifferentiable",),
        )


_comparison("eq", operator.eq, "==", _ANY)
_comparison("ne", operator.ne, "!=", _ANY)
_comparison("lt", operator.lt, "<", _ORDERED)
_comparison("le", operator.le, "<=", _ORDERED)
_comparison("gt", operator.gt, ">", _ORDERED)
_comparison("ge", operator.ge, ">=", _ORDERED)


def _logical(name: str, body: Callable[[Any, Any], Any]) -> None:
    op(
        f"logical_{name}(Tensor self, Tensor other) -> Tensor",
        doc=f"self {name} other as truth values: numbers other than 0 hold.",
        pointwise=lambda self, other: body(self, other),
        result="bool",
        tags=("nondifferentiable", "commutative"),
    )


_logical("and", lang.logical_and)
_logical("or", lang.logical_or)
_logical("xor", lang.logical_xor)
op(
    "logical_not(Tensor self) -> Tensor",
    doc="Whether self is 0.",
    pointwise=lambda self: lang.logical_not(self),
    result="bool",
    tags=("nondifferentiable",),
    inplace_variants="m",
)


def _bitwise(name: str, body: Callable[[Any, Any], Any]) -> None:
    for other in ("Tensor", "Scalar"):
        more = ("number_first",) if other == "Tensor" else ()
        op(
            f"bitwise_{name}.{other}(Tensor self, {other} other) -> Tensor",
            doc=f"The bitwise {name} of integers; logical {name} of bools.",
            pointwise=lambda self, other: body(self, other),
            dtypes=("bool", *INTEGERS),
            tags=("nondifferentiable", "commutative", "bitwise", *more),
        )


_bitwise("and", operator.and_)
_bitwise("or", operator.or_)
_bitwise("xor", operator.xor)
op(
    "bitwise_not(Tensor self) -> Tensor",
    doc="All bits inverted; the logical not of bools.",
    pointwise=lambda self: ~self,
    dtypes=("bool", *INTEGERS),
    tags=("nondifferentiable", "bitwise", "exact_out"),
    inplace_variants="m",
)


def _test(name: str, body: Callable[[Any], Any], what: str) -> None:
    op(
        f"{name}(Tensor self) -> Tensor",
        doc=f"Whether self is {what}, as bool.",
        pointwise=lambda self: body(self),
        result="bool",
        tags=("nondifferentiable",),
        inplace=None,
        out=None,
    )


_test("isnan", lang.isnan, "not a number")
_test("isinf", lang.isinf, "infinite")
_test("isfinite", lang.isfinite, "neither infinite nor NaN")


@body_of(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
    "bool equal_nan=False) -> Tensor",
    tags=("nondifferentiable",),
)
def _isclose(self: Any, other: Any, rtol: Any, atol: Any, equal_nan: Any) -> Any:
    """Whether |self - other| <= atol + rtol * |other|, element by element, as bool."""
    ops.check(
        self.dtype == other.dtype,
        "isclose: expected operands of one dtype, got ", self.dtype, " and ", other.dtype,
    )  # fmt: skip
    ops.check(
        rtol >= 0.0 and atol >= 0.0,
        "isclose: expected rtol and atol of at least 0, got ", rtol, " and ", atol,
    )  # fmt: skip
    close = self == other
    if equal_nan:
        close = close.logical_or(self.isnan().logical_and(other.isnan()))
    if rtol == 0.0 and atol == 0.0:
        return close
    exact = not other.is_floating_point() and not other.is_complex()
    left = self.to(ops.default_dtype()) if exact else self
    numbers = other.to(ops.default_dtype()) if exact else other
    allowed = (numbers * rtol).abs() + atol
    distance = (left - numbers).abs()
    near = distance.isfinite().logical_and(distance <= allowed)
    return close.logical_or(near)


op(
    "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
    "bool equal_nan=False) -> bool",
    doc="Whether isclose holds for all elements.",
    compose="bool(isclose(self, other, rtol, atol, equal_nan).all())",
    tags=("nondifferentiable",),
)
op(
    "equal(Tensor self, Tensor other) -> bool",
    doc="Whether both have the same shape and the same elements.",
    tags=("nondifferentiable",),
)
