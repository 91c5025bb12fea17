"""Cases of the pointwise rows."""

from __future__ import annotations

import math

import numpy as np

import weft

from .spec import (
    ALL,
    FLOATS,
    INTEGRAL,
    REALS,
    WIDE_FLOATS,
    A,
    B,
    Fails,
    I,
    S,
    case,
    nonzero,
    normal,
    pairs,
    positive,
    probability,
    same_shape,
    unit,
)

_erf = np.vectorize(math.erf, otypes=["float64"])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _gelu(x: np.ndarray, approximate: str = "none") -> np.ndarray:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


def _scalars(*values: float, **kwargs: object) -> list[S]:
    return [S(A((3, 4)), v, **kwargs) for v in values] + [S(A(()), values[0]), S(A((0, 2)), values[0])]


def _mismatch(op: str) -> tuple[Fails, ...]:
    text = f"{op}: expected broadcastable shapes, got (2, 3) and (4,)"
    return (Fails(S(A((2, 3)), A((4,))), RuntimeError, text),)


# ---- arithmetic ----
def _plus(a: np.ndarray, b: np.ndarray, alpha: float = 1) -> np.ndarray:
    return np.add(a, b if alpha == 1 else alpha * b)


case("add.Tensor", pairs() + pairs(alpha=2)[:2], _plus, dtypes=ALL[:-1], fails=_mismatch("add"))
case("add.Scalar", _scalars(2) + _scalars(3, alpha=2), _plus, dtypes=REALS)
case("sub.Tensor", pairs() + pairs(alpha=2)[:2], lambda a, b, alpha=1: a - alpha * b, dtypes=REALS,
     fails=_mismatch("sub"))  # fmt: skip
case("sub.Scalar", _scalars(2), lambda a, b, alpha=1: a - alpha * b, dtypes=REALS)
case("rsub.Tensor", pairs()[:3], lambda a, b, alpha=1: b - alpha * a, dtypes=FLOATS)
case("rsub.Scalar", _scalars(2), lambda a, b, alpha=1: a.dtype.type(b) - a.dtype.type(alpha) * a, dtypes=REALS)
case("mul.Tensor", pairs(), np.multiply, dtypes=ALL, fails=_mismatch("mul"))
case("mul.Scalar", _scalars(3), np.multiply, dtypes=REALS)
case("div.Tensor", pairs(), np.true_divide, domain=nonzero, dtypes=WIDE_FLOATS, fails=_mismatch("div"))
case("div.Scalar", _scalars(3, -0.5), np.true_divide, dtypes=WIDE_FLOATS)


def _rounded_div(a: np.ndarray, b: np.ndarray, *, rounding_mode: str | None) -> np.ndarray:
    if rounding_mode is None:
        return np.true_divide(a, b)
    if rounding_mode == "floor":
        return np.floor_divide(a, b)
    quotient = np.trunc(np.true_divide(a, b))
    return quotient.astype(np.result_type(a, b))


_MODES = [S(A((3, 4)), A((4,)), rounding_mode=m) for m in ("floor", "trunc", None)]
case("div.Tensor_mode", _MODES, _rounded_div, domain=nonzero, dtypes=FLOATS)
case("div.Scalar_mode", [S(A((3, 4)), 2, rounding_mode=m) for m in ("floor", "trunc")], _rounded_div,
     dtypes=REALS[:2] + INTEGRAL[1:-1])  # fmt: skip
