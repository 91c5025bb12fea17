"""Factors of matrices, and systems whose matrix is factorised already."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.autograd import gradcheck, gradgradcheck


def factors(*sizes: int, complex: bool = False) -> tuple[weft.Tensor, weft.Tensor]:
    """LU and pivots, of which many are exchanges."""
    random = np.random.default_rng(len(sizes))
    least, rows = min(sizes[-2:]), sizes[-2]
    lu = random.uniform(0.5, 1.5, sizes) + 2 * np.eye(*sizes[-2:])
    if complex:
        lu = lu + 1j * random.uniform(-1, 1, sizes)
    pivots = random.integers(np.arange(least), rows, (*sizes[:-2], least)) + 1
    return weft.tensor(lu), weft.tensor(pivots, dtype=weft.int32)


def matrix(lu: weft.Tensor, pivots: weft.Tensor) -> np.ndarray:
    """L @ U with its rows exchanged back, last exchange first."""
    rows, columns = lu.shape[-2:]
    least, values = min(rows, columns), lu.numpy()
    made = (np.tril(values[..., :least], -1) + np.eye(rows, least)) @ np.triu(
        values[..., :least, :]
    )
    for index in np.ndindex(*lu.shape[:-2]):
        for i in reversed(range(least)):
            made[index][[i, pivots[index][i].item() - 1]] = made[index][
                [pivots[index][i].item() - 1, i]
            ]
    return made


@pytest.mark.parametrize("sizes", [(3, 3), (4, 2, 5, 5), (1, 1), (2, 0, 0)], ids=str)
@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solve(sizes: tuple[int, ...], complex: bool, left: bool, adjoint: bool) -> None:
    lu, pivots = factors(*sizes, complex=complex)
    a = matrix(lu, pivots)
    a = a.conj().swapaxes(-1, -2) if adjoint else a
    x = np.random.default_rng(0).standard_normal((2, sizes[-1]) if not left else (sizes[-1], 2))
    b = a @ x if left else x @ a
    got = weft.linalg.lu_solve(lu, pivots, weft.tensor(b), left=left, adjoint=adjoint)
    np.testing.assert_allclose(got.numpy(), np.broadcast_to(x, b.shape), rtol=1e-9, atol=1e-9)


def test_lu_solve_takes_right_hand_sides_of_its_rows() -> None:
    lu, pivots = factors(2, 2)
    for rows in (1, 3):
        with pytest.raises(RuntimeError, match=rf"lu_solve: expected 2 rows .*, got {rows}"):
            weft.linalg.lu_solve(lu, pivots, weft.ones(rows, 1, dtype=weft.float64))


def test_old_names() -> None:
    lu, pivots = factors(3, 3)
    b = weft.randn(2, 3, 1, dtype=weft.float64)
    assert weft.lu_solve(b, lu, pivots).equal(weft.linalg.lu_solve(lu, pivots, b))
    assert b.lu_solve(lu, pivots).equal(weft.linalg.lu_solve(lu, pivots, b))
    for upper in (True, False):
        for transpose in (True, False):
            triangle = lu.triu() if upper else lu.tril()
            found, copy = b.triangular_solve(lu, upper, transpose)
            assert weft.allclose((triangle.mT if transpose else triangle) @ found, b)
            assert copy.equal(lu) and copy.data_ptr() != lu.data_ptr()
    unit = weft.triangular_solve(b, lu, unitriangular=True).solution
    assert weft.allclose((lu.triu(1) + weft.eye(3, dtype=weft.float64)) @ unit, b)


@pytest.mark.parametrize("sizes", [(3, 3), (2, 5, 3), (2, 3, 5)], ids=str)
def test_lu_unpack(sizes: tuple[int, ...]) -> None:
    lu, pivots = factors(*sizes)
    p, lower, upper = weft.lu_unpack(lu, pivots)
    np.testing.assert_allclose((p @ lower @ upper).numpy(), matrix(lu, pivots))
    assert lower.equal(lower.tril()) and upper.equal(upper.triu())
    assert weft.lu_unpack(lu, pivots, unpack_data=False).L.numel() == 0
    assert weft.lu_unpack(lu, pivots, unpack_pivots=False).P.numel() == 0


def test_gradients() -> None:
    lu, pivots = factors(2, 3, 3)
    b = weft.randn(2, 3, 2, dtype=weft.float64, requires_grad=True)
    lu.requires_grad_()
    solve = weft.linalg.lu_solve
    assert gradcheck(lambda a, b: solve(a, pivots, b), (lu, b))
    assert gradcheck(lambda a, b: solve(a, pivots, b, adjoint=True), (lu, b))
    assert gradcheck(lambda a: weft.lu_unpack(a, pivots)[1:], (lu,))
    assert gradcheck(lambda a, b: weft.triangular_solve(b, a).solution, (lu, b))


def test_wrong_factors() -> None:
    lu, pivots = factors(3, 3)
    with pytest.raises(RuntimeError, match="lu_solve: expected square matrices and as many pivots"):
        weft.linalg.lu_solve(lu, pivots[:2], weft.ones(3, 1))
    with pytest.raises(RuntimeError, match="lu_solve: expected pivots of int32"):
        weft.linalg.lu_solve(lu, pivots.long(), weft.ones(3, 1))


# ---- the factors themselves ----

SHAPES = [(3, 3), (2, 4, 3), (2, 3, 4), (1, 1), (0, 0), (2, 0, 3)]


def drawn(*sizes: int, complex: bool = False) -> weft.Tensor:
    random = np.random.default_rng(sum(sizes) + complex)
    made = random.standard_normal(sizes)
    return weft.tensor(made + 1j * random.standard_normal(sizes) if complex else made)


@pytest.mark.parametrize("sizes", SHAPES, ids=str)
@pytest.mark.parametrize("complex", [False, True])
def test_lu(sizes: tuple[int, ...], complex: bool) -> None:
    a = drawn(*sizes, complex=complex)
    p, lower, upper = weft.linalg.lu(a)
    np.testing.assert_allclose((p @ lower @ upper).numpy(), a.numpy(), atol=1e-12)
    assert lower.equal(lower.tril()) and upper.equal(upper.triu())
    packed, pivots, info = weft.linalg.lu_factor_ex(a)
    assert info.dtype == weft.int32 and info.shape == a.shape[:-2] and not info.any()
    again = weft.lu_unpack(packed, pivots)
    assert again.P.to(a.dtype).equal(p) and again.L.equal(lower) and again.U.equal(upper)
    assert weft.lu(a)[0].equal(packed) and a.lu(get_infos=True)[2].equal(info)


def test_singular_factors() -> None:
    zero = weft.zeros(2, 2)
    assert weft.linalg.lu_factor_ex(zero).info == 1
    for call in (weft.linalg.lu_factor, lambda a: weft.linalg.lu_factor_ex(a, check_errors=True)):
        with pytest.raises(weft.linalg.LinAlgError, match="lu_factor: expected regular matrices"):
            call(zero)
    with pytest.raises(RuntimeError, match="lu: expected pivot=True on the CPU, got False"):
        weft.linalg.lu(zero, pivot=False)
    result, info = weft.linalg.solve_ex(zero, weft.ones(2))
    assert info == 1 and not result.isfinite().all()
    with pytest.raises(weft.linalg.LinAlgError):
        weft.linalg.solve_ex(zero, weft.ones(2), check_errors=True)
    with pytest.raises(weft.linalg.LinAlgError, match="ldl_factor: expected regular matrices"):
        weft.linalg.ldl_factor(zero)


@pytest.mark.parametrize("complex", [False, True])
def test_solve_ex(complex: bool) -> None:
    a, b = drawn(2, 3, 3, complex=complex), drawn(2, 3, 2, complex=complex)
    solve, expected = weft.linalg.solve_ex, weft.linalg.solve
    assert weft.allclose(solve(a, b).result, expected(a, b))
    assert weft.allclose(solve(a, b.mT, left=False).result, expected(a, b.mT, left=False))
    assert weft.allclose(solve(a, b[..., 0]).result, expected(a, b[..., 0]))


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl(complex: bool, hermitian: bool) -> None:
    a = drawn(2, 5, 5, complex=complex)
    a = a + (a.mH if hermitian else a.mT)
    x = drawn(3, 1, 5, 2, complex=complex)
    factors = weft.linalg.ldl_factor(a, hermitian=hermitian)
    assert factors.LD.equal(factors.LD.tril()) and factors.pivots.dtype == weft.int32
    solved = weft.linalg.ldl_solve(*factors, a @ x, hermitian=hermitian)
    np.testing.assert_allclose(solved.numpy(), np.broadcast_to(x.numpy(), (3, 2, 5, 2)), rtol=1e-8)


@pytest.mark.parametrize(
    "pivots", [[0, 1, 2], [4, 2, 3], [-1, 2, 3], [1, 2, -3], [-9, -9, 3], [1, 2]], ids=str
)
def test_wrong_pivots_of_ldl(pivots: list[int]) -> None:
    """LAPACK would read the rows that they name."""
    with pytest.raises(RuntimeError, match="ldl_solve: expected pivots of"):
        weft.linalg.ldl_solve(weft.eye(3), weft.tensor(pivots, dtype=weft.int32), weft.ones(3, 1))


@pytest.mark.parametrize("sizes", [(4, 3), (3, 3), (2, 4, 2), (0, 0)], ids=str)
@pytest.mark.parametrize("complex", [False, True])
def test_reflections(sizes: tuple[int, ...], complex: bool) -> None:
    x = drawn(*sizes, complex=complex)
    a, tau = weft.geqrf(x)
    q = weft.linalg.householder_product(a, tau)
    one = weft.eye(sizes[-1], dtype=x.dtype)
    np.testing.assert_allclose(
        (q.mH @ q).numpy(), np.broadcast_to(one, q.mH.shape[:-1] + (sizes[-1],)), atol=1e-12
    )
    np.testing.assert_allclose((q @ a[..., : sizes[-1], :].triu()).numpy(), x.numpy(), atol=1e-12)
    assert weft.orgqr(a, tau).equal(q)
    made = weft.ormqr(a, tau, x, transpose=True)
    np.testing.assert_allclose(made.numpy(), a.triu().numpy(), atol=1e-12)
    assert weft.allclose(weft.ormqr(a, tau, made), x)
    assert weft.allclose(weft.ormqr(a, tau, x.mH, left=False), made.mH)


#: U, S and V of A [*, m, n], as many columns as S has values
SINGULAR = {
    "svd": weft.svd,
    "svd, complete": lambda a: weft.svd(a, some=False),
    "svd of a method": lambda a: a.svd(),
    "linalg.svd": lambda a: (lambda u, s, vh: (u, s, vh.mH))(*weft.linalg.svd(a)),
    "svd_lowrank": lambda a: weft.svd_lowrank(a, min(a.shape[-2:])),
    "pca_lowrank": lambda a: weft.pca_lowrank(a, min(a.shape[-2:]), center=False),
}


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("sizes", [(3, 3), (2, 4, 3), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("complex", [False, True])
def test_singular_vectors(name: str, sizes: tuple[int, ...], complex: bool) -> None:
    """Vectors are free in one phase for each column: only their product tells a missing conjugate."""
    a = drawn(*sizes, complex=complex)
    u, s, v = SINGULAR[name](a)
    k = s.shape[-1]
    made = (u[..., :k] * s.unsqueeze(-2)) @ v[..., :k].mH
    np.testing.assert_allclose(made.numpy(), a.numpy(), atol=1e-11)


def test_singular_values_alone() -> None:
    a = drawn(2, 4, 3, complex=True)
    u, s, v = weft.svd(a, compute_uv=False)
    assert s.equal(weft.svd(a).S) and u.shape == (2, 4, 3) and v.shape == (2, 3, 3)
    assert u.dtype == v.dtype == a.dtype and not u.any() and not v.any()
    assert weft.svd(a, some=False, compute_uv=False).U.shape == (2, 4, 4)


FUNCTIONS = {
    "lu": lambda a: weft.linalg.lu(a)[1:],
    "lu_factor": lambda a: weft.linalg.lu_factor(a).LU,
    "eigvals": lambda a: weft.linalg.eigvals(a),
    "eig": lambda a: weft.linalg.eig(a)[1].abs(),
    "solve_ex": lambda a: weft.linalg.solve_ex(a, a[..., :2]).result,
    "householder_product": lambda a: weft.linalg.householder_product(a, a[..., 0, :] * 0.1),
    "ormqr": lambda a: weft.ormqr(a, a[..., 0, :] * 0.1, a),
}


@pytest.mark.parametrize(
    ("name", "sizes"),
    [(name, sizes) for name in FUNCTIONS for sizes in [(3, 3), (2, 2, 2)]]
    + [(name, sizes) for name in ("lu", "lu_factor") for sizes in [(4, 3), (3, 4)]],
    ids=str,
)
@pytest.mark.parametrize("complex", [False, True])
def test_gradients_of_factors(name: str, sizes: tuple[int, ...], complex: bool) -> None:
    a = drawn(*sizes, complex=complex).requires_grad_()
    assert gradcheck(FUNCTIONS[name], (a,))
    assert gradgradcheck(FUNCTIONS[name], (a,))


def test_without_gradient() -> None:
    x = weft.eye(3).requires_grad_()
    for call in (weft.geqrf, weft.linalg.ldl_factor):
        result = call(x)[0]
        with pytest.raises(NotImplementedError, match="expected self without gradient, got"):
            result.sum().backward()


@pytest.mark.parametrize("name", ["eig", "symeig", "solve", "lstsq", "matrix_rank"])
def test_removed_names(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"{name}: expected linalg"):
        getattr(weft, name)(weft.eye(2))


@pytest.mark.threads
@pytest.mark.parametrize("dtype", [weft.float32, weft.float64, weft.complex64, weft.complex128])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 11, 12, 13, 20])
def test_many_small_matrices_are_those_of_numpy(n, dtype):
    weft.set_num_threads(2)
    weft.manual_seed(n)
    a = weft.randn(700, n, n, dtype=dtype)
    a[::3].diagonal(0, 1, 2).zero_()  # whose pivots are elsewhere
    a[::3] += weft.eye(n, dtype=dtype).flip(0) * 3
    b = weft.randn(700, n, 2, dtype=dtype)
    exact, sides = a.numpy().astype(np.complex128), b.numpy().astype(np.complex128)
    eps = weft.finfo(dtype).eps
    close = np.linalg.cond(exact)[:, None, None] * n * eps * 20

    def check(got, wanted):
        scale = np.abs(wanted).max((1, 2), keepdims=True)
        assert (np.abs(got.numpy() - wanted) <= close * scale).all()

    check(weft.linalg.inv(a), np.linalg.inv(exact))
    check(weft.linalg.solve(a, b), np.linalg.solve(exact, sides))
    determinants = np.linalg.det(exact)[:, None, None]
    check(weft.linalg.det(a)[:, None, None], determinants)
    sign, size = weft.linalg.slogdet(a)
    check((sign * size.exp())[:, None, None], determinants)


@pytest.mark.parametrize("n", [2, 5, 12, 13])
def test_small_singular_matrices_are_told(n):
    a = weft.eye(n).repeat(6, 1, 1)
    a[3, n - 1] = 0
    a[4, :, 0] = 0
    inverse, infos = weft.linalg.inv_ex(a)
    assert infos.tolist() == [0, 0, 0, n, 1, 0]
    assert weft.equal(inverse[5], weft.eye(n)) and inverse[3].isnan().all()
    assert weft.linalg.det(a).tolist() == [1, 1, 1, 0, 0, 1]
    assert weft.linalg.slogdet(a)[1].tolist()[3] == -float("inf")
    for call in (weft.linalg.inv, lambda m: weft.linalg.solve(m, weft.ones(6, n))):
        with pytest.raises(RuntimeError, match="batch element 3"):
            call(a)
    a[2] = float("nan")
    assert weft.linalg.det(a)[2].isnan() and weft.linalg.det(a)[1] == 1
