"""Builtins on tensors, devices and dtypes, against the same asked in Python."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.jit import schemas


def run(kind: str, *args: Any, elements: tuple[str, ...] = ()) -> Any:
    """The result of a builtin."""
    results = weft._C._call_operator(kind, args, list(elements))[0]
    return results[0] if len(results) == 1 else results


X = weft.arange(6.0).reshape(2, 3)
TENSORS = [
    X, X.t(), weft.tensor(2.5), weft.zeros(0, 4), weft.tensor([1, 2]), weft.tensor([True]),
    weft.ones(2, 2, dtype=weft.float64),
]  # fmt: skip
QUESTIONS = [
    "aten::size", "aten::dim", "aten::numel", "aten::stride", "aten::storage_offset",
    "aten::is_contiguous", "aten::is_floating_point", "aten::is_complex", "aten::element_size",
    "prim::dtype", "prim::device", "prim::shape", "prim::itemsize", "prim::nbytes", "prim::is_cpu",
    "prim::is_cuda", "prim::is_meta", "prim::is_sparse", "prim::ndim",
]  # fmt: skip


@pytest.mark.parametrize("kind", QUESTIONS)
def test_questions(kind: str) -> None:
    python = schemas.of(kind).evaluate
    assert python is not None
    for tensor in TENSORS:
        assert run(kind, tensor) == python(tensor)


def test_numbers_of_dtypes() -> None:
    for dtype in weft._C._dtypes:
        number = run("prim::dtype_number", dtype)
        assert (number, run("prim::numbered_dtype", number)) == (dtype._number, dtype)
    assert run("prim::dtype_number", weft.float32) == 6
    with pytest.raises(RuntimeError, match="expected the number of a dtype, got 12"):
        run("prim::numbered_dtype", 12)


def test_sizes_and_strides_by_dim() -> None:
    assert (run("aten::size.int", X, -1), run("aten::stride.int", X, 0)) == (3, 3)
    with pytest.raises(IndexError):
        run("aten::size.int", X, 2)
    assert run("aten::len.Tensor", X) == 2
    with pytest.raises(TypeError, match="0-d"):
        run("aten::len.Tensor", weft.tensor(1))


@pytest.mark.parametrize(
    "data",
    [
        [1, 2, 3], [1.5, 2.0], [True, False], [[1, 2], [3, 4]], [[1.0], [2.0]], 3, 2.5, True,
        [[[1], [2]]], [1j, 2.0], [weft.ones(2), weft.zeros(2)],
    ],
)  # fmt: skip
def test_tensor_of_data(data: Any) -> None:
    overload = {int: ".int", float: ".float", bool: ".bool"}.get(type(data), "")
    got = run(f"aten::tensor{overload}", data, None, None, False)
    if isinstance(data, list) and isinstance(data[0], weft.Tensor):
        wanted = weft.stack(data)
    else:
        wanted = weft.tensor(data)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    assert weft.equal(got, wanted)


def test_tensor_options_and_errors() -> None:
    assert run("aten::tensor", [1, 2], weft.float64, None, True).requires_grad
    assert run("aten::tensor", [1, 2], weft.int8, None, False).dtype == weft.int8
    with pytest.raises(ValueError, match="expected a list of length 2 at dim 1, got 1"):
        run("aten::tensor", [[1, 2], [3]], None, None, False)
    with pytest.raises(RuntimeError, match="expected a number that fits int8, got 300"):
        run("aten::tensor", [300], weft.int8, None, False)
    with pytest.raises(TypeError, match="expected numbers or lists of numbers, got str"):
        run("aten::tensor", ["a"], None, None, False)
    assert run("aten::tensor", [], None, None, False).shape == (0,)


def test_lists_of_tensors() -> None:
    for tensor, kind in ((X, 1), (weft.tensor([[1, 2]]), 0), (weft.tensor([True]), 3)):
        assert run("prim::tolist", tensor, tensor.dim(), kind) == tensor.tolist()
    assert run("prim::tolist", weft.tensor(3), 0, 0) == 3
    with pytest.raises(RuntimeError, match="expected a tensor of 1 dims, got shape"):
        run("prim::tolist", X, 1, 1)
    with pytest.raises(RuntimeError, match="an integral dtype, got float32"):
        run("prim::tolist", X, 2, 0)


def test_numbers_of_tensors() -> None:
    assert run("aten::Int.Tensor", weft.tensor([2.9])) == 2
    assert run("aten::Float.Tensor", weft.tensor(2)) == 2.0
    assert run("aten::Bool.Tensor", weft.tensor([[0.0]])) is False
    with pytest.raises(RuntimeError):
        run("aten::Bool.Tensor", X)
    assert run("aten::IntImplicit", weft.tensor(4)) == 4
    with pytest.raises(RuntimeError, match="0-d"):
        run("aten::IntImplicit", weft.tensor([4]))
    with pytest.raises(RuntimeError, match="integral dtype"):
        run("aten::IntImplicit", weft.tensor(4.0))


def test_transposes() -> None:
    for kind in ("aten::numpy_T", "aten::mT", "aten::mH", "aten::H"):
        python = schemas.of(kind).evaluate
        assert python is not None
        assert weft.equal(run(kind, X), python(X))
    with pytest.raises(RuntimeError, match="mT: expected a tensor with at least 2 dims"):
        run("aten::mT", weft.ones(3))


def test_gradients() -> None:
    leaf = run("aten::requires_grad_", weft.ones(2), True)
    (leaf * 3).sum().backward()
    assert run("prim::grad", leaf).tolist() == [3.0, 3.0]
    assert run("prim::requires_grad", leaf) is True
    assert run("prim::requires_grad", run("prim::data", leaf)) is False


def test_devices_and_dtypes() -> None:
    cpu = run("aten::device", "cpu")
    assert cpu == weft.device("cpu")
    assert (run("prim::type", cpu), run("prim::index", cpu)) == ("cpu", None)
    assert run("prim::index", run("aten::device.with_index", "cuda", 1)) == 1
    assert run("aten::promote_types", weft.int64, weft.float32) == weft.float32
    assert run("aten::can_cast", weft.float32, weft.int64) is False
    assert run("aten::broadcast_shapes", [2, 1], [3]) == [2, 3]


def test_dicts_with_tensor_keys() -> None:
    a, b = weft.ones(1), weft.ones(1)
    results, after = weft._C._call_operator("aten::_set_item.Tensor", ({a: 1}, b, 2))
    assert results == ()
    assert list(after[0].values()) == [1, 2]
    assert run("aten::__contains__.Tensor", {a: 1}, b) is False


def test_seed() -> None:
    weft._C._call_operator("aten::manual_seed", (7,))
    first = weft.rand(3)
    weft.manual_seed(7)
    assert weft.equal(first, weft.rand(3))
