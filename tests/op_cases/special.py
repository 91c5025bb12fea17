"""Cases of the special functions of weft.special, and of numbers as they are stored."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre

import weft

from .scanning import _by_mpmath
from .spec import (
    FLOATS,
    HALVES,
    INTS,
    A,
    K,
    S,
    case,
    nonzero,
    normal,
    pairs,
    positive,
    probability,
    same_shape,
)

_WIDE = {"tolerance": 30, "parity": False}  # the names are not PyTorch's operators', or less exact there


def _each(function: Callable[[float], float]) -> Any:
    return np.vectorize(function, otypes=["float64"])


def _far(low: float, high: float) -> S:
    return S(A((40,), lambda rng, shape: rng.uniform(low, high, shape)))


def _scaled(order: int) -> Any:
    unscaled = _by_mpmath("besseli", order)
    return lambda x: unscaled(x) * np.exp(-np.abs(x))


def _log_ndtr(x: np.ndarray) -> np.ndarray:
    import mpmath

    return np.array([float(mpmath.log(mpmath.ncdf(float(v)))) for v in x.ravel()]).reshape(x.shape)


case("special_i0e", [*same_shape(), _far(-60, 60)], _scaled(0), tolerance=8)
case("special_i1e", [*same_shape(), _far(-60, 60)], _scaled(1), tolerance=8)
case("special_erfcx", [*same_shape(), _far(-4, 24)], _each(lambda x: math.exp(x * x) * math.erfc(x)), domain=positive, tolerance=300)
case("special_ndtr", [*same_shape(), _far(-3, 3)], _each(NormalDist().cdf), tolerance=60)
case("special_log_ndtr", [*same_shape(), _far(-30, 3)], _log_ndtr, tolerance=60, parity=False)
case("special_ndtri", [*same_shape(), _far(0.001, 0.999)], _each(NormalDist().inv_cdf), domain=probability, tolerance=300)
case("special_entr", same_shape(), lambda x: -x * np.log(x), domain=positive, tolerance=8)
case("special_xlog1py", pairs()[:5], lambda x, y: np.where(x == 0, 0.0, x * np.log1p(y)).astype(np.result_type(x, y)), domain=positive, tolerance=8)


def _zeta(s: np.ndarray, q: np.ndarray) -> np.ndarray:
    import mpmath

    pairs = np.broadcast(s, q)
    return np.array([float(mpmath.zeta(float(a), float(b))) for a, b in pairs]).reshape(pairs.shape)


case("special_zeta", [S(A((3, 4), lambda rng, shape: rng.uniform(1.2, 8, shape)), A((4,), positive))], _zeta, grad=False, **_WIDE)


def _gammas(upper: bool) -> Any:
    import mpmath

    def one(a: float, x: float) -> float:
        ends = (x, mpmath.inf) if upper else (0, x)
        return float(mpmath.gammainc(a, *ends, regularized=True))

    return np.vectorize(one, otypes=["float64"])


_GAMMAS = [S(K((3, 4)), A((3, 4))), S(K((3, 1)), A((4,))), S(K((0, 3)), A((3,))), S(K((40,)), A(())),
           S(K((40,)), A((40,), lambda rng, shape: rng.uniform(0, 30, shape)))]  # fmt: skip
case("igamma", _GAMMAS, lambda a, x: _gammas(False)(a, x), domain=positive, tolerance=60)
case("igammac", _GAMMAS, lambda a, x: _gammas(True)(a, x), domain=positive, tolerance=60)


def _is_refused(function: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"^f: expected no gradient for x, got one that requires it$"):
        function(weft.ones(2), "f", "x")


def _gamma_slopes(function: Any) -> None:
    """Of concentration 1, whose distribution function is 1 - exp(-x), where x has grown to 1 or 3."""
    slope = function(weft.ones(2, 1), weft.tensor([1.0, 3.0]))
    assert slope.shape == (2, 2) and slope.dtype is weft.float32
    np.testing.assert_allclose(slope.numpy(), [[1.17356303, 1.93791169]] * 2, rtol=1e-6)
    a = weft.tensor([2.0, 3.0], requires_grad=True)
    assert function(a.int(), weft.ones(2)).dtype is weft.float32
    with pytest.raises(NotImplementedError, match="_standard_gamma_grad: expected no gradient for self"):
        function(a, weft.ones(2)).sum().backward()


def _beta_slopes(function: Any) -> None:
    """Of Beta(a, 1), where x = u ** (1 / a): dx/da = -x log(x) / a."""
    x, a = weft.tensor([[0.2], [0.7]]), weft.tensor([0.5, 1.0, 4.0])
    slope = function(x, a, a + 1)
    np.testing.assert_allclose(slope.numpy(), (-x * x.log() / a / (1 - x)).numpy(), rtol=1e-5)
    assert slope.shape == (2, 3) and function(x.double(), a, a + 1).dtype is weft.float64


case("_no_derivative", check=_is_refused, grad=False)
case("_standard_gamma_grad", check=_gamma_slopes, grad=False)
case("_dirichlet_grad", check=_beta_slopes, grad=False)


def _bessel(function: Any) -> None:
    import mpmath

    x = np.array([0.01, 0.4, 1.0, 2.5, 9.0, 31.0])
    for kind, name, order in (
        ("bessel_j0", "besselj", 0), ("bessel_j1", "besselj", 1), ("bessel_y0", "bessely", 0), ("bessel_y1", "bessely", 1),
        ("modified_bessel_k0", "besselk", 0), ("modified_bessel_k1", "besselk", 1),
    ):  # fmt: skip
        expected = np.array([float(getattr(mpmath, name)(order, v)) for v in x])
        np.testing.assert_allclose(function(weft.from_numpy(x), kind).numpy(), expected, rtol=2e-11, err_msg=kind)
        if kind[0] == "m":
            scaled = function(weft.from_numpy(x), f"scaled_{kind}").numpy()
            np.testing.assert_allclose(scaled, expected * np.exp(x), rtol=1e-12)
    np.testing.assert_allclose(function(weft.from_numpy(x), "spherical_bessel_j0").numpy(), np.sinc(x / np.pi), rtol=1e-12)
    both_signs = np.concatenate([x, -x])
    airy = np.array([float(mpmath.airyai(v)) for v in both_signs])
    np.testing.assert_allclose(function(weft.from_numpy(both_signs), "airy_ai").numpy(), airy, rtol=2e-11)
    edges = weft.tensor([0.0, -1.0, math.nan], dtype=weft.float64)
    assert function(edges, "airy_ai").tolist()[0] == float(mpmath.airyai(0))
    assert function(weft.tensor([math.inf, 110.0]), "airy_ai").isnan().tolist() == [True, False]
    assert function(edges, "modified_bessel_k0").tolist()[0] == math.inf
    assert function(edges, "modified_bessel_k1").isnan().tolist() == [False, True, True]
    assert function(edges[:1], "spherical_bessel_j0").tolist() == [1.0]


case("_special_bessel", check=_bessel, grad=False)


def _basis(module: Any, prefix: str) -> Callable[[np.ndarray, int], np.ndarray]:
    return lambda x, n: getattr(module, f"{prefix}val")(x, [0] * n + [1])


def _ratio(top: Callable[[float, int], float]) -> Callable[[np.ndarray, int], np.ndarray]:
    """The other three kinds of Chebyshev's polynomials by their cosines and sines (DLMF 18.5.2)."""
    return lambda x, n: _each(lambda v: top(math.acos(v), n))(x)


