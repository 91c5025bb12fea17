"""lobpcg: a few eigenvalues of a large symmetric matrix."""

from typing import Any

import pytest

import weft


def symmetric(*shape: int, dtype: Any = weft.float64) -> Any:
    weft.manual_seed(3)
    a = weft.randn(*shape, shape[-1], dtype=dtype)
    return a @ a.mT + weft.eye(shape[-1], dtype=dtype)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("method", [None, "basic", "ortho"])
@pytest.mark.parametrize("shape", [(12,), (2, 3, 15)])
def test_eigenpairs(shape: tuple[int, ...], method: Any, largest: bool) -> None:
    a = symmetric(*shape)
    values, vectors = weft.lobpcg(a, k=3, largest=largest, method=method)
    known = weft.linalg.eigvalsh(a)
    wanted = known.flip(-1)[..., :3] if largest else known[..., :3]
    assert values.shape == (*shape[:-1], 3) and vectors.shape == (*shape, 3)
    assert weft.allclose(values, wanted)
    assert weft.allclose(a @ vectors, vectors * values.unsqueeze(-2), atol=1e-5)
    assert weft.allclose(vectors.mT @ vectors, weft.eye(3, dtype=a.dtype), atol=1e-10)


def test_generalised_and_preconditioned() -> None:
    a, b = symmetric(20), symmetric(20).flip(0, 1)
    values, vectors = weft.lobpcg(a, k=2, B=b, iK=weft.linalg.inv(a), largest=False, tol=1e-10)
    assert weft.allclose(a @ vectors, b @ vectors * values)
    assert weft.allclose(vectors.T @ b @ vectors, weft.eye(2, dtype=a.dtype), atol=1e-10)
    root = weft.linalg.inv(weft.linalg.cholesky(b))
    assert weft.allclose(values, weft.linalg.eigvalsh(root @ a @ root.T)[:2])


def test_sparse() -> None:
    a = weft.diag(weft.arange(40.0))
    weft.manual_seed(0)
    values, vectors = weft.lobpcg(a.to_sparse(), k=2, n=4)
    assert weft.allclose(values, weft.tensor([39.0, 38.0]))
    assert weft.allclose(a @ vectors, vectors * values, atol=0.1)


def test_steps_and_dependent_columns() -> None:
    a = weft.diag(weft.arange(9.0))
    start = weft.eye(9)[:, 4:7]
    assert weft.equal(weft.lobpcg(a, X=start, niter=0)[0], weft.tensor([6.0, 5.0, 4.0]))
    assert weft.lobpcg(a, k=1, X=weft.ones(9, 2), niter=100)[0].item() == pytest.approx(8)


def test_gradients() -> None:
    start = weft.eye(9, dtype=weft.float64)[:, :3]

    def run(x: Any) -> Any:
        values, vectors = weft.lobpcg(x + x.mT, k=2, X=start, tol=1e-13)
        return values, vectors.abs()

    assert weft.autograd.gradcheck(run, [symmetric(9).requires_grad_()])


REFUSED: dict[str, tuple[Any, Any]] = {
    "not square": (lambda t: t.lobpcg(t.ones(9, 8)), RuntimeError),
    "integers": (lambda t: t.lobpcg(t.eye(9, dtype=t.int64)), RuntimeError),
    "too many": (lambda t: t.lobpcg(t.eye(9), k=4), ValueError),
    "rows of X": (lambda t: t.lobpcg(t.eye(9), X=t.ones(8, 2)), RuntimeError),
    "a method": (lambda t: t.lobpcg(t.eye(9), method="fast"), ValueError),
    "a tracker": (lambda t: t.lobpcg(t.eye(9), tracker=print), NotImplementedError),
    "B and a gradient": (
        lambda t: t.lobpcg(t.eye(9).requires_grad_(), B=t.eye(9)), NotImplementedError,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    call, error = REFUSED[case]
    with pytest.raises(error, match=r"^lobpcg: expected"):
        call(weft)


@pytest.mark.parity
@pytest.mark.parametrize("largest", [True, False])
def test_as_pytorch(largest: bool) -> None:
    torch = pytest.importorskip("torch")
    a = symmetric(4, 18)
    start = weft.eye(18, dtype=a.dtype)[:, :4]
    start = start.expand(4, 18, 4).contiguous()
    ours = weft.lobpcg(a, k=2, X=start, largest=largest, tol=1e-10)
    theirs = torch.lobpcg(
        *(torch.from_numpy(a.numpy()), 2), X=torch.from_numpy(start.numpy()),
        largest=largest, tol=1e-10,
    )  # fmt: skip
    for mine, other in zip(ours, theirs):
        assert torch.allclose(torch.from_numpy(mine.numpy()).abs(), other.abs(), atol=1e-6)
