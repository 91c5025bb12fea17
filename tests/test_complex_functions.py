"""Elementary functions of complex numbers: NumPy's values, mpmath's near poles, gradients."""

from __future__ import annotations

import cmath
import math

import mpmath
import numpy as np
import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft

FUNCTIONS = {
    "exp2": lambda z: mpmath.power(2, z),
    "expm1": mpmath.expm1,
    "log2": lambda z: mpmath.log(z, 2),
    "log10": mpmath.log10,
    "log1p": mpmath.log1p,
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
}
parts = st.floats(-4, 4, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
@examples(60)
@given(parts, parts)
def test_values(name, x, y):
    z = complex(x, y)
    if z in (0, 1, -1, 1j, -1j):  # poles and ends of cuts
        return
    got = getattr(weft, name)(weft.tensor([z], dtype=weft.complex128)).tolist()[0]
    wanted = complex(FUNCTIONS[name](mpmath.mpc(z.real, z.imag)))
    on_a_cut = x == 0 or y == 0  # there mpmath does not look at the sign of a zero
    if on_a_cut and not cmath.isclose(got, wanted, rel_tol=1e-12, abs_tol=1e-15):
        wanted = complex(
            getattr(
                np,
                name.replace("acos", "arccos").replace("asin", "arcsin").replace("atan", "arctan"),
            )(np.complex128(z))
        )
    assert cmath.isclose(got, wanted, rel_tol=1e-12, abs_tol=1e-15)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name):
    z = weft.tensor([0.3 + 0.4j, -1.2 + 0.7j, 0.5 - 2j, 2.5 - 0.3j], dtype=weft.complex128)
    assert weft.autograd.gradcheck(getattr(weft, name), z.requires_grad_())


@pytest.mark.parametrize("name", ["abs", "angle", "sgn"])
def test_gradients_of_polar_parts(name):
    z = weft.tensor([0.3 + 0.4j, -1.2 + 0.7j, 0.5 - 2j, -2.5 - 0.3j], dtype=weft.complex128)
    assert weft.autograd.gradcheck(getattr(weft, name), z.requires_grad_())


@pytest.mark.parametrize("near", [1 + 1e-8j, 1.0001 + 0j, -0.9999 + 1e-3j])
def test_atanh_near_its_poles(near):
    got = weft.atanh(weft.tensor([near], dtype=weft.complex128)).tolist()[0]
    assert cmath.isclose(got, cmath.atanh(near), rel_tol=1e-11)


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize(
    "options", [{}, {"dim": 1}, {"dim": 0, "correction": 0}, {"dim": (0, 1), "keepdim": True}]
)
def test_spread(name, options):
    generator = np.random.default_rng(0)
    z = generator.normal(size=(4, 5)) + 1j * generator.normal(size=(4, 5))
    got = getattr(weft, name)(weft.tensor(z), **options)
    wanted = getattr(np, name)(
        z,
        axis=options.get("dim"),
        ddof=options.get("correction", 1),
        keepdims=options.get("keepdim", False),
    )
    assert got.dtype == weft.float64
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12)
    leaf = weft.tensor(z, requires_grad=True)
    assert weft.autograd.gradcheck(lambda t: getattr(weft, name)(t, **options), leaf)


def test_logsumexp():
    z = weft.tensor([[0.3 + 0.4j, -1.2 + 0.7j], [800 - 2j, 799 + 1j]], requires_grad=True)
    got = weft.logsumexp(z, 1)
    shifted = np.log(np.exp(z.detach().numpy() - [[0], [800]]).sum(1)) + [0, 800]
    np.testing.assert_allclose(got.detach().numpy(), shifted, rtol=1e-6)
    small = weft.tensor([0.3 + 0.4j, -1.2 + 0.7j], dtype=weft.complex128, requires_grad=True)
    assert weft.autograd.gradcheck(lambda t: weft.logsumexp(t, 0), small)


@pytest.mark.parametrize("part", [lambda z: z.real, lambda z: z.imag, weft.imag])
def test_parts_are_views(part):
    z = weft.tensor([[1 + 2j, 3 + 4j, 5j], [6 + 1j, 7, 8 - 1j]])[:, ::2]
    before = part(z).tolist()
    part(z).mul_(10)
    assert part(z).tolist() == [[10 * x for x in row] for row in before]
    leaf = weft.tensor([1 + 2j, 3 - 4j], dtype=weft.complex128, requires_grad=True)
    assert weft.autograd.gradcheck(part, leaf)


