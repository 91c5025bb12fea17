"""Cases of products of several kinds, and of decompositions."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft
from weft.autograd import gradcheck, gradgradcheck

from .spec import A, Fails, S, case, nonzero, normal


def _regular(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Well conditioned: the diagonal outweighs the rest."""
    return rng.uniform(-1, 1, shape) + 3 * np.eye(*shape[-2:])


def _definite(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    half = _regular(rng, shape)
    return half @ np.swapaxes(half, -1, -2)


_V = A((4, 3))
case("linalg_cross", [S(_V, _V), S(A((3, 4)), A((3, 4)), dim=0), S(_V, A((1, 3)))], lambda x, y, *, dim=-1: np.cross(x, y, axis=dim), tolerance=8,
     fails=(Fails(S(A((3,)), _V), RuntimeError, "linalg.cross: expected as many dims, and 3 entries along dim -1, got shapes (3,) and (4, 3)"),
            Fails(S(A((4, 1)), _V), RuntimeError, "linalg.cross: expected as many dims, and 3 entries along dim -1, got shapes (4, 1) and (4, 3)")))  # fmt: skip
case("cross", [S(_V, _V), S(A((3, 4)), A((3, 4)), 0)], lambda x, y, dim=-1: np.cross(x, y, axis=dim), tolerance=8)
case("kron", [S(A((2, 3)), A((4, 2))), S(A((3,)), A((2, 2)))], np.kron)


def _cdist(x: np.ndarray, y: np.ndarray, p: float = 2) -> np.ndarray:
    difference = np.abs(x[..., :, None, :] - y[..., None, :, :])
    return np.max(difference, -1) if p == np.inf else np.sum(difference**p, -1) ** (1 / p)


case("_distances", [S(A((5, 3)), A((4, 3)), 2), S(A((2, 1, 5, 3)), A((3, 4, 3)), 1), S(A((5, 0)), A((4, 0)), 1), S(A((0, 3)), A((4, 3)), 2), S(A((6, 70)), A((35, 70)), 1)], _cdist, tolerance=20, parity=False,
     fails=(Fails(S(A((5, 3)), A((4, 3)), 3), RuntimeError, "cdist: expected p of 1 or 2, got 3"),
            Fails(S(A((5, 3)), A((4, 2)), 2), RuntimeError, "cdist: expected shapes (..., m, k) and (..., n, k), got (5, 3) and (4, 2)"),
            Fails(S(A((3,)), A((3,)), 1), RuntimeError, "cdist: expected shapes (..., m, k) and (..., n, k), got (3,) and (3,)")))  # fmt: skip
case("cdist", [S(A((5, 3)), A((4, 3))), S(A((67, 35)), A((40, 35))), S(A((2, 5, 3)), A((2, 4, 3)), 1), S(A((5, 3)), A((4, 3)), 3)], _cdist, tolerance=20)
case("dist", [S(A((3, 4)), A((3, 4))), S(A((3, 4)), A((4,)), 1)], lambda x, y, p=2: np.sum(np.abs(x - y) ** p) ** (1 / p), domain=nonzero,
     tolerance=20)  # fmt: skip
case("tensordot", [S(A((2, 3, 4)), A((4, 3, 5)), [1, 2], [1, 0]), S(A((2,)), A((3,)), [], [])], lambda x, y, a, b: np.tensordot(x, y, (a, b)),
     tolerance=40)  # fmt: skip
case("einsum", [S("bij,bjk->ik", [A((2, 3, 4)), A((2, 4, 5))]), S("...i,ij", [A((2, 3)), A((3, 2))]), S("ii->i", [A((3, 3))]),
                S("ij,jk,kl->il", [A((2, 3)), A((3, 1)), A((4, 2))])],
     lambda equation, xs: np.einsum(equation, *xs), tolerance=60)  # fmt: skip
case("inner", [S(A((3, 4)), A((2, 4))), S(A((4,)), A((4,))), S(A(()), A((3,)))], np.inner, tolerance=40)
_S = A((3, 3), _regular)
_B = A((2, 3, 3), _regular)
case("matrix_power", [S(_S, 3), S(_B, 1), S(_S, -2)], np.linalg.matrix_power, tolerance=200)

_SHAPE = "expected square matrices, got shape (2, 3)"
case("linalg_inv", [S(_S), S(_B), S(A((0, 0)))], np.linalg.inv, tolerance=100,
     fails=(Fails(S(A((2, 3))), RuntimeError, f"linalg_inv: {_SHAPE}"),))  # fmt: skip
case("linalg_inv_ex", [S(_S), S(_B), S(A((0, 0)))], lambda x: (np.linalg.inv(x), np.zeros(x.shape[:-2], "int32")), tolerance=100, grad=False)
case("inverse", [S(_S)], np.linalg.inv, tolerance=100)
case("linalg_det", [S(_S), S(_B)], np.linalg.det, tolerance=100)
case("det", [S(_S)], np.linalg.det, tolerance=100)


def _slogdet(function: Any) -> None:
    x = weft.from_numpy(_regular(np.random.default_rng(1), (2, 3, 3))).requires_grad_()
    assert gradcheck(lambda t: function(t)[1], [x])
    assert gradgradcheck(lambda t: function(t)[1], [x])


for _name in ("linalg_slogdet", "slogdet"):
    case(_name, [S(_S), S(_B)], lambda x: tuple(np.linalg.slogdet(x)), tolerance=100, grad=False, check=_slogdet)
case("logdet", [S(A((3, 3), _definite))], lambda x: np.linalg.slogdet(x)[1], tolerance=100)


def _solve(a: np.ndarray, b: np.ndarray, *, left: bool = True) -> np.ndarray:
    if not left:
        return np.swapaxes(_solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)
    vector = b.ndim == 1 or b.shape == a.shape[:-1]
    if vector:
        return np.linalg.solve(a, b[..., None])[..., 0]
    # In full: NumPy before 2 takes one matrix against a stack for a stack of vectors.
    return np.linalg.solve(a, np.broadcast_to(b, a.shape[:-2] + b.shape[-2:]))


case("linalg_solve", [S(_S, A((3,))), S(_S, A((3, 2))), S(_B, A((2, 3, 2))), S(_B, A((3, 2))), S(_B, A((2, 3))), S(_S, A((2, 3)), left=False)],
     _solve, tolerance=200, fails=(Fails(S(_S, A((4, 2))), RuntimeError, "linalg_solve: expected right-hand sides of 3 rows, got shape (4, 2)"),))  # fmt: skip


def _triangular(a: np.ndarray, b: np.ndarray, *, upper: bool, left: bool = True, unitriangular: bool = False) -> np.ndarray:
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        a = a * (1 - np.eye(a.shape[-1])) + np.eye(a.shape[-1])
    return _solve(a, b, left=left)


case("linalg_solve_triangular",
     [S(_S, A((3, 2)), upper=True), S(_B, A((2, 3, 2)), upper=False), S(_S, A((2, 3)), upper=True, left=False),
      S(_S, A((3, 2)), upper=False, unitriangular=True)],
     _triangular, tolerance=200)  # fmt: skip

_D = A((3, 3), _definite)


def _symmetric(function: Any, definite: bool = True) -> Any:
    """Derivatives along symmetric matrices: what lies across the diagonal is the same number."""

    def check(operator: Any) -> None:
        x = weft.from_numpy(_regular(np.random.default_rng(3), (3, 3))).requires_grad_()

        def run(half: weft.Tensor) -> Any:
            return function(operator, half @ half.transpose(-2, -1) if definite else half)

        assert gradcheck(run, [x])
        assert gradgradcheck(run, [x])

    return check


case("linalg_cholesky", [S(_D), S(A((2, 3, 3), _definite)), S(_D, upper=True)],
     lambda x, *, upper=False: np.swapaxes(np.linalg.cholesky(x), -1, -2) if upper else np.linalg.cholesky(x), tolerance=100, grad=False,
     check=_symmetric(lambda f, x: f(x)))  # fmt: skip
case("linalg_cholesky_ex", [S(_D), S(A((2, 3, 3), _definite))], lambda x: (np.linalg.cholesky(x), np.zeros(x.shape[:-2], "int32")),
     tolerance=100, grad=False)  # fmt: skip
case("cholesky", [S(_D)], np.linalg.cholesky, tolerance=100, grad=False)


def _from_triangle(b: np.ndarray, t: np.ndarray, upper: bool = False) -> np.ndarray:
    t = np.triu(t) if upper else np.tril(t)
    return np.linalg.solve(t.T @ t if upper else t @ t.T, b)


def _triangle(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.tril(_regular(rng, shape))


case("cholesky_solve", [S(A((3, 2)), A((3, 3), _triangle)), S(A((3, 2)), A((3, 3), lambda r, s: _triangle(r, s).T), True)], _from_triangle,
     tolerance=200, grad=False)  # its gradient reaches the triangle that is not read: see test_grad_forms  # fmt: skip
case("cholesky_inverse", [S(A((3, 3), _triangle))], lambda t: np.linalg.inv(t @ t.T), tolerance=200, grad=False)  # as of cholesky_solve


def _eigh_signless(f: Any, x: weft.Tensor) -> Any:
    values, vectors = f(x)
    return values, vectors.abs()


def _eigh(function: Any) -> None:
    x = weft.from_numpy(_definite(np.random.default_rng(5), (2, 4, 4)))
    values, vectors = function(x)
    np.testing.assert_allclose(values.numpy(), np.linalg.eigvalsh(x.numpy()), rtol=1e-12)
    np.testing.assert_allclose((vectors @ values.diag_embed() @ vectors.transpose(-2, -1)).numpy(), x.numpy(), rtol=1e-10)
    _symmetric(_eigh_signless)(function)


case("linalg_eigh", check=_eigh, grad=False)
case("linalg_eigvalsh", [S(_D), S(A((2, 3, 3), _definite))], np.linalg.eigvalsh, tolerance=200, grad=False)


def _qr(function: Any) -> None:
    for shape in ((4, 3), (3, 4), (2, 3, 3), (0, 2)):
        x = weft.from_numpy(normal(np.random.default_rng(7), shape))
        for mode in ("reduced", "complete"):
            q, r = function(x, mode)
            np.testing.assert_allclose((q @ r).numpy(), x.numpy(), atol=1e-12)
            assert r.triu().equal(r)
            assert q.shape[-1] == (shape[-2] if mode == "complete" else min(shape[-2:]))
    _symmetric(lambda f, x: f(x[:, :2]), definite=False)(function)


case("linalg_qr", check=_qr, grad=False)
case("qr", check=lambda f: np.testing.assert_allclose((f(x := weft.eye(3) + 1)[0] @ f(x)[1]).numpy(), x.numpy(), atol=1e-6), grad=False)


def _svd_invariant(f: Any, x: weft.Tensor) -> Any:
    u, s, vh = f(x, False)
    return u.abs(), s, vh.abs()


def _svd(function: Any) -> None:
    for shape in ((4, 3), (3, 4), (2, 3, 3), (0, 2)):
        x = weft.from_numpy(normal(np.random.default_rng(9), shape))
        for full in (True, False):
            u, s, vh = function(x, full)
            k = min(shape[-2:])
            product = u[..., :k] @ s.diag_embed() @ vh[..., :k, :]
            np.testing.assert_allclose(product.numpy(), x.numpy(), atol=1e-12)
            assert u.shape[-1] == (shape[-2] if full else k)
    _symmetric(_svd_invariant, definite=False)(function)
    _symmetric(lambda f, x: _svd_invariant(f, x[:, :2]), definite=False)(function)
    _symmetric(lambda f, x: _svd_invariant(f, x[:2]), definite=False)(function)


case("linalg_svd", check=_svd, grad=False)
case("linalg_svdvals", [S(A((4, 3))), S(A((2, 3, 3)))], lambda x: np.linalg.svd(x, compute_uv=False), tolerance=200)


def _old_svd(function: Any) -> None:
    x = weft.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    u, s, v = function(x)
    np.testing.assert_allclose((u @ s.diag_embed() @ v.t()).numpy(), x.numpy(), rtol=1e-5)


case("svd", check=_old_svd, grad=False)


def _scaled(function: Any) -> None:
    """tests/test_float8.py has the other arguments."""
    one = weft.ones(2, 2).to(weft.float8_e4m3fn)
    assert function(one, one, weft.tensor(3.0), weft.tensor(0.5)).float().tolist() == [[3, 3]] * 2


case("_scaled_mm", check=_scaled, grad=False)


def _whole(function: Any) -> None:
    """tests/test_int8_products.py has sizes and layouts."""
    a = weft.tensor([[127, -128], [3, 4]], dtype=weft.int8)
    assert function(a, a).tolist() == [[127 * 127 - 128 * 3, -128 * 127 - 128 * 4], [393, -368]]


case("_int_mm", check=_whole, grad=False)


def _weighted(function: Any) -> None:
    weight = weft.tensor([[127, -128], [3, 4]], dtype=weft.int8)
    rows, scales = weft.tensor([[1.0, 2.0]]), weft.tensor([0.5, 2.0])
    assert function(rows, weight, scales).tolist() == [[-64.5, 22.0]]


case("_weight_int8pack_mm", check=_weighted, grad=False)
