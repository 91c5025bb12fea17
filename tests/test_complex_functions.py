"""Elementary functions of complex numbers: NumPy's values, mpmath's near poles, gradients."""

from __future__ import annotations

import cmath

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