SPECIAL = [0.0, -0.0, 0.5, -1.0, 2.0, -30.0, 800.0, 1e30, math.inf, -math.inf, math.nan]
SPECIAL_VALUES = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "log", "sqrt", "sinh", "cosh", "tanh")},
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "expm1", "log2", "log10")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asinh", "acosh", "atanh")},
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
}


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", SPECIAL_VALUES)
def test_special_values(name, dtype):
    """Those of C's Annex G, as NumPy has them. Beside a NaN it leaves signs open."""
    z = np.empty((len(SPECIAL), len(SPECIAL)), dtype)
    z.real, z.imag = np.array(SPECIAL)[:, None], SPECIAL
    with np.errstate(all="ignore"):
        wanted = SPECIAL_VALUES[name](z)
    if name == "acosh":  # which gives NaN + NaN i of 0 + NaN i, in NumPy before 2.3
        wanted.imag[(z.real == 0) & np.isnan(z.imag)] = math.pi / 2
    got = getattr(weft, name)(weft.from_numpy(z)).numpy()
    rtol = 1e-14 if dtype == np.complex128 else 4e-6
    for part in ("real", "imag"):
        a, b = getattr(got, part), getattr(wanted, part)
        unsure = np.isnan(z) | np.isnan(wanted)
        a, b = (np.where(unsure, np.abs(x), x) for x in (a, b))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol, err_msg=part)
        zero = (a == 0) & ~unsure
        np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]), err_msg=part)


def test_finite_results_of_great_arguments():
    """Beyond the range of e^x, of |z| and of |z| ** 2, but not of the result."""
    for name, z, wanted in (
        ("exp", 710 + 1e-3j, cmath.exp(700 + 1e-3j) * math.exp(10)),
        ("sinh", 711 + 1e-3j, cmath.sinh(700 + 1e-3j) * math.exp(11)),
        ("cosh", -711 + 1e-3j, cmath.cosh(-700 + 1e-3j) * math.exp(11)),
        ("sin", 1e-3 + 711j, cmath.sin(1e-3 + 700j) * math.exp(11)),
        ("sqrt", 1.5e308 + 1.5e308j, cmath.sqrt(1.5e300 + 1.5e300j) * 1e4),
        ("atanh", 1e200 + 1e100j, 1e-200 + math.pi / 2 * 1j),
        ("tanh", 30 + 1j, cmath.tanh(30 + 1j)),
    ):
        got = getattr(weft, name)(weft.tensor([z], dtype=weft.complex128))[0].item()
        assert math.isclose(got.real, wanted.real, rel_tol=1e-12), name
        assert math.isclose(got.imag, wanted.imag, rel_tol=1e-12), name


@pytest.mark.parametrize("exponent", [1, 2, 3, -1, -2, 0.5, -0.5])
def test_powers_by_common_exponents_are_exact(exponent):
    """As products, quotients and roots: the logarithm would give 1j ** 2 an imaginary part."""
    z = np.array([1j, 2 - 0j, -4, 3 + 4j, 1e150j, complex(0, math.inf)] * 3)
    root = np.sqrt(z) if exponent % 1 else z
    power = {0.5: 1, -0.5: -1}.get(exponent, exponent)
    wanted = np.ones_like(z)
    with np.errstate(all="ignore"):
        for _ in range(abs(power)):
            wanted = wanted * root if abs(power) > 1 else root
        wanted = 1 / wanted if power < 0 else wanted
    got = weft.from_numpy(z) ** exponent
    np.testing.assert_allclose(got.numpy(), wanted, rtol=4e-16, atol=0)
    twice = weft.from_numpy(z)
    np.testing.assert_array_equal(twice.pow_(exponent).numpy(), got.numpy())


def test_division_by_zero():
    z = weft.tensor([1 - 2j, 3 + 0j, complex(math.inf, 1), 0j])
    for zero in (0j, -0j, complex(-0.0, 0.0)):
        quotient = z / weft.tensor(zero)
        parts = [repr(x) for z in quotient.tolist() for x in (z.real, z.imag)]
        assert parts == ["inf", "-inf", "inf", "nan", "inf", "inf", "nan", "nan"]
    assert repr(weft.tensor(0j).reciprocal().item()) == repr(complex(math.inf, math.nan))


@pytest.mark.parametrize("dtype", [weft.complex64, weft.complex128])
def test_powers_of_zero(dtype):
    """As in the limit: 0, 1, infinite, or no number where the modulus of the power has no limit."""
    powers = [1j, -2.5j, 1 + 1j, 0.5 - 3j, -1 + 1j, 0j, 2 + 0j]
    zeros, exponents = weft.zeros(len(powers), dtype=dtype), weft.tensor(powers, dtype=dtype)
    by_numbers = weft.stack([weft.zeros((), dtype=dtype) ** power for power in powers])
    for got in (zeros**exponents, 0j**exponents, by_numbers):
        nan, zero, infinite = got.isnan().tolist(), (got == 0).tolist(), got.isinf().tolist()
        assert nan[:2] == [True, True] and not any(zero[:2]) and not any(infinite[:2])
        assert zero[2:] == [True, True, False, False, True] and infinite[4] and got[5] == 1
