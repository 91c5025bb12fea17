"""Systems whose matrix is factorised already: lu_solve, lu_unpack, triangular_solve."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.autograd import gradcheck


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
