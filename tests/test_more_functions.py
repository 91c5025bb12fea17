"""Histograms, matrix functions, index_reduce, as_strided_scatter, trees, and small methods."""

from __future__ import annotations

import math
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import weft
from weft.autograd import Variable, gradcheck
from weft.utils import _pytree as tree

POINTS = np.random.default_rng(0).uniform(-1, 5, (40, 2))


@pytest.mark.parametrize("density", [False, True])
def test_histograms_equal_numpy(density: bool) -> None:
    x, weight = POINTS[:, 0], np.abs(POINTS[:, 1])
    for options in (
        {"bins": 5},
        {"bins": 4, "range": (0.0, 3.0)},
        {"bins": np.array([0.0, 0.5, 2.0, 3.0])},
    ):
        ours = {k: weft.tensor(v) if k == "bins" else v for k, v in options.items()}
        if isinstance(options["bins"], int):
            ours["bins"] = options["bins"]
        got = weft.histogram(weft.tensor(x), **ours, weight=weft.tensor(weight), density=density)
        hist, edges = np.histogram(x, **options, weights=weight, density=density)
        np.testing.assert_allclose(got.hist.numpy(), hist)
        np.testing.assert_allclose(got.bin_edges.numpy(), edges)
    got = weft.histogramdd(weft.tensor(POINTS), [3, 4], density=density)
    hist, sides = np.histogramdd(POINTS, [3, 4], density=density)
    np.testing.assert_allclose(got.hist.numpy(), hist)
    for side, other in zip(got.bin_edges, sides):
        np.testing.assert_allclose(side.numpy(), other)