case("floor_divide", [S(A((3, 4)), A((4,)))], np.floor_divide, domain=nonzero, dtypes=FLOATS)
case("floor_divide.Scalar", _scalars(2), np.floor_divide, dtypes=FLOATS + INTEGRAL[:-1])
case("remainder.Tensor", pairs()[:4], np.mod, domain=nonzero, dtypes=FLOATS)
case("remainder.Scalar", _scalars(3, -2), np.mod, domain=nonzero, dtypes=FLOATS + INTEGRAL[1:-1])
case("pow.Tensor_Tensor", pairs()[:4], np.power, domain=positive, dtypes=FLOATS, tolerance=4)
case("pow.Tensor_Scalar", _scalars(2, 3, 0.5, -1, 0, 1.7), np.power, domain=positive, dtypes=FLOATS, tolerance=4)
case("pow.Scalar", [S(2.5, A((3, 4))), S(1, A((5,)))], np.power, dtypes=FLOATS, tolerance=4)
case("neg", same_shape(), np.negative, dtypes=REALS)
case("abs", same_shape(), np.abs, domain=nonzero, dtypes=REALS)
case("sign", same_shape(), np.sign, domain=nonzero, dtypes=REALS)
case("square", same_shape(), np.square, dtypes=FLOATS)
case("reciprocal", same_shape(), np.reciprocal, domain=nonzero)

# ---- elementary functions ----
case("exp", same_shape(), np.exp, dtypes=WIDE_FLOATS)
case("log", same_shape(), np.log, domain=positive, dtypes=WIDE_FLOATS)
case("log2", same_shape(), np.log2, domain=positive)
case("log10", same_shape(), np.log10, domain=positive)
case("log1p", same_shape(), np.log1p, domain=positive)
case("expm1", same_shape(), np.expm1)
case("exp2", same_shape(), np.exp2)
case("sqrt", same_shape(), np.sqrt, domain=positive, dtypes=WIDE_FLOATS)
case("rsqrt", same_shape(), lambda x: 1 / np.sqrt(x), domain=positive)
case("sin", same_shape(), np.sin)
case("cos", same_shape(), np.cos)
case("tan", same_shape(), np.tan, domain=unit, tolerance=4)
case("asin", same_shape(), np.arcsin, domain=unit)
case("acos", same_shape(), np.arccos, domain=unit)
case("atan", same_shape(), np.arctan)
case("atan2", pairs()[:4], np.arctan2, domain=nonzero)
case("sinh", same_shape(), np.sinh)
case("cosh", same_shape(), np.cosh)
case("tanh", same_shape(), np.tanh, dtypes=WIDE_FLOATS)
case("sigmoid", same_shape(), _sigmoid, dtypes=WIDE_FLOATS)
case("erf", same_shape(), _erf)
case("relu", same_shape(), lambda x: np.maximum(x, 0), domain=nonzero, dtypes=REALS)
case("silu", same_shape(), lambda x: x * _sigmoid(x))


def _lstm_cell(i: np.ndarray, f: np.ndarray, g: np.ndarray, o: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, ...]:
    after = _sigmoid(f) * memory + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(after), after


case("_lstm_cell", [S(*[A((3, 4))] * 5), S(A((2, 17)), A((17,)), A((2, 1)), A((2, 17)), A((1, 17)))], _lstm_cell, tolerance=4)
case("gelu", same_shape() + same_shape(approximate="tanh"), _gelu, tolerance=2)
case("leaky_relu", same_shape() + same_shape(0.2), lambda x, s=0.01: np.where(x > 0, x, s * x), domain=nonzero)
case("_prelu_kernel", pairs(), lambda x, w: np.where(x > 0, x, w * x), dtypes=FLOATS, domain=nonzero)
case("_shrink", same_shape(0.5, 0) + same_shape(0.25, 0.25), lambda x, a, b: np.where(np.abs(x) <= a, 0, x - np.copysign(b, x)),
     dtypes=FLOATS)  # fmt: skip
case("softplus", same_shape() + same_shape(2, 5), lambda x, b=1, t=20: np.where(b * x > t, x, np.log1p(np.exp(b * x)) / b),
     tolerance=2)  # fmt: skip
case("hardtanh", same_shape(-0.5, 0.75), lambda x, a, b: np.clip(x, a, b))
case("hardsigmoid", same_shape(), lambda x: np.clip(x + 3, 0, 6) / 6)
case("hardswish", same_shape(), lambda x: x * np.clip(x + 3, 0, 6) / 6, tolerance=2)
case("relu6", same_shape(), lambda x: np.clip(x, 0, 6))
case("elu", same_shape(), lambda x: np.where(x > 0, x, np.expm1(x)), domain=nonzero)
case("log_sigmoid", same_shape(), lambda x: np.log(_sigmoid(x)))