_KINDS = {
    "chebyshev_polynomial_t": _basis(chebyshev, "cheb"),
    "chebyshev_polynomial_u": _ratio(lambda t, n: math.sin((n + 1) * t) / math.sin(t)),
    "chebyshev_polynomial_v": _ratio(lambda t, n: math.cos((n + 0.5) * t) / math.cos(t / 2)),
    "chebyshev_polynomial_w": _ratio(lambda t, n: math.sin((n + 0.5) * t) / math.sin(t / 2)),
    "hermite_polynomial_h": _basis(hermite, "herm"),
    "hermite_polynomial_he": _basis(hermite_e, "herme"),
    "laguerre_polynomial_l": _basis(laguerre, "lag"),
    "legendre_polynomial_p": _basis(legendre, "leg"),
}


def _polynomials(function: Any) -> None:
    x = np.linspace(-0.95, 0.9, 11)
    for kind, reference in _KINDS.items():
        for n in (0, 1, 2, 5, 9):
            args = (weft.from_numpy(x), weft.tensor(n))
            np.testing.assert_allclose(function(*args, kind).numpy(), reference(x, n), rtol=1e-10, atol=1e-10, err_msg=f"{kind} {n}")
            if kind.startswith("cheb"):
                moved = function(weft.from_numpy((x + 1) / 2), weft.tensor(n), f"shifted_{kind}")
                np.testing.assert_allclose(moved.numpy(), reference(x, n), rtol=1e-10, atol=1e-10)
    assert function(weft.ones(2), weft.tensor([-1, 0]), "legendre_polynomial_p").tolist() == [0, 1]


case("_special_polynomial", check=_polynomials, grad=False)

# ---- numbers as they are stored ----
def _neighbours(function: Any) -> None:
    """Each dtype steps by its own last bit."""
    for dtype in (weft.float16, weft.bfloat16, weft.float32, weft.float64):
        one, two, tiny = weft.tensor(1, dtype=dtype), weft.tensor(2, dtype=dtype), weft.zeros((), dtype=dtype)
        assert function(one, two).item() == 1 + weft.finfo(dtype).eps
        assert function(one, tiny).item() == 1 - weft.finfo(dtype).eps / 2
        assert function(-one, tiny).item() == weft.finfo(dtype).eps / 2 - 1
        assert 0 < function(tiny, one).item() < weft.finfo(dtype).tiny
        assert function(tiny, -one).item() < 0
        assert function(one, one * math.nan).isnan().item()
        assert function(two, two).item() == 2


case("nextafter", pairs(), np.nextafter, domain=normal, dtypes=("float64",), tolerance=0, grad=False, check=_neighbours)


def _mantissa(x: np.ndarray) -> list[np.ndarray]:
    mantissa, exponent = np.frexp(x)
    return [mantissa, exponent]


case("frexp.Tensor", same_shape(), _mantissa, domain=nonzero, dtypes=(*FLOATS, *HALVES), gradgrad=False)
_WHOLE = {"dtypes": INTS, "grad": False, "domain": lambda rng, shape: rng.integers(-9, 10, shape) / 3.0}
for _name, _ref in {"gcd": np.gcd, "lcm": np.lcm}.items():
    case(_name, pairs(), _ref, **_WHOLE)


def _in_place(expected: list[float], other: list[float], dtype: Any) -> Any:
    def check(function: Any) -> None:
        x = weft.tensor([12, -8, 0]).to(dtype)
        assert function(x, weft.tensor(other).to(dtype)) is x
        assert x.tolist() == expected

    return check


case("gcd_", check=_in_place([4, 8, 3], [8, 8, -3], weft.int64), grad=False)
case("lcm_", check=_in_place([24, 8, 0], [8, 8, -3], weft.int32), grad=False)
case("nextafter_", check=_in_place([12, -8, 5e-324], [12, -8, 1], weft.float64), grad=False)