def test_histograms_of_little() -> None:
    assert weft.tensor([2.0]).histogram(2).bin_edges.tolist() == [1.5, 2.0, 2.5]
    assert weft.histogram(weft.zeros(0), 2).hist.tolist() == [0, 0]
    for call, text in (
        (lambda: weft.histogram(weft.ones(2, dtype=weft.int64), 2), "float32 or float64, got"),
        (lambda: weft.histogram(weft.ones(2), 0), "expected at least one bin, got 0"),
        (lambda: weft.histogram(weft.ones(2), 2, range=(1.0, 0.0)), "range in rising order"),
        (lambda: weft.histogram(weft.tensor([1.0, float("nan")]), 2), "a finite range"),
        (lambda: weft.histogram(weft.ones(2), 2, weight=weft.ones(3)), "expected 2 weights, got 3"),
        (lambda: weft.histogramdd(weft.ones(2), 2), "expected at least 2 dimensions"),
        (lambda: weft.histogramdd(weft.ones(2, 2), [2]), "expected 2 entries of bins, got 1"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()


def test_matrix_exponentials() -> None:
    weft.manual_seed(0)
    a = weft.randn(2, 3, 3, dtype=weft.float64, requires_grad=True)
    assert gradcheck(weft.linalg.matrix_exp, [a * 3])
    values = weft.tensor([-30.0, 0.5, 3.0, 40.0], dtype=weft.float64)
    np.testing.assert_allclose(
        values.diag().matrix_exp().diagonal().numpy(), np.exp(values.numpy()), rtol=1e-12
    )
    turn = weft.tensor([[0.0, -np.pi], [np.pi, 0.0]])
    np.testing.assert_allclose(weft.matrix_exp(turn).numpy(), -np.eye(2), atol=1e-6)
    with pytest.raises(RuntimeError, match="matrix_exp: expected square matrices"):
        weft.matrix_exp(weft.ones(2, 3))


def test_tensor_systems() -> None:
    weft.manual_seed(0)
    a, b = weft.randn(2, 3, 6, dtype=weft.float64), weft.randn(2, 3, dtype=weft.float64)
    x = weft.linalg.tensorsolve(a, b)
    np.testing.assert_allclose(weft.tensordot(a, x, 1).numpy(), b.numpy())
    np.testing.assert_allclose(
        weft.tensordot(weft.linalg.tensorinv(a), b, 2).numpy(), x.numpy(), rtol=1e-6
    )
    moved = weft.linalg.tensorsolve(a.movedim(2, 0), b, dims=(0,))
    np.testing.assert_allclose(moved.numpy(), x.numpy())
    with pytest.raises(RuntimeError, match="tensorinv: expected equal products of sizes"):
        weft.linalg.tensorinv(weft.ones(2, 3))
    with pytest.raises(RuntimeError, match="tensorsolve: expected a system with as many"):
        weft.linalg.tensorsolve(weft.ones(2, 3), weft.ones(2))


@pytest.mark.parametrize(
    "dtypes", [("int64", "int64"), ("float32", "float64"), ("float32", "int64")]
)
def test_vecdot_takes_one_dtype(dtypes: tuple[str, str]) -> None:
    x, y = (weft.ones(2, dtype=getattr(weft, dtype)) for dtype in dtypes)
    with pytest.raises(
        RuntimeError, match=r"vecdot: expected one floating or complex dtype, got torch"
    ):
        weft.linalg.vecdot(x, y)


def test_gradients_of_scattered_views() -> None:
    x = weft.randn(3, 3, dtype=weft.float64, requires_grad=True)
    source = weft.randn(2, 2, dtype=weft.float64, requires_grad=True)
    assert gradcheck(lambda a, b: a.as_strided_scatter(b, (2, 2), (1, 2), 1).sin(), [x, source])
    index = weft.tensor([0, 2, 0])
    values = weft.randn(3, 3, dtype=weft.float64, requires_grad=True)
    for fold in ("prod", "mean", "amax", "amin"):
        assert gradcheck(lambda a, b, f=fold: a.index_reduce(0, index, b, f), [x, values])
    target = weft.ones(2)
    assert target.index_reduce_(0, weft.tensor([0]), weft.tensor([3.0]), "mean") is target
    assert target.tolist() == [2, 1]
    with pytest.raises(RuntimeError, match="index_reduce: expected reduce among"):
        x.index_reduce(0, index, values, "sum")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_ldexp_keeps_the_dtype_of_floats(dtype: str) -> None:
    """By whole numbers of any width, also where 2 ** n is beyond the dtype."""
    kind = getattr(weft, dtype)
    x = weft.tensor([1.5, -0.75, 0.0, float("inf")], dtype=kind)
    for count in (weft.int32, weft.int64, weft.uint8):
        got = weft.ldexp(x, weft.tensor([2, 3, 200, 1], dtype=count))
        assert (got.dtype, got.tolist()) == (kind, [6, -6, 0, float("inf")])
    tiny = weft.finfo(kind).smallest_normal
    away = {"float16": 28, "bfloat16": 250, "float32": 250, "float64": 2040}[dtype]
    raised = weft.ldexp(weft.tensor([tiny], dtype=kind), weft.tensor([away]))
    assert raised.item() == math.ldexp(tiny, away)
    assert weft.ldexp(x[:2], weft.tensor([5000, -5000])).tolist() == [float("inf"), -0.0]
    y = x.clone()
    assert y.ldexp_(weft.tensor(1)) is y
    assert y.tolist() == [3, -1.5, 0, float("inf")]
    for other in (weft.float16, weft.float32, weft.float64):
        promoted = weft.promote_types(kind, other)
        assert weft.ldexp(x, weft.ones(4, dtype=other)).dtype == promoted


def test_ldexp_rounds_once() -> None:
    """Subnormal results, against the C library's."""
    rng = np.random.default_rng(0)
    x, n = rng.uniform(-1, 1, 500), rng.integers(-1080, -1000, 500)
    got = weft.ldexp(weft.from_numpy(x), weft.from_numpy(n))
    np.testing.assert_array_equal(got.numpy(), np.ldexp(x, n))
    leaf = weft.tensor([1.5, -2.0], dtype=weft.float64, requires_grad=True)
    assert gradcheck(lambda t: weft.ldexp(t, weft.tensor([3, -2])), leaf)
    assert gradcheck(lambda t: t.clone().ldexp_(weft.tensor([3, -2])), leaf)


def test_trees() -> None:
    pair = namedtuple("pair", "left right")
    value = {"b": [1, (2, None)], "a": OrderedDict(x=pair(3, 4)), "c": ()}
    leaves, spec = tree.tree_flatten(value)
    assert leaves == [1, 2, None, 3, 4] and spec.num_leaves == 5
    assert tree.tree_unflatten(leaves, spec) == value
    assert tree.tree_map(lambda x: x, value) == value
    assert isinstance(tree.tree_map(lambda x: x, value)["a"]["x"], pair)
    assert tree.tree_map_only(int, lambda x: -x, [1, [None]]) == [-1, [None]]
    assert tree.tree_leaves([1, [2]], is_leaf=lambda x: x == [2]) == [1, [2]]
    assert tree.tree_structure(3).is_leaf() and tree.tree_structure([1]) != spec
    with pytest.raises(ValueError, match="flatten_up_to: expected a tree that begins as"):
        tree.tree_map(lambda x, y: x, [1], (1,))
    with pytest.raises(ValueError, match="tree_unflatten: expected 5 leaves, got 1"):
        tree.tree_unflatten([1], spec)

    class Box:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

    tree.register_pytree_node(Box, lambda b: ([b.inner], None), lambda parts, _: Box(*parts))
    assert tree.tree_map(lambda x: x + 1, Box(1)).inner == 2
    with pytest.raises(ValueError, match="expected a new type, got Box again"):
        tree.register_pytree_node(Box, lambda b: ([], None), lambda parts, _: Box(None))


def test_small_methods() -> None:
    x = weft.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.apply_(lambda v: v * 2).tolist() == [[2, 4], [6, 8]]
    assert x.t().map_(weft.tensor([1.0, 10.0]), lambda a, b: a + b).tolist() == [[3, 16], [5, 18]]
    with pytest.raises(RuntimeError, match="apply_: expected a tensor without gradient"):
        weft.ones(1, requires_grad=True).apply_(lambda v: v)
    assert not x.is_mps and not x.is_xpu
    with pytest.raises(RuntimeError, match="record_stream: expected a tensor on a GPU"):
        x.record_stream(None)
    made = Variable(x, requires_grad=True)
    assert made.requires_grad and made.data_ptr() == x.data_ptr() and isinstance(x, Variable)
    with pytest.raises(TypeError, match="Variable: expected a Tensor, got list"):
        Variable([1])
    capsule = weft.utils.dlpack.to_dlpack(x)
    assert weft.utils.dlpack.from_dlpack(capsule).data_ptr() == x.data_ptr()


@pytest.mark.parametrize(("function", "expected"), [("gcd", [1, 1, 251]), ("lcm", [221, 231, 251])])
def test_divisors_are_those_of_numbers_in_the_common_dtype(function: str, expected: list[int]):
    """-5 beside a tensor of uint8 is 251, as in every other operator of integers."""
    few, many = weft.tensor(-5, dtype=weft.int8), weft.tensor([7, 5, 251], dtype=weft.uint8)
    assert getattr(weft, function)(few, many).tolist() == expected


@pytest.mark.parametrize("row", [0, 1, 3, 5])
@pytest.mark.parametrize("col", [0, 1, 4])
def test_indices_of_triangles(row: int, col: int) -> None:
    for offset in (-(1 << 63), -6, -2, -1, 0, 1, 3, 7, (1 << 63) - 1):
        for name in ("tril", "triu"):
            got = getattr(weft, f"{name}_indices")(row, col, offset)
            mask = getattr(np, name)(np.ones((row, col)), int(np.clip(offset, -9, 9)))
            assert got.numpy().tolist() == [each.tolist() for each in np.nonzero(mask)], (
                name,
                offset,
            )


def test_indices_of_rows_without_any() -> None:
    """Their number does not matter."""
    assert weft.triu_indices(1 << 62, 1).tolist() == [[0], [0]]
    assert weft.tril_indices(1 << 62, 1, 1 - (1 << 62)).tolist() == [[(1 << 62) - 1], [0]]


@pytest.mark.parametrize("shape", [(0, 2), (7, 1), (7, 2), (9, 3), (3, 9), (4, 4), (2, 2, 2)])
@pytest.mark.parametrize("wrap", [False, True])
def test_diagonals_that_wrap_equal_numpy(shape: tuple[int, ...], wrap: bool) -> None:
    expected = np.zeros(shape)
    if expected.size:
        np.fill_diagonal(expected, 1, wrap)
    assert weft.zeros(shape).fill_diagonal_(1, wrap).numpy().tolist() == expected.tolist()
    strided = weft.zeros(*shape, 2)[..., 1]
    assert strided.fill_diagonal_(1, wrap).numpy().tolist() == expected.tolist()


def test_diagonals_that_wrap_often() -> None:
    """As deep as there are blocks, calls of each other would leave no stack."""
    assert weft.zeros(1_000_000, 1).fill_diagonal_(1, wrap=True).sum() == 500_000


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("sizes", [(5000,), (3, 700), (700, 3), (2, 50, 4)])
@pytest.mark.parametrize("dim", [0, -1])
def test_running_products_are_kept_in_float64(sizes: tuple[int, ...], dim: int) -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.8, sizes).astype("float32")
    expected = np.cumprod(x.astype("float64"), axis=dim).astype("float32")
    assert np.array_equal(weft.tensor(x).cumprod(dim).numpy(), expected)
    turned = np.cumprod((x * 1j).astype("complex128"), axis=dim).astype("complex64")
    np.testing.assert_array_equal(weft.tensor(x * np.complex64(1j)).cumprod(dim).numpy(), turned)
    whole = np.arange(1, 1 + x.size).reshape(sizes)
    assert np.array_equal(weft.tensor(whole).cumprod(dim).numpy(), np.cumprod(whole, axis=dim))