# ---- rounding ----
for _name, _ref in {"floor": np.floor, "ceil": np.ceil, "round": np.round, "trunc": np.trunc}.items():
    # NumPy before 2.1 makes floats of integers here.
    case(_name, same_shape(), lambda x, ref=_ref: np.asarray(ref(x), x.dtype), dtypes=REALS)

# ---- comparison and choice ----
for _name, _ref in {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}.items():  # fmt: skip
    case(f"{_name}.Tensor", pairs(), _ref, dtypes=ALL, fails=_mismatch(_name))
    case(f"{_name}.Scalar", _scalars(0, 1), _ref, dtypes=REALS)
case("maximum", pairs(), np.maximum, domain=normal, dtypes=REALS)
case("minimum", pairs(), np.minimum, domain=normal, dtypes=REALS)
case("clamp", [S(A((3, 4)), -1, 1), S(A((5,)), min=0), S(A((5,)), max=0.5)], lambda x, min=None, max=None: np.clip(x, min, max),
     dtypes=FLOATS)  # fmt: skip
case("clamp.Tensor", [S(A((3, 4)), A((4,)), None), S(A((5,)), None, A((5,)))],
     lambda x, lo, hi: np.clip(x, lo, hi), domain=normal)  # fmt: skip
case("clamp_min", _scalars(0), np.maximum, domain=nonzero, dtypes=REALS)
case("clamp_max", _scalars(1), np.minimum, domain=nonzero, dtypes=REALS)
case("where.self", [S(B((3, 4)), A((3, 4)), A((4,))), S(B(()), A((2,)), A(())), S(B((0,)), A((1,)), A(()))], np.where,
     dtypes=ALL)  # fmt: skip
case("masked_fill.Scalar", [S(A((3, 4)), B((4,)), 2), S(A((3, 4)), B((3, 4)), -1)], lambda x, m, v: np.where(m, np.asarray(v, x.dtype), x),
     dtypes=REALS[:4] + INTEGRAL[1:-1])  # fmt: skip
case("lerp.Scalar", [S(A((3, 4)), A((4,)), 0.3)], lambda a, b, w: a + w * (b - a))
case("lerp.Tensor", [S(A((3, 4)), A((4,)), A((3, 1), probability))], lambda a, b, w: a + w * (b - a))
case("addcmul", [S(A((3, 4)), A((4,)), A((3, 1)), value=0.5)], lambda a, b, c, value=1: a + value * b * c, dtypes=FLOATS)
case("addcdiv", [S(A((3, 4)), A((4,)), A((3, 1)), value=0.5)], lambda a, b, c, value=1: a + value * b / c, domain=nonzero)

# ---- logic and bits ----
for _name, _ref in {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}.items():
    case(f"logical_{_name}", pairs(), _ref, dtypes=ALL)
case("logical_not", same_shape(), np.logical_not, dtypes=ALL)
for _name, _ref in {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}.items():
    case(f"bitwise_{_name}.Tensor", pairs(), _ref, dtypes=INTEGRAL)
    case(f"bitwise_{_name}.Scalar", [S(A((3, 4)), 5)], _ref, dtypes=INTEGRAL[:-1])
case("bitwise_not", same_shape(), np.invert, dtypes=INTEGRAL)


