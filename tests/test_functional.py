"""The functions of weft.functional and weft.linalg against NumPy, and what integers refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.autograd import gradcheck, gradgradcheck
from weft.nn import functional as F

RNG = np.random.default_rng(11)


def _pair(*shape: int) -> tuple[weft.Tensor, np.ndarray]:
    array = RNG.normal(size=shape)
    return weft.from_numpy(array.copy()), array


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
        ("bqhd,bkhd->bhqk", [(2, 3, 4, 5), (2, 6, 4, 5)]),
        ("i,j->ij", [(3,), (4,)]),
        ("ij->ji", [(3, 4)]),
        ("ij->", [(3, 4)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("i,i->i", [(3,), (3,)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("ij,k->ik", [(2, 3), (4,)]),
        ("ij,ij->", [(1, 3), (2, 3)]),
        ("b i j , b j -> i b", [(2, 3, 4), (2, 4)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    pairs = [_pair(*shape) for shape in shapes]
    result = weft.einsum(equation, *(t for t, _ in pairs))
    expected = np.einsum(equation.replace(" ", ""), *(a for _, a in pairs))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)
    inputs = [t.clone().requires_grad_() for t, _ in pairs]
    assert gradcheck(lambda *xs: weft.einsum(equation, *xs), inputs)


def test_einsum_of_lists_and_its_errors() -> None:
    (a, x), (b, y) = _pair(2, 3), _pair(3, 4)
    np.testing.assert_allclose(weft.einsum(a, [0, 1], b, [1, 2], [0, 2]).numpy(), x @ y)
    with pytest.raises(RuntimeError, match="einsum: expected 2 operands, got 1"):
        weft.einsum("ij,jk", a)
    with pytest.raises(RuntimeError, match="einsum: expected one size for the label 'j'"):
        weft.einsum("ij,jk", a, a)


def test_shapes() -> None:
    x, y = weft.arange(3), weft.arange(2)
    for indexing in ("ij", "xy"):
        expected = np.meshgrid([0, 1, 2], [0, 1], indexing=indexing)
        for one, other in zip(weft.meshgrid(x, y, indexing=indexing), expected):
            assert one.tolist() == other.tolist()
    assert weft.cartesian_prod(x, y).tolist() == [[a, b] for a in range(3) for b in range(2)]
    assert weft.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert [tuple(t.shape) for t in weft.broadcast_tensors(x, y.unsqueeze(1))] == [(2, 3)] * 2
    leaf = weft.ones(3, requires_grad=True)
    assert weft.broadcast_tensors(leaf, x)[0] is leaf  # so that its gradient is found
    with pytest.raises(RuntimeError, match="broadcast_shapes: expected broadcastable shapes"):
        weft.broadcast_shapes((2,), (3,))
    assert weft.hstack([x, y]).tolist() == [0, 1, 2, 0, 1]
    assert weft.vstack([x, x]).tolist() == [[0, 1, 2]] * 2
    assert tuple(weft.dstack([x, x]).shape) == (1, 3, 2)
    assert weft.column_stack([x, x]).tolist() == [[0, 0], [1, 1], [2, 2]]
    assert tuple(weft.atleast_3d(x).shape) == (1, 3, 1)
    assert weft.tensordot(weft.ones(2, 3), weft.ones(3, 2), 1).tolist() == [[3, 3], [3, 3]]


def test_unique() -> None:
    x = weft.tensor([3, 1, 3, 2])
    assert x.unique().tolist() == [1, 2, 3]
    values, inverse, counts = weft.unique(x, return_inverse=True, return_counts=True)
    assert values[inverse].tolist() == x.tolist()
    assert counts.tolist() == [1, 1, 2]
    assert weft.unique_consecutive(weft.tensor([1, 1, 2, 1])).tolist() == [1, 2, 1]


def test_norms_and_quantiles() -> None:
    x, a = _pair(3, 4)
    np.testing.assert_allclose(weft.norm(x, p="fro").numpy(), np.linalg.norm(a))
    np.testing.assert_allclose(x.norm(dim=1, keepdim=True).numpy()[:, 0], np.linalg.norm(a, axis=1))
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        expected = np.linalg.norm(a, order)
        np.testing.assert_allclose(weft.linalg.norm(x, order).numpy(), expected, rtol=1e-12)
        assert tuple(weft.linalg.matrix_norm(x, order, keepdim=True).shape) == (1, 1)
    np.testing.assert_allclose(weft.quantile(x, 0.3).numpy(), np.quantile(a, 0.3))
    q = weft.tensor([0.1, 0.9], dtype=weft.float64)
    np.testing.assert_allclose(x.quantile(q, dim=1).numpy(), np.quantile(a, [0.1, 0.9], axis=1))
    np.testing.assert_allclose(weft.cov(x).numpy(), np.cov(a), rtol=1e-12)
    np.testing.assert_allclose(weft.corrcoef(x).numpy(), np.corrcoef(a), rtol=1e-12)


def test_linalg() -> None:
    x, a = _pair(4, 3)
    np.testing.assert_allclose(weft.linalg.pinv(x).numpy(), np.linalg.pinv(a), rtol=1e-9)
    assert weft.linalg.matrix_rank(x).item() == 3
    with pytest.raises(RuntimeError, match="linalg_inv: expected regular matrices"):
        weft.linalg.inv(weft.zeros(2, 2))
    with pytest.raises(RuntimeError, match="linalg_cholesky: expected positive-definite matrices"):
        weft.linalg.cholesky(-weft.eye(2))


def test_matrices_without_an_inverse_or_a_factor() -> None:
    error = weft.linalg.LinAlgError
    assert issubclass(error, RuntimeError)
    assert error is not RuntimeError
    assert (error.__module__, error.__qualname__) == ("weft.linalg", "LinAlgError")
    singular, indefinite = weft.tensor([[1.0, 2], [2, 4]]), weft.tensor([[1.0, 2], [2, 1]])
    for function, matrix in (
        (weft.linalg.inv, singular),
        (weft.inverse, singular),
        (lambda a: weft.linalg.inv_ex(a, check_errors=True), singular),
        (lambda a: weft.linalg.solve(a, a), singular),
        (weft.linalg.tensorinv, singular.reshape(1, 2, 1, 2)),
        (lambda a: weft.linalg.matrix_power(a, -1), singular),
        (weft.linalg.cholesky, indefinite),
        (weft.cholesky, indefinite),
        (lambda a: weft.linalg.cholesky_ex(a, upper=True, check_errors=True), indefinite),
        (weft.linalg.svd, singular * np.nan),
    ):
        with pytest.raises(error, match="expected"):
            function(matrix)
    with pytest.raises(error, match="expected regular"):
        weft.jit.script(_inverted)(singular)
    matrices = weft.stack([weft.eye(2), singular, indefinite])
    inverse, info = weft.linalg.inv_ex(matrices)
    assert (info.tolist(), info.dtype) == ([0, 2, 0], weft.int32)
    assert inverse[0].tolist() == [[1, 0], [0, 1]]
    assert not inverse[1].isfinite().any()
    for upper in (False, True):
        result = weft.linalg.cholesky_ex(matrices, upper=upper)
        assert (result.info.tolist(), result.L[0].tolist()) == ([0, 2, 2], [[1, 0], [0, 1]])
    assert weft.linalg.cond(matrices, 1)[1].item() == np.inf
    assert weft.linalg.inv_ex(weft.zeros(0, 2, 2)).info.shape == (0,)
    hermitian = weft.tensor([[2, 1 + 1j], [1 - 1j, 3]], dtype=weft.complex128)
    slopes = []
    for function in (weft.linalg.cholesky, lambda a, **how: weft.linalg.cholesky_ex(a, **how).L):
        matrix = hermitian.clone().requires_grad_()
        (function(matrix, upper=True) * (1 + 2j)).sum().abs().backward()
        slopes.append(matrix.grad.tolist())
    assert slopes[0] == slopes[1]
    leaf = weft.tensor([[2.0, 1], [1, 3]], dtype=weft.float64, requires_grad=True)
    for function in (weft.linalg.inv_ex, weft.linalg.cholesky_ex):
        assert gradcheck(lambda a, f=function: f(a + a.mT)[0], leaf)
        assert gradgradcheck(lambda a, f=function: f(a + a.mT)[0], leaf)


def _inverted(x: weft.Tensor) -> weft.Tensor:
    return weft.linalg.inv(x)


def test_tensor_split_by_every_name() -> None:
    x = weft.arange(6)
    for function in (weft.tensor_split, weft.Tensor.tensor_split):
        for keywords, lengths in (
            ({"indices": [2, 5]}, [2, 3, 1]),
            ({"indices": (1,), "dim": 0}, [1, 5]),
            ({"sections": 4}, [2, 2, 1, 1]),
            ({"sections": weft.tensor(2)}, [3, 3]),
            ({"tensor_indices_or_sections": weft.tensor([2, 3])}, [2, 1, 3]),
            ({"tensor_indices_or_sections": weft.tensor(2)}, [3, 3]),
        ):
            assert [len(part) for part in function(x, **keywords)] == lengths
        assert [len(part) for part in function(x, weft.tensor([4]))] == [4, 2]
        with pytest.raises(TypeError):
            function(x, indices=weft.tensor([2]))
        with pytest.raises(RuntimeError, match="expected a number or a vector of int64, got int32"):
            function(x, weft.tensor([2], dtype=weft.int32))
    y = weft.arange(8).reshape(2, 2, 2)
    for split in (weft.hsplit, weft.vsplit, weft.dsplit):
        for keywords in ({"indices": [1]}, {"sections": 2}):
            assert [p.tolist() for p in split(y, **keywords)] == [p.tolist() for p in split(y, 2)]


def test_complex_parts() -> None:
    x, a = _pair(3, 2)
    z = weft.view_as_complex(x)
    assert z.dtype == weft.complex128
    np.testing.assert_allclose(z.numpy(), a[:, 0] + 1j * a[:, 1])
    np.testing.assert_allclose(weft.view_as_real(z).numpy(), a)
    size, turn = weft.tensor([2.0, 1.0]), weft.tensor([0.5, -1.0])
    np.testing.assert_allclose(
        weft.polar(size, turn).numpy(), size.numpy() * np.exp(1j * turn.numpy()), rtol=1e-6
    )
    inputs = [x.clone().requires_grad_()]
    assert gradcheck(lambda t: weft.view_as_real(weft.view_as_complex(t) ** 2), inputs)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_integers_are_not_divided_by_zero(name: str) -> None:
    x = weft.tensor([1, 2])
    function = getattr(weft, name)
    for zero in (0, weft.tensor([1, 0])):
        with pytest.raises(RuntimeError, match=f"{name}: expected .*ZeroDivisionError"):
            function(x, zero)
    assert not function(x.float(), 1.0).isnan().any()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        weft.div(x, 0, rounding_mode="trunc")


def test_integers_are_not_raised_to_negative_integers() -> None:
    text = "pow: expected an exponent >= 0 for an integer tensor, got -1"
    with pytest.raises(RuntimeError, match=text):
        weft.tensor([2]) ** -1
    assert (weft.tensor([2.0]) ** -1).tolist() == [0.5]


def test_views_in_place_follow_gradients() -> None:
    x = weft.ones(2, 3, requires_grad=True)
    y = x * 2
    y.t_().unsqueeze_(0)
    assert tuple(y.shape) == (1, 3, 2)
    (y * weft.arange(6.0).reshape(1, 3, 2)).sum().backward()
    assert x.grad.tolist() == [[0, 4, 8], [2, 6, 10]]


_ONES, _INTS = weft.ones(2), weft.tensor([1, 2])
REFUSED = [
    (
        "meshgrid",
        lambda: weft.meshgrid(weft.ones(2, 2), _ONES, indexing="ij"),
        r"vectors and numbers of one dtype, got shape \(2, 2\)",
    ),
    (
        "meshgrid",
        lambda: weft.meshgrid(_ONES, _INTS, indexing="ij"),
        "one dtype, got shape .* torch.int64",
    ),
    ("meshgrid", lambda: weft.meshgrid(indexing="ij"), "at least 1 tensor, got none"),
    (
        "cartesian_prod",
        lambda: weft.cartesian_prod(weft.tensor(1), _INTS),
        r"a vector, got shape \(\)",
    ),
    ("combinations", lambda: weft.combinations(weft.ones(2, 2)), r"a vector, got shape \(2, 2\)"),
    ("combinations", lambda: weft.combinations(_ONES, -1), "r >= 0, got -1"),
    (
        "quantile",
        lambda: weft.quantile(_INTS, 0.5),
        "one dtype, float32 or float64, got torch.int64",
    ),
    ("quantile", lambda: weft.quantile(_ONES, weft.tensor([0.5], dtype=weft.float64)), "one dtype"),
    ("quantile", lambda: weft.nanquantile(_ONES.half(), 0.5), "got torch.float16"),
    (
        "quantile",
        lambda: weft.quantile(_ONES, weft.ones(1, 1)),
        r"q a number or a vector, got shapes \(2,\) and \(1, 1\)",
    ),
    ("quantile", lambda: weft.quantile(weft.ones(0), 0.5), "a non-empty input"),
    (
        "quantile",
        lambda: weft.quantile(_ONES, 0.5, interpolation="cubic"),
        "interpolation among linear, .* got 'cubic'",
    ),
    (
        "cov",
        lambda: weft.cov(weft.ones(2, 2, 2)),
        r"at most 2 dims and numbers, got shape \(2, 2, 2\)",
    ),
    ("cov", lambda: weft.cov(_ONES.bool()), "numbers, got shape .* torch.bool"),
    (
        "cov",
        lambda: weft.cov(_ONES, fweights=weft.tensor([1, 2, 3])),
        r"2 integer fweights of at least 0, got torch.int64 of shape \(3,\)",
    ),
    ("cov", lambda: weft.cov(_ONES, fweights=_ONES), "2 integer fweights .* got torch.float32"),
    ("cov", lambda: weft.cov(_ONES, fweights=-_INTS), "2 integer fweights of at least 0"),
    ("cov", lambda: weft.cov(_ONES, aweights=_INTS), "2 floating aweights .* got torch.int64"),
    ("cov", lambda: weft.cov(_ONES, aweights=-_ONES), "2 floating aweights of at least 0"),
    ("corrcoef", lambda: weft.corrcoef(weft.ones(2, 2, 2)), "at most 2 dims"),
    (
        "polar",
        lambda: weft.polar(_INTS, _INTS),
        "two floating tensors of one dtype, got torch.int64",
    ),
    (
        "polar",
        lambda: weft.polar(_ONES, _ONES.double()),
        "one dtype, got torch.float32 and torch.float64",
    ),
]


@pytest.mark.parametrize(
    "name, call, expected", REFUSED, ids=[f"{i}-{row[0]}" for i, row in enumerate(REFUSED)]
)
def test_what_pytorch_refuses_is_refused(name: str, call: Callable[[], Any], expected: str) -> None:
    with pytest.raises(RuntimeError, match=f"^{name}: expected .*{expected}"):
        call()


@pytest.mark.parametrize("dtype", [weft.int64, weft.uint8, weft.bool, weft.complex64])
def test_places_and_slopes_are_not_those_of_integers(dtype: Any) -> None:
    image, grid = weft.ones(1, 1, 2, 2, dtype=dtype), weft.zeros(1, 1, 1, 2)
    with pytest.raises(NotImplementedError, match="grid_sampler: expected a floating dtype"):
        F.grid_sample(image, grid, align_corners=False)
    with pytest.raises(NotImplementedError, match="rrelu: expected a floating dtype"):
        F.rrelu(image)
    with pytest.raises(ValueError, match="affine_grid: expected a floating dtype"):
        F.affine_grid(weft.ones(1, 2, 3, dtype=dtype), [1, 1, 2, 2], align_corners=False)


def test_means_of_whole_numbers_are_rounded_towards_zero() -> None:
    x = weft.tensor([[[-7, 1, 4], [0, 0, 3], [5, -2, 9]]])
    assert F.avg_pool2d(x, 2, 1).tolist() == [[[-1, 2], [0, 2]]]
    assert F.avg_pool2d(x, 2, 2, 1).tolist() == [[[-1, 1], [1, 2]]]
    assert F.avg_pool2d(x, 2, 2, 1, count_include_pad=False).tolist() == [[[-7, 2], [2, 2]]]
    assert F.avg_pool2d(x, 2, 1, divisor_override=-3).tolist() == [[[2, -2], [-1, -3]]]
    assert F.avg_pool1d(x[0], 2).tolist() == [[-3], [0], [1]]
    wide = weft.arange(-600, 600).reshape(1, 2, 20, 30)
    by_channels = wide.contiguous(memory_format=weft.channels_last)
    expected = (F.avg_pool2d(wide.double(), 3, 1) * 9).round().long().div(9, rounding_mode="trunc")
    assert weft.equal(F.avg_pool2d(wide, 3, 1), expected)
    assert weft.equal(F.avg_pool2d(by_channels, 3, 1), expected)
    cube = weft.tensor([-7, 0, 0, 0, 0, 0, 0, -4]).reshape(1, 2, 2, 2)
    assert F.avg_pool3d(cube, 2).item() == -1
    with pytest.raises(NotImplementedError, match="avg_pool3d: expected float32 or float64"):
        F.avg_pool3d(cube.int(), 2)


SPECIAL = [0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan")]


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
def test_complex_keeps_its_parts(dtype: Any) -> None:
    real, imag = weft.meshgrid(*[weft.tensor(SPECIAL, dtype=dtype)] * 2, indexing="ij")
    made = weft.complex(real, imag)
    assert str(made.real.tolist()) == str(real.tolist())
    assert str(made.imag.tolist()) == str(imag.tolist())


def test_gradients_of_complex_reach_parts_that_broadcast() -> None:
    parts = [weft.rand(shape, dtype=weft.float64, requires_grad=True) for shape in ((2, 3), (3,))]
    assert gradcheck(lambda *both: weft.complex(*both).abs(), parts)
    assert gradgradcheck(lambda *both: weft.complex(*both).abs(), parts)
