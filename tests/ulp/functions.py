"""The one table of bounds: every elementary function, where it is measured, how far it may err.

docs/kernels.md shows the bounds; ``test_ulp.py`` holds both to each other and weft to the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mpmath import mp

from . import exact

INF, NAN = math.inf, math.nan
_HALF_PI = math.pi / 2


@dataclass(frozen=True)
class Span:
    """Arguments evenly in [low, high]."""

    low: float
    high: float


@dataclass(frozen=True)
class Sizes:
    """Arguments evenly over the exponents of [low, high], of one or both signs."""

    low: float
    high: float
    signed: bool = True


TINY, HUGE = 0.0, INF  # the least and the greatest number of the dtype, as ends of Sizes
ALL = Sizes(TINY, HUGE)
POSITIVE = Sizes(TINY, HUGE, signed=False)
Range = Span | Sizes


@dataclass(frozen=True)
class Function:
    """An elementary function of weft.

    - call: its name under `weft`; keyword arguments in `options`
    - exact: the same in mpmath
    - bounds: in units of the last place, for float32 and float64
    - ranges: of unary functions pieces of the domain, of binary ones a pair (x, y) each
    - limits: the values at 0, -0, inf, -inf (of binary functions: tested elsewhere)
    - outside: arguments the answer of which is NaN
    - near: points whose neighbours are tested as well: poles, zeros, overflow
    - unit: whose last place is meant: the "result"'s, or that of the greater one of the result and
      the "argument" or "one", where values of that size cancel, or the argument "times tiny", the
      least normal number, where a factor underflows before the result does
    """

    call: str
    exact: Callable[..., Any]
    bounds: tuple[float, float]
    ranges: tuple[Any, ...]
    limits: tuple[float, float, float, float] | None = None
    outside: tuple[float, ...] = ()
    near: tuple[float, ...] = ()
    unit: str = "result"
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def binary(self) -> bool:
        return isinstance(self.ranges[0], tuple)


_F = Function
_TURNS = tuple(k * _HALF_PI for k in (1, 2, 3, 4, 5, 11, 1000, 65536, 1e6))
_UNIT = Sizes(TINY, 1)
_NN = "nn.functional."

#: by the key of the table's row, or the name where it is no row
FUNCTIONS: dict[str, Function] = {
    # exponentials and logarithms
    "exp": _F("exp", mp.exp, (1.25, 1.0), (ALL, Span(-104, 89), Span(-746, 710), Span(-2, 2)),
        (1, 1, INF, 0), near=(88.72284, 709.7827128933841, -103.97, -745.13, -87.33, -708.39)),
    "exp2": _F("exp2", lambda x: mp.power(2, x), (1.25, 1.25), (ALL, Span(-150, 128), Span(-1076, 1024)),
        (1, 1, INF, 0), near=(128, 1024, -149, -150, -1074, -1075, -126, -1022)),
    "expm1": _F("expm1", mp.expm1, (1.5, 1.75), (ALL, Span(-20, 88), Span(-40, 709), Span(-2, 2)),
        (0, -0.0, INF, -1), near=(88.72284, 709.7827, -17.33, -37.43)),
    "log": _F("log", mp.log, (1.25, 1.0), (POSITIVE, Span(0.5, 2)), (-INF, -INF, INF, NAN), (-1, -1e-40), near=(1,)),
    "log2": _F("log2", lambda x: mp.log(x, 2), (0.51, 1.0), (POSITIVE, Span(0.5, 2)), (-INF, -INF, INF, NAN), (-1,),
        near=(1, 8, 2.0**-100)),
    "log10": _F("log10", mp.log10, (0.51, 1.0), (POSITIVE, Span(0.5, 2)), (-INF, -INF, INF, NAN), (-1,),
        near=(1, 1000, 1e10)),
    "log1p": _F("log1p", mp.log1p, (1.5, 1.5), (POSITIVE, Sizes(TINY, 0.999), Span(-0.999, 3)), (0, -0.0, INF, NAN),
        (-2, -1.0000001), near=(-0.99999994, -0.5, 1)),
    # powers
    "sqrt": _F("sqrt", mp.sqrt, (0.5, 0.5), (POSITIVE,), (0, -0.0, INF, NAN), (-1, -1e-40), near=(1, 4)),
    "rsqrt": _F("rsqrt", lambda x: 1 / mp.sqrt(x), (1.5, 1.5), (POSITIVE,), (INF, -INF, 0, NAN), (-1, -1e-40), near=(1, 4)),
    "reciprocal": _F("reciprocal", lambda x: 1 / x, (0.5, 0.5), (ALL,), (INF, -INF, 0, -0.0), near=(1, 3)),
    "square": _F("square", lambda x: x * x, (0.5, 0.5), (ALL,), (0, 0, INF, INF)),
    "pow.Tensor_Tensor": _F("pow", mp.power, (0.52, 1.0),
        ((Sizes(1e-3, 1e3, False), Span(-12, 12)), (POSITIVE, Span(-1, 1)), (Span(0.9, 1.1), Span(-800, 800)))),
    "pow.Tensor_Scalar": _F("pow", lambda x: x**3, (1.5, 1.5), (Sizes(1e-12, 1e12), Sizes(1e-100, 1e100)), None,
        options=(("exponent", 3),)),
    "hypot": _F("hypot", mp.hypot, (0.51, 1.0), ((ALL, ALL), (Span(-3, 3), Span(-3, 3)))),
    # trigonometric and hyperbolic functions
    "sin": _F("sin", mp.sin, (1.6, 1.0), (ALL, Span(-10, 10), Sizes(1, 1e7)), (0, -0.0, NAN, NAN), near=_TURNS),
    "cos": _F("cos", mp.cos, (1.6, 1.0), (ALL, Span(-10, 10), Sizes(1, 1e7)), (1, 1, NAN, NAN), near=_TURNS),
    "tan": _F("tan", mp.tan, (1.0, 2.5), (ALL, Span(-10, 10), Sizes(1, 1e7)), (0, -0.0, NAN, NAN), near=_TURNS),
    "asin": _F("asin", mp.asin, (2.5, 2.5), (_UNIT, Span(-1, 1)), (0, -0.0, NAN, NAN), (2, -1.0000001), near=(0.5, -0.5)),
    "acos": _F("acos", mp.acos, (1.5, 1.5), (_UNIT, Span(-1, 1)), (_HALF_PI, _HALF_PI, NAN, NAN), (2, -1.0000001),
        near=(0.5, -0.5)),
    "atan": _F("atan", mp.atan, (2.0, 2.0), (ALL, Span(-3, 3)), (0, -0.0, _HALF_PI, -_HALF_PI), near=(1, 0.4375, 2.4375)),
    "atan2": _F("atan2", mp.atan2, (0.51, 2.25), ((Sizes(1e-9, 1e9), Sizes(1e-9, 1e9)), (Span(-2, 2), Span(-2, 2)))),
    "sinh": _F("sinh", mp.sinh, (0.51, 2.25), (ALL, Span(-89, 89), Span(-710, 710), Span(-2, 2)), (0, -0.0, INF, -INF),
        near=(89.415985, 710.4758600739439)),
    "cosh": _F("cosh", mp.cosh, (0.51, 1.5), (ALL, Span(-89, 89), Span(-710, 710)), (1, 1, INF, INF),
        near=(89.415985, 710.4758600739439)),
    "tanh": _F("tanh", mp.tanh, (1.5, 1.5), (ALL, Span(-10, 10), Span(-20, 20)), (0, -0.0, 1, -1), near=(9.01, 19.06)),
    "asinh": _F("asinh", mp.asinh, (0.51, 2.0), (ALL, Span(-3, 3)), (0, -0.0, INF, -INF), near=(1,)),
    "acosh": _F("acosh", mp.acosh, (0.51, 2.25), (Sizes(1, HUGE, False), Span(1, 3)), (NAN, NAN, INF, NAN), (0.5, -1),
        near=(1.0001,)),
    "atanh": _F("atanh", mp.atanh, (0.51, 2.0), (_UNIT, Span(-1, 1)), (0, -0.0, NAN, NAN), (2, -1.0000001),
        near=(0.5, 0.999)),
    "sinc": _F("sinc", mp.sincpi, (3.0, 3.0), (ALL, Span(-10, 10)), (1, 1, NAN, NAN), near=(1, 2, 0.5, 1000)),
    "deg2rad": _F("deg2rad", lambda x: x * mp.pi / 180, (1.0, 1.0), (ALL,), (0, -0.0, INF, -INF)),
    "rad2deg": _F("rad2deg", lambda x: x * 180 / mp.pi, (1.0, 1.0), (ALL,), (0, -0.0, INF, -INF)),
    # the error function, gamma, Bessel functions
    "erf": _F("erf", mp.erf, (1.6, 1.0), (ALL, Span(-4.5, 4.5), Span(-6, 6)), (0, -0.0, 1, -1), near=(0.92, 3.95, 5.9)),
    "erfc": _F("erfc", mp.erfc, (0.51, 3.0), (Sizes(TINY, 30), Span(-4, 9), Span(9, 28)), (1, 1, 0, 2), near=(10.05, 26.5)),
    "erfinv": _F("erfinv", exact.erfinv, (0.51, 2.0), (_UNIT, Span(-1, 1)), (0, -0.0, NAN, NAN), (1.5, -2), near=(0.5,)),
    "lgamma": _F("lgamma", exact.lgamma, (0.51, 3.0), (POSITIVE, Span(0.01, 30), Span(-30, 0)), (INF, INF, INF, INF),
        near=(1, 2, -2.4570247, -0.5), unit="one"),
    "digamma": _F("digamma", mp.digamma, (0.51, 8.0), (POSITIVE, Span(0.01, 30), Span(-30, 0)), (-INF, INF, INF, NAN),
        near=(1.4616321449683622, 10, -0.5), unit="one"),
    "polygamma": _F("polygamma", lambda x: mp.psi(1, x), (0.51, 2.5), (Sizes(1e-9, 1e9, False), Span(-10, 0)), None,
        near=(1, 12)),
    "i0": _F("i0", lambda x: mp.besseli(0, x), (0.51, 0.75), (Sizes(TINY, 40), Span(-88, 88), Span(-710, 710)), (1, 1, INF, INF),
        near=(40,)),
    "special_i1": _F("special.i1", lambda x: mp.besseli(1, x), (0.51, 0.75), (Sizes(1e-30, 40), Span(-88, 88), Span(-710, 710)),
        (0, -0.0, INF, -INF), near=(40,)),
    "special_i0e": _F("special.i0e", exact.i0e, (0.51, 2.0), (Span(-100, 100), Sizes(1e-3, 1e3))),
    "special_i1e": _F("special.i1e", exact.i1e, (0.51, 2.0), (Span(-100, 100), Sizes(1e-3, 1e3))),
    "special_erfcx": _F("special.erfcx", exact.erfcx, (0.51, 4.0), (Span(-5, 5), Sizes(1e-3, 1e4, False))),
    "special_entr": _F("special.entr", lambda x: -x * mp.log(x), (2.0, 2.0), (POSITIVE, Span(0.5, 2))),
    "special_ndtr": _F("special.ndtr", exact.ndtr, (4.0, 4.0), (Span(-4, 8),), unit="one"),
    "special_log_ndtr": _F("special.log_ndtr", exact.log_ndtr, (0.51, 8.0), (Span(-30, 5),), unit="one"),
    "special_ndtri": _F("special.ndtri", exact.ndtri, (0.51, 8.0), (Span(0.001, 0.999), Sizes(1e-30, 0.4, False)),
        unit="one"),
    "special_xlog1py": _F("special.xlog1py", lambda x, y: x * mp.log1p(y), (2.5, 2.5),
        ((Span(-5, 5), Span(-0.9, 5)),)),
    # activations
    "sigmoid": _F("sigmoid", exact.sigmoid, (2.5, 2.5), (ALL, Span(-103, 30), Span(-745, 40)), (0.5, 0.5, 1, 0),
        near=(-87.33, -88.72, -103.97, -708.4, -709.78, -745.13)),
    "silu": _F(_NN + "silu", exact.silu, (3.0, 3.0), (ALL, Span(-100, 30), Span(-700, 40)), (0, -0.0, INF, NAN), unit="times tiny"),
    "softplus": _F(_NN + "softplus", exact.softplus, (2.0, 2.0), (ALL, Span(-103, 25), Span(-745, 25)), None, near=(20, 0)),
    "log_sigmoid": _F(_NN + "logsigmoid", exact.log_sigmoid, (2.0, 2.0), (ALL, Span(-30, 103), Span(-30, 745)), None),
    "elu": _F(_NN + "elu", exact.elu, (1.5, 1.75), (ALL, Span(-20, 3)), (0, -0.0, INF, -1)),
    "_gelu_erf": _F(_NN + "gelu", exact.gelu, (2.0, 2.0), (ALL, Span(-10, 10)), (0, -0.0, INF, NAN), unit="argument"),
    "_gelu_tanh": _F(_NN + "gelu", exact.gelu_tanh, (2.0, 2.0), (Sizes(TINY, 1e9), Span(-10, 10)), (0, -0.0, INF, NAN),
        unit="argument", options=(("approximate", "tanh"),)),
    "mish": _F(_NN + "mish", exact.mish, (4.0, 4.0), (ALL, Span(-30, 25), Span(-80, 25)), (0, -0.0, INF, NAN), unit="times tiny"),
    "_logit": _F("logit", exact.logit, (1.5, 1.5), (Sizes(TINY, 1, False), Span(0, 1)), (-INF, -INF, NAN, NAN), (-0.5, 1.5),
        near=(0.5,), unit="one"),
    # of two numbers
    "logaddexp": _F("logaddexp", exact.logaddexp, (2.0, 2.0), ((Span(-5, 5), Span(-5, 5)), (Span(-100, 100), Span(-100, 100))),
        unit="argument"),
    "logaddexp2": _F("logaddexp2", exact.logaddexp2, (2.5, 2.5), ((Span(-5, 5), Span(-5, 5)), (Span(-100, 100), Span(-100, 100))),
        unit="argument"),
    "xlogy.Tensor": _F("xlogy", exact.xlogy, (2.0, 2.0), ((Sizes(1e-9, 1e9), Sizes(1e-9, 1e9, False)), (Span(-3, 3), Span(0.5, 2)))),
    "div.Tensor": _F("div", lambda x, y: x / y, (0.5, 0.5), ((ALL, ALL), (Span(-3, 3), Span(-3, 3)))),
    "fmod.Tensor": _F("fmod", exact.fmod, (0.0, 0.0), ((Sizes(1e-3, 1e9), Sizes(1e-3, 1e3)), (ALL, ALL))),
    "remainder.Tensor": _F("remainder", exact.remainder, (0.5, 0.5), ((Sizes(1e-3, 1e9), Sizes(1e-3, 1e3)), (ALL, ALL))),
}  # fmt: skip

_ROUNDED = "one rounding at most, or none"
_FEW = "a few roundings of arithmetic: held against NumPy by the operator table's cases"
_SAME = "the body of another overload, which is measured"

#: pointwise rows of real floats that FUNCTIONS leaves out, and why
EXEMPT: dict[str, str] = {
    **dict.fromkeys((
        "mul.Tensor", "mul.Scalar", "maximum", "minimum", "clamp_min", "clamp_min.Tensor", "clamp_max",
        "clamp_max.Tensor", "where.self", "where.ScalarSelf", "where.ScalarOther", "masked_fill.Scalar",
        "neg", "abs", "sign", "sgn", "floor", "ceil", "round", "trunc", "frac", "conj_physical",
        "relu", "relu6", "leaky_relu", "_prelu_kernel", "_shrink", "hardtanh", "angle", "fmax", "fmin", "copysign.Tensor", "copysign.Scalar", "heaviside",
    ), _ROUNDED),
    **dict.fromkeys((
        "add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "rsub.Tensor", "rsub.Scalar", "lerp.Scalar",
        "lerp.Tensor", "addcmul", "addcdiv", "floor_divide", "floor_divide.Scalar", "round.decimals",
        "hardsigmoid", "hardswish",
    ), _FEW),
    **dict.fromkeys((
        "div.Scalar", "remainder.Scalar", "fmod.Scalar", "pow.Scalar", "xlogy.Scalar_Self", "xlogy.Scalar_Other",
    ), _SAME),
    **dict.fromkeys(("gcd", "lcm", "nextafter", "frexp.Tensor"), "exact"),
    **dict.fromkeys(
        ("_special_bessel", "_special_polynomial", "special_zeta"),
        "families of higher functions: test_special_functions holds them to mpmath's values",
    ),
    **dict.fromkeys(("igamma", "igammac"), "integrals: their cases hold them to mpmath's values"),
    **dict.fromkeys(
        ("_standard_gamma_grad", "_dirichlet_grad"),
        "integrals: test_derivatives_of_samples holds them to differences of distribution functions",
    ),
    "_no_derivative": "raises",
    "_cross_entropy_of_chances": "made of log and log1p, which are measured",
    "mvlgamma": "a sum of lgamma, which is measured",
    "_lstm_cell": "made of sigmoid and tanh, which are measured",
}  # fmt: skip
