"""Cases of the factors of matrices. Gradients of lu and eig: tests/test_factors.py."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .spec import A, Fails, S, case, normal


def _matrices(*shape: int) -> weft.Tensor:
    return weft.from_numpy(normal(np.random.default_rng(len(shape)), shape))


def _eig(function: Any) -> None:
    for shape in ((3, 3), (2, 4, 4), (0, 0), (1, 1)):
        for x in (_matrices(*shape), weft.complex(_matrices(*shape), _matrices(*shape).mT)):
            values, vectors = function(x)
            np.testing.assert_allclose(
                (x.to(values.dtype) @ vectors).numpy(), (vectors * values.unsqueeze(-2)).numpy(), atol=1e-10
            )
            np.testing.assert_allclose(weft.linalg.vector_norm(vectors, dim=-2).numpy(), 1, rtol=1e-10)


def _eigvals(function: Any) -> None:
    x = _matrices(2, 4, 4)
    np.testing.assert_allclose(
        np.sort_complex(function(x).numpy()), np.sort_complex(np.linalg.eigvals(x.numpy())), rtol=1e-9
    )


_NO_SQUARE = Fails(S(A((2, 3))), RuntimeError, "linalg_eig: expected square matrices, got shape (2, 3)")
_INFINITE = Fails(S(A((2, 2), lambda r, s: np.full(s, np.inf))), RuntimeError, "linalg_eig: expected finite entries, got infs or NaNs")
case("linalg_eig", check=_eig, grad=False, fails=[_NO_SQUARE, _INFINITE])
case("linalg_eigvals", check=_eigvals, grad=False, fails=[_NO_SQUARE])


def _geqrf(function: Any) -> None:
    for shape in ((4, 3), (3, 4), (2, 3, 3), (0, 2)):
        x = _matrices(*shape)
        a, tau = function(x)
        assert tau.shape[-1] == min(shape[-2:])
        np.testing.assert_allclose(a.triu().abs().numpy(), weft.linalg.qr(x, "complete").R.abs().numpy(), atol=1e-12)


case("geqrf", check=_geqrf, grad=False, fails=[Fails(S(A((3,))), RuntimeError, "geqrf: expected matrices, got shape (3,)")])