def _special(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    values = normal(rng, shape)
    return np.where(values > 1, np.inf, np.where(values < -2, np.nan, values))


for _name, _ref in {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}.items():
    case(_name, same_shape(), _ref, domain=_special, dtypes=WIDE_FLOATS)

# ---- losses ----
_REDUCE = (lambda x: x, np.mean, np.sum)
case("mse_loss", [S(A((3, 4)), A((3, 4)), r) for r in (0, 1, 2)], lambda a, b, r=1: _REDUCE[r]((a - b) ** 2), tolerance=2)

# ---- the rest of the family ----
for _name, _ref, _domain in (
    ("acosh", np.arccosh, lambda rng, shape: 1.2 + positive(rng, shape)),
    ("asinh", np.arcsinh, normal),
    ("atanh", np.arctanh, unit),
    ("erfc", lambda x: 1 - _erf(x), unit),
    ("frac", lambda x: x - np.trunc(x), nonzero),
    ("sgn", np.sign, nonzero),
    ("positive", np.positive, normal),
    ("conj", np.conj, normal),
    ("conj_physical", np.conj, normal),
    ("real", np.real, normal),
):
    case(_name, same_shape(), _ref, domain=_domain, tolerance=8)
case("fmod.Tensor", pairs()[:4], np.fmod, domain=nonzero, dtypes=FLOATS)
case("fmod.Scalar", _scalars(3, -2), np.fmod, domain=nonzero, dtypes=FLOATS)
case("max.other", pairs()[:3], np.maximum, domain=normal)
case("min.other", pairs()[:3], np.minimum, domain=normal)
case("clamp_min.Tensor", [S(A((3, 4)), A((4,)))], np.maximum, domain=normal)
case("clamp_max.Tensor", [S(A((3, 4)), A((4,)))], np.minimum, domain=normal)
case("masked_fill.Tensor", [S(A((3, 4)), B((4,)), A(())), S(A((3, 4)), B((4,)), I((), 1, 3))], lambda x, m, v: np.where(m, np.asarray(v, x.dtype), x),
     dtypes=(*FLOATS, "int8"),
     fails=(Fails(S(A((3,)), B((3,)), A((1,))), RuntimeError, "masked_fill: expected a 0-d value, got shape (1,)"),))  # fmt: skip
case("where", [S(B((3, 4))), S(B(())), S(B((1,)))], lambda c: list(np.nonzero(np.atleast_1d(c))), grad=False)
case("where.Scalar", [S(B((3, 4)), 1.5, -2.5)], lambda c, a, b: np.where(c, a, b).astype("float32"), dtypes=("float32",), grad=False)
case("where.ScalarSelf", [S(B((3, 4)), 1.5, A((4,)))], lambda c, a, b: np.where(c, np.asarray(a, b.dtype), b))
case("where.ScalarOther", [S(B((3, 4)), A((4,)), 1.5)], lambda c, a, b: np.where(c, a, np.asarray(b, a.dtype)))
case("l1_loss", [S(A((3, 4)), A((3, 4)), r) for r in (0, 1, 2)], lambda a, b, r=1: _REDUCE[r](np.abs(a - b)), tolerance=2)


def _in_place(*args: object, expected: list[float], **kwargs: object) -> object:
    """A check of a row that exists only in place."""

    def check(function: object) -> None:
        x = weft.tensor([-2.0, 0.5, 3.0], dtype=weft.float64)
        built = [weft.tensor(a, dtype=weft.float64) if isinstance(a, list) else a for a in args]
        assert function(x, *built, **kwargs) is x  # type: ignore[operator]
        np.testing.assert_allclose(x.numpy(), expected, rtol=1e-12)

    return check


case("masked_fill_.Tensor", grad=False,
     check=lambda f: _in_place([True, False, True], 7, expected=[7, 0.5, 7])(lambda x, m, v: f(x, m.bool(), weft.tensor(v))))  # fmt: skip
case("clamp_", check=_in_place(-1, 1, expected=[-1, 0.5, 1]), grad=False)
case("clamp_.Tensor", check=_in_place([-1.0, 1.0, 0.0], [0.0, 2.0, 1.0], expected=[-1, 1, 1]), grad=False)
case("div_.Scalar_mode", check=_in_place(2, rounding_mode="floor", expected=[-1, 0, 1]), grad=False)
case("div_.Tensor_mode", check=_in_place([4.0, 1.0, 2.0], rounding_mode="trunc", expected=[0, 0, 1]), grad=False)
_G = [float(v) for v in _gelu(np.array([-2.0, 0.5, 3.0]))]
case("gelu_", check=_in_place(expected=_G), grad=False)
