"""The kernel language's functions at the borders, on every instruction set this machine has.

How exact they are in between is measured by test_ulp.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from kernel_support import F32, F64, NUMPY, Compiled, apply, pointwise, supported_isas

import weft
from weft._kernels import lang, lookup_tables

BINARY = ("pow", "atan2", "fmod")


@pytest.fixture(scope="module", params=supported_isas())
def compiled(request: pytest.FixtureRequest) -> Compiled:
    kernels = {}
    for d in (F32, F64):
        kernels |= {f"{n}_{d}": pointwise(getattr(lang, n), [d]) for n in SPECIAL}
        kernels |= {f"{n}_{d}": pointwise(getattr(lang, n), [d, d]) for n in BINARY}
    return Compiled(kernels, request.param)


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
    "acosh": {1: 0.0, 0.5: nan, -1e30: nan, -inf: nan, inf: inf, nan: nan},
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
    rng = np.random.default_rng(2)
    sizes = np.exp(rng.uniform(np.log(1e-3), np.log(1e3), 40_000)).astype(np.float32)
    x = np.concatenate([sizes, -sizes])
    np.testing.assert_array_equal(apply(c, "p2", x), x * x)
    np.testing.assert_array_equal(apply(c, "p3", x), x * (x * x))
    np.testing.assert_array_equal(apply(c, "p-1", x) if "p-1" in kernels else None, 1 / x)
    np.testing.assert_array_equal(apply(c, "half", abs(x)), np.sqrt(abs(x)))


def test_roots_of_every_significand_are_rounded_correctly() -> None:
    """All floats of two binades, whose roots have all significands; and all in steps elsewhere."""
    binades = np.arange(1 << 24, dtype=np.uint32) + np.float32(1).view(np.uint32)
    every_257th = np.arange(0, 1 << 32, 257, dtype=np.uint64).astype(np.uint32)
    small = np.arange(1 << 16, dtype=np.uint32)  # zero and denormal numbers
    for bits in (binades, every_257th, small, small + (1 << 31)):
        x = bits.view(np.float32)
        with np.errstate(invalid="ignore"):
            want = np.sqrt(x)
        got = weft.sqrt(weft.from_numpy(x)).numpy()
        assert np.array_equal(got.view(np.uint32)[want == want], want.view(np.uint32)[want == want])
        assert np.isnan(got[want != want]).all()


# ---- the tables that only AVX-512 looks up, on every processor ----


def _horner(x: np.ndarray, coefficients: Any) -> np.ndarray:
    result = 0.0
    for c in reversed(coefficients):
        result = result * x + c
    return result


def _entries(x: np.ndarray, shift: int) -> np.ndarray:
    """By the four lowest bits that stay of the float32."""
    return x.view(np.int32) >> shift & 15


def test_table_of_exp() -> None:
    powers, lost = np.array(lookup_tables.EXP_POWERS), np.array(lookup_tables.EXP_LOST)
    np.testing.assert_allclose(powers * (1 + lost), 2 ** (np.arange(16) / 16), rtol=1e-14)
    r = np.linspace(-1, 1, 101) * math.log(2) / 32
    near = 1 + r + r * r * _horner(r, lookup_tables.EXP_TAIL)
    np.testing.assert_allclose(near, np.exp(r), rtol=3e-9)


def test_table_of_log() -> None:
    m = np.linspace(0.75, 1.5, 3001, dtype=np.float32)[:-1]
    index = _entries(m, 19)
    assert set(index) == set(range(16))
    r = m * np.array(lookup_tables.LOG_INVERSES)[index] - 1
    rest = r + r * r * _horner(r, lookup_tables.LOG_TAIL)
    got = np.array(lookup_tables.LOG_VALUES)[index] + rest
    np.testing.assert_allclose(got, np.log(m.astype("float64")), rtol=3e-8)


def test_table_of_tanh() -> None:
    a = np.geomspace(1e-3, 15.9, 3001, dtype=np.float32)
    index = _entries(np.maximum(a, np.float32(2.0**-4)), 22)
    assert set(index) == set(range(16))
    r = a - np.array(lookup_tables.TANH_CENTRES)[index]
    columns = [np.array(getattr(lookup_tables, f"TANH_{k}"))[index] for k in range(7)]
    np.testing.assert_allclose(_horner(r, columns), np.tanh(a.astype("float64")), rtol=6e-8)
