"""Cases of the further functions of one or two numbers."""

from __future__ import annotations

import numpy as np
import pytest

import weft

from .pointwise import _in_place, _scalars, _special
from .spec import (
    FLOATS,
    INTS,
    REALS,
    WIDE_FLOATS,
    A,
    S,
    case,
    nonzero,
    normal,
    pairs,
    positive,
    probability,
    same_shape,
)

case("signbit", same_shape(), np.signbit, domain=nonzero, dtypes=REALS)
for _name, _ref in {"isposinf": np.isposinf, "isneginf": np.isneginf, "isreal": np.isreal}.items():
    case(_name, same_shape(), _ref, domain=_special, dtypes=WIDE_FLOATS)

# ---- angles ----
case("deg2rad", same_shape(), np.deg2rad)
case("rad2deg", same_shape(), np.rad2deg)
case("angle", same_shape(), np.angle, domain=nonzero)
case("sinc", same_shape(), np.sinc, domain=nonzero, tolerance=8)

# ---- logarithms and roots of two ----
case("logaddexp", pairs(), np.logaddexp, tolerance=4)
case("logaddexp2", pairs(), np.logaddexp2, tolerance=4)
case("hypot", pairs(), np.hypot, domain=nonzero)


def _xlogy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(x == 0, 0.0, x * np.log(y)).astype(np.result_type(x, y))


case("xlogy.Tensor", pairs()[:5], _xlogy, domain=positive, tolerance=8)
case("xlogy.Scalar_Other", [S(A((3, 4)), 2.5)], lambda x, y: x * np.asarray(np.log(y), x.dtype), domain=positive, tolerance=4)
case("xlogy.Scalar_Self", [S(2.5, A((3, 4))), S(0, A((5,)))], lambda x, y: np.asarray(x, y.dtype) * np.log(y), domain=positive, tolerance=4)


def _logit(x: np.ndarray, eps: float | None = None) -> np.ndarray:
    x = x if eps is None else np.clip(x, eps, 1 - eps)
    return np.log(x / (1 - x))


case("logit", same_shape() + same_shape(0.3), _logit, domain=probability, tolerance=20)
_L = weft.tensor([0.25, 0.5, 0.75], dtype=weft.float64)


def _logit_in_place(function: object) -> None:
    x = _L.clone()
    assert function(x) is x  # type: ignore[operator]
    np.testing.assert_allclose(x.numpy(), _logit(_L.numpy()), atol=1e-12)
    with pytest.raises(RuntimeError, match=r"logit_: expected a floating tensor, got dtype int64"):
        function(weft.tensor([0]))  # type: ignore[operator]


case("logit_", check=_logit_in_place, grad=False)

# ---- the greater and the lesser beside NaN ----
case("fmax", pairs(), np.fmax, domain=normal, dtypes=REALS)
case("fmin", pairs(), np.fmin, domain=normal, dtypes=REALS)
case("copysign.Tensor", pairs(), np.copysign, domain=nonzero)
case("copysign.Scalar", _scalars(2, -2), lambda x, y: np.copysign(x, np.asarray(y, x.dtype)), domain=nonzero)
case("heaviside", pairs(), np.heaviside, dtypes=FLOATS, grad=False)


def _nan_to_num(x: np.ndarray, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> np.ndarray:
    return np.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


case("nan_to_num", same_shape(2.0, 3.0, -4.0) + same_shape(), _nan_to_num, domain=_special, dtypes=("float64",), gradgrad=False, grad=False)
case("square_", check=_in_place(expected=[4, 0.25, 9]), grad=False)
case("nan_to_num_", check=_in_place(expected=[-2, 0.5, 3]), grad=False)

# ---- powers ----
case("ldexp.Tensor", pairs()[:4], lambda x, y: x * np.exp2(y), tolerance=4)
case("ldexp_", check=_in_place([1.0, 2.0, -1.0], expected=[-4, 2, 1.5]), grad=False)
_WIDE = {"domain": positive, "dtypes": ("float64",), "tolerance": 8}
case("float_power.Tensor_Tensor", pairs()[:4], np.float_power, **_WIDE)
case("float_power.Tensor_Scalar", _scalars(2, 0.5), np.float_power, **_WIDE)
case("float_power.Scalar", [S(2.5, A((3, 4)))], np.float_power, **_WIDE)
case("round.decimals", same_shape(decimals=1) + same_shape(decimals=-1), np.round, dtypes=("float64",))

# ---- shifts ----
_BITS = {"dtypes": INTS[1:], "domain": lambda rng, shape: rng.integers(0, 7, shape).astype("float64")}
for _name, _ref in {"left": np.left_shift, "right": np.right_shift}.items():
    case(f"bitwise_{_name}_shift.Tensor", pairs(), _ref, **_BITS)
    case(f"bitwise_{_name}_shift.Tensor_Scalar", [S(A((3, 4)), 2)], _ref, **_BITS)
    case(f"bitwise_{_name}_shift.Scalar_Tensor", [S(3, A((3, 4)))], lambda x, y, f=_ref: f(np.asarray(x, y.dtype), y), **_BITS)
