"""Accuracy of the kernel language's functions, on every instruction set this machine has.

`python tests/test_kernels_math.py` prints the table of measured errors that docs/kernels.md shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_support import F32, F64, NUMPY, Compiled, apply, pointwise, supported_isas, ulp_error

from weft._kernels import lang

N = 40_000
Array = np.ndarray
# Functions of float64 are held against long double: more than a double on x86 only.
WIDE = np.finfo(np.longdouble).nmant > 52


def _uniform(low: float, high: float) -> Array:
    return np.random.default_rng(1).uniform(low, high, N)


def _spread(low: float, high: float) -> Array:
    """Both signs, evenly over the exponents."""
    size = np.exp(np.random.default_rng(2).uniform(np.log(low), np.log(high), N))
    return np.concatenate([size, -size])


def _positive(low: float, high: float) -> Array:
    return _spread(low, high)[:N]


def _join(*parts: Array) -> Array:
    return np.concatenate(parts)


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf)(x.astype(np.float64)).astype(x.dtype)


def _erfc(x: Array) -> Array:
    return np.vectorize(math.erfc)(x.astype(np.float64)).astype(x.dtype)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


# name: (arguments, reference, bound in ULP for float32, for float64; None: the C library's own)
UNARY: dict[str, tuple[Array, Callable[..., Array], float, float | None]] = {
    "exp": (_join(_uniform(-104, 89), _uniform(-2, 2)), np.exp, 1.0, 1.0),
    "exp2": (_uniform(-150, 128), np.exp2, 1.25, 1.25),
    "expm1": (_join(_uniform(-20, 88), _spread(1e-30, 2)), np.expm1, 1.5, 1.75),
    "log": (_join(_positive(1e-45, 3e38), _uniform(0.5, 2)), np.log, 1.0, 1.0),
    "log2": (_join(_positive(1e-45, 3e38), _uniform(0.5, 2)), np.log2, 0.51, 1.0),
    "log10": (_join(_positive(1e-45, 3e38), _uniform(0.5, 2)), np.log10, 0.51, 1.0),
    "log1p": (_join(_spread(1e-30, 0.999), _positive(1e-3, 3e38)), np.log1p, 1.5, 1.5),
    "sqrt": (_positive(1e-45, 3e38), np.sqrt, 0.5, 0.51),
    "rsqrt": (_positive(1e-38, 3e38), lambda x: 1 / np.sqrt(x), 1.5, 1.5),
    "sigmoid": (_uniform(-103, 30), _sigmoid, 2.5, 2.5),
    "tanh": (_join(_uniform(-10, 10), _spread(1e-30, 1)), np.tanh, 1.5, 1.5),
    "sinh": (_join(_uniform(-89, 89), _spread(1e-30, 2)), np.sinh, 0.51, 2.25),
    "cosh": (_uniform(-89, 89), np.cosh, 0.51, 1.5),
    "asinh": (_spread(1e-30, 1e38), np.arcsinh, 0.51, 2.0),
    "acosh": (1 + _positive(1e-6, 1e38), np.arccosh, 0.51, 2.25),
    "atanh": (_spread(1e-30, 0.99999), np.arctanh, 0.51, 2.0),
    "sin": (_join(_uniform(-10, 10), _spread(1e-30, 1e7)), np.sin, 1.6, 1.0),
    "cos": (_join(_uniform(-10, 10), _spread(1e-30, 1e7)), np.cos, 1.6, 1.0),
    "tan": (_join(_uniform(-10, 10), _spread(1e-30, 1e7)), np.tan, 1.0, 2.5),
    "asin": (_spread(1e-30, 1), np.arcsin, 2.5, 2.5),
    "acos": (_join(_uniform(-1, 1), _spread(1e-30, 1)), np.arccos, 1.5, 1.5),
    "atan": (_spread(1e-30, 1e30), np.arctan, 2.0, 2.0),
    "erf": (_join(_uniform(-4.5, 4.5), _spread(1e-30, 1)), _erf, 1.6, None),
    "erfc": (_uniform(-4, 9), _erfc, 4.0, None),
}
BINARY: dict[str, tuple[Array, Array, Callable[..., Array], float, float | None]] = {
    "pow": (_positive(1e-3, 1e3), _uniform(-12, 12), np.power, 0.52, 1.0),
    "atan2": (_spread(1e-9, 1e9), _spread(1e-9, 1e9)[::-1], np.arctan2, 0.51, 2.25),
    "fmod": (_spread(1e-3, 1e9), _spread(1e-3, 1e3)[::-1], np.fmod, 0.0, 0.0),
    "remainder": (_spread(1e-3, 1e4), _spread(1e-3, 1e3)[::-1], np.remainder, 0.5, 0.5),
}


@pytest.fixture(scope="module", params=supported_isas())
def compiled(request: pytest.FixtureRequest) -> Compiled:
    return compile_all(request.param)


def compile_all(isa: str) -> Compiled:
    kernels = {}
    for d in (F32, F64):
        kernels |= {f"{n}_{d}": pointwise(getattr(lang, n), [d]) for n in UNARY}
        kernels |= {f"{n}_{d}": pointwise(getattr(lang, n), [d, d]) for n in BINARY}
    return Compiled(kernels, isa)


def worst(compiled: Compiled, name: str, d: Any) -> tuple[float, Array]:
    """The greatest error of a function in ULP, and the arguments it is at."""
    wide = np.float64 if d == F32 else np.longdouble
    if name in UNARY:
        samples, reference = UNARY[name][:1], UNARY[name][1]
    else:
        samples, reference = BINARY[name][:2], BINARY[name][2]
    args = [s.astype(NUMPY[d.name]) for s in samples]
    got = apply(compiled, f"{name}_{d}", *args)
    with np.errstate(all="ignore"):
        errors = ulp_error(got, reference(*(a.astype(wide) for a in args)))
    at = int(np.argmax(errors))
    return float(errors[at]), np.array([a[at] for a in args])


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_error_float32(compiled: Compiled, name: str) -> None:
    bound = (UNARY | BINARY)[name][-2]
    error, at = worst(compiled, name, F32)
    assert error <= bound, f"{name}: {error} ULP at {at}"


@pytest.mark.skipif(not WIDE, reason="long double is no wider than double here")
@pytest.mark.parametrize("name", [n for n, row in (UNARY | BINARY).items() if row[-1] is not None])
def test_error_float64(compiled: Compiled, name: str) -> None:
    bound = (UNARY | BINARY)[name][-1]
    error, at = worst(compiled, name, F64)
    assert error <= bound, f"{name}: {error} ULP at {at}"


def test_against_mpmath() -> None:
    """The references above are floating functions themselves: a few points in 40 digits."""
    mpmath = pytest.importorskip("mpmath")
    names = {"asin": "asin", "acos": "acos", "atan": "atan", "atanh": "atanh", "log1p": "log1p"}
    names |= {n: n for n in ("exp", "expm1", "log", "sin", "cos", "tan", "tanh", "sinh", "erf")}
    with mpmath.workdps(40):
        for name, theirs in names.items():
            samples, reference = UNARY[name][:2]
            x = samples[:: N // 20].astype(np.float32)
            exact = [float(getattr(mpmath, theirs)(mpmath.mpf(float(v)))) for v in x]
            np.testing.assert_allclose(reference(x.astype(np.float64)), exact, rtol=1e-14)


inf, nan = math.inf, math.nan
# Values at the borders, as IEEE 754 and C's annex F give them.
SPECIAL: dict[str, dict[float, float]] = {
    "exp": {0.0: 1, -inf: 0, inf: inf, nan: nan, 1000: inf, -1000: 0, 1e-40: 1},
    "exp2": {0.0: 1, 3: 8, -inf: 0, inf: inf, nan: nan, -149: 2.0**-149},
    "expm1": {0.0: 0.0, -inf: -1, inf: inf, nan: nan, 1e-40: 1e-40, 1000: inf, -100: -1},
    "log": {1: 0.0, 0.0: -inf, -1: nan, inf: inf, nan: nan, -inf: nan},
    "log2": {1: 0.0, 8: 3, 2.0**-149: -149, 0.0: -inf, -1: nan, inf: inf, nan: nan},
    "log10": {1: 0.0, 1000: 3, 1e10: 10, 0.0: -inf, -1: nan, inf: inf, nan: nan},
    "log1p": {0.0: 0.0, -1: -inf, -2: nan, inf: inf, nan: nan, 1e-40: 1e-40, -inf: nan},
    "sqrt": {4: 2, 0.0: 0.0, -1: nan, inf: inf, nan: nan},
    "sigmoid": {0.0: 0.5, inf: 1, -inf: 0, nan: nan, 200: 1},
    "tanh": {0.0: 0.0, inf: 1, -inf: -1, nan: nan, 1e-40: 1e-40, 100: 1},
    "sinh": {0.0: 0.0, inf: inf, -inf: -inf, nan: nan},
    "cosh": {0.0: 1, inf: inf, -inf: inf, nan: nan},
    "asinh": {0.0: 0.0, inf: inf, -inf: -inf, nan: nan},
    "acosh": {1: 0.0, 0.5: nan, inf: inf, nan: nan},
    "atanh": {0.0: 0.0, 1: inf, -1: -inf, 2: nan, nan: nan},
    "sin": {0.0: 0.0, inf: nan, nan: nan, 1e-40: 1e-40},
    "cos": {0.0: 1, inf: nan, nan: nan, 1e-40: 1},
    "tan": {0.0: 0.0, inf: nan, nan: nan},
    "asin": {0.0: 0.0, 2: nan, nan: nan, 1: math.pi / 2, -1: -math.pi / 2},
    "acos": {1: 0.0, 2: nan, nan: nan, -1: math.pi, 0.0: math.pi / 2},
    "atan": {0.0: 0.0, inf: math.pi / 2, -inf: -math.pi / 2, nan: nan},
    "erf": {0.0: 0.0, inf: 1, -inf: -1, nan: nan, 5: math.erf(5)},
    "erfc": {0.0: 1, inf: 0, -inf: 2, nan: nan},
}
POW_VALUES = [
    0.0,
    -0.0,
    1,
    -1,
    2,
    -2,
    0.5,
    -0.5,
    3,
    -3,
    2.5,
    -2.5,
    inf,
    -inf,
    nan,
    1e30,
    -1e30,
    1e-40,
]
ANGLE_VALUES = [0.0, -0.0, 1, -1, inf, -inf, nan, 1e-30, -1e30]


@pytest.mark.parametrize("d", [F32, F64])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(compiled: Compiled, name: str, d: Any) -> None:
    x = np.array(list(SPECIAL[name]), NUMPY[d.name])
    wanted = np.array(list(SPECIAL[name].values()), np.float64).astype(x.dtype)
    # Each value in every lane of the vector loop and in the tails.
    got = np.stack([apply(compiled, f"{name}_{d}", np.roll(np.tile(x, 3), i)) for i in range(4)])
    got = np.stack([np.roll(row, -i)[: x.size] for i, row in enumerate(got)])
    np.testing.assert_array_equal(got, np.tile(wanted, (4, 1)), err_msg=f"{name} of {x}")


@pytest.mark.parametrize("d", [F32, F64])
def test_negative_zero(compiled: Compiled, d: Any) -> None:
    x = np.full(23, -0.0, NUMPY[d.name])
    for name in (
        "expm1",
        "log1p",
        "sqrt",
        "tanh",
        "sinh",
        "asinh",
        "atanh",
        "sin",
        "tan",
        "asin",
        "atan",
        "erf",
    ):
        got = apply(compiled, f"{name}_{d}", x)
        assert (got == 0).all() and np.signbit(got).all(), name
    for name, wanted in (("log", -inf), ("log2", -inf), ("log10", -inf), ("cos", 1), ("exp", 1)):
        assert (apply(compiled, f"{name}_{d}", x) == wanted).all(), name


@pytest.mark.parametrize("d", [F32, F64])
@pytest.mark.parametrize(
    ("name", "values", "reference"),
    [
        ("pow", POW_VALUES, np.power),
        ("atan2", ANGLE_VALUES, np.arctan2),
        ("fmod", POW_VALUES, np.fmod),
    ],
)
def test_special_pairs(
    compiled: Compiled, name: str, values: list[float], reference: Any, d: Any
) -> None:
    grid = np.meshgrid(np.array(values, NUMPY[d.name]), np.array(values, NUMPY[d.name]))
    x, y = (np.ascontiguousarray(g.ravel()) for g in grid)
    got = apply(compiled, f"{name}_{d}", x, y)
    with np.errstate(all="ignore"):
        wanted = reference(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)
    np.testing.assert_allclose(got, wanted, rtol=3e-7 if d == F32 else 1e-15)
    real = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got[real]), np.signbit(wanted[real]))


def test_small_powers_are_products(compiled: Compiled) -> None:
    """x ** 2 as a number in a body is x * x, bit for bit."""
    kernels = {f"p{n}": pointwise(lambda x, n=n: x**n, [F32]) for n in (2, 3, -1)}
    kernels["half"] = pointwise(lambda x: x**0.5, [F32])
    c = Compiled(kernels, supported_isas()[0])
    x = _spread(1e-3, 1e3).astype(np.float32)
    np.testing.assert_array_equal(apply(c, "p2", x), x * x)
    np.testing.assert_array_equal(apply(c, "p3", x), x * (x * x))
    np.testing.assert_array_equal(apply(c, "p-1", x) if "p-1" in kernels else None, 1 / x)
    np.testing.assert_array_equal(apply(c, "half", abs(x)), np.sqrt(abs(x)))


def print_table() -> None:
    """Greatest errors over the instruction sets, and the bounds: the table of docs/kernels.md."""
    all_isas = [compile_all(isa) for isa in supported_isas()]
    print("| function | float32: measured | bound | float64: measured | bound |")
    print("|---|---|---|---|---|")
    for name, row in (UNARY | BINARY).items():
        cells = []
        for d, bound in ((F32, row[-2]), (F64, row[-1])):
            libm = d == F64 and (bound is None or name == "pow")
            error = max(worst(c, name, d)[0] for c in all_isas)
            cells += ["libm", ""] if libm else [f"{error:.2f}", f"{bound}"]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    print_table()
