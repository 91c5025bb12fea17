"""Bad input raises the right exception with the right words, and nothing is lost by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import weft

X = weft.arange(6.0).reshape(2, 3)

CASES: list[tuple[str, Callable[[], Any], type[Exception], str]] = [
    ("shapes", lambda: X + weft.ones(4), RuntimeError, "add: expected broadcastable shapes, got (2, 3) and (4,)"),
    ("matmul", lambda: weft.mm(X, X), RuntimeError, "mm: expected shapes (..., k) and (k, n), got (2, 3) and (2, 3)"),
    ("view", lambda: X.view(4), RuntimeError, "view: expected a size of 6 elements, got shape (4,)"),
    ("view twice -1", lambda: X.view(-1, -1), RuntimeError, "view: expected at most one -1 in the shape, got (-1, -1)"),
    ("dim", lambda: X.sum(2), IndexError, "sum: expected dim in [-2, 1], got 2"),
    ("repeated dim", lambda: X.sum((0, 0)), RuntimeError, "sum: expected each dim at most once, got (0, 0)"),
    ("index", lambda: X[5], IndexError, "index: expected index in [-2, 1] for dim 0, got 5"),
    ("too many indices", lambda: X[0, 0, 0], IndexError, "index: expected at most 2 indices, got 3"),
    ("negative size", lambda: weft.zeros(2, -1), RuntimeError, "zeros: expected sizes >= 0, got (2, -1)"),
    ("item", lambda: X.item(), RuntimeError, "item: expected a tensor of one element, got shape (2, 3)"),
    ("ragged", lambda: weft.tensor([[1, 2], [3]]), ValueError, "tensor: expected a sequence of length 2 at dim 1, got 1"),
    ("wrong type", lambda: weft.tensor("abc"), TypeError, "tensor: expected numbers or sequences of numbers, got str"),
    ("requires grad", lambda: weft.ones(2, dtype=weft.int64).requires_grad_(), RuntimeError,
     "requires_grad_: expected a floating or complex dtype, got int64"),
    ("shrinking in place", lambda: weft.ones(2, dtype=weft.int64).add_(0.5), RuntimeError,
     "add: expected an output dtype that float32 can be cast to, got int64"),
    ("bool of many", lambda: bool(X), RuntimeError, "bool: expected a tensor of one element, got shape (2, 3)"),
    ("len of none", lambda: len(weft.tensor(1)), TypeError, "len: expected a tensor with dims, got a 0-d tensor"),
    ("dtype", lambda: weft.ones(2).bitwise_and(weft.ones(2)), NotImplementedError,
     "bitwise_and: expected dtype bool, uint8, int8, int16, int32, int64, uint16, uint32, uint64, got float32"),
    ("gradient of a dim twice", lambda: weft.gradient(X, dim=(1, -1)), RuntimeError, "gradient: expected each dim at most once, got (1, -1)"),
    ("gradient of no dim", lambda: weft.gradient(X, dim=3), IndexError, "gradient: expected dim in [-2, 1], got 3"),
    ("complex of a number", lambda: weft.complex(X, 2), TypeError, "complex: expected argument 'imag' of type Tensor, got int"),
    ("prelu of a matrix", lambda: weft.nn.functional.prelu(X, X), RuntimeError, "prelu: expected a weight of 0 or 1 dims, got (2, 3)"),
    ("rms_norm of nothing", lambda: weft.rms_norm(X, []), RuntimeError, "rms_norm: expected normalized_shape of at least 1 size, got none"),
    ("pool of nothing", lambda: weft.max_pool1d(weft.ones(2, 0, 3), 1), RuntimeError, "max_pool1d: expected a non-empty input, got shape (2, 0, 3)"),
    ("negative size of a pool", lambda: weft.nn.functional.adaptive_max_pool2d(weft.ones(1, 2, 2), (-1, 1)), RuntimeError,
     "adaptive_max_pool2d: expected sizes of at least 0, got [-1, 1]"),
    ("window of a layout", lambda: weft.signal.windows.hann(3, layout=weft.sparse_coo), ValueError,
     "general_cosine: expected the layout torch.strided, got torch.sparse_coo"),
    ("labels of nothing", lambda: weft.nn.functional.multilabel_margin_loss(weft.ones(0), weft.ones(0, dtype=weft.int64)), RuntimeError,
     "multilabel_margin_loss: expected scores (c,) or (n, c) and a target of the same shape, got (0,) and (0,)"),
    ("labels of another shape", lambda: weft.nn.functional.multilabel_margin_loss(X, weft.ones(3, dtype=weft.int64)), RuntimeError,
     "multilabel_margin_loss: expected scores (c,) or (n, c) and a target of the same shape, got (2, 3) and (3,)"),
    ("reduction before labels", lambda: weft.nn.functional.multi_margin_loss(X, X, reduction="most"), ValueError,
     "multi_margin_loss: expected reduction 'none', 'mean' or 'sum', got 'most'"),
    ("weight of classes", lambda: weft.nn.functional.multi_margin_loss(X, X, weight=X), ValueError,
     "multi_margin_loss: expected a weight of 1 dim, got shape (2, 3)"),
    ("variances", lambda: weft.nn.functional.gaussian_nll_loss(X, X, weft.ones(3)), ValueError,
     "gaussian_nll_loss: expected a var of shape (2, 3), without its last size, or with one size of 1, got (3,)"),
    ("sections", lambda: weft.tensor_split(X, 1 << 62), RuntimeError, "tensor_split: expected sections that fit in memory, got 4611686018427387904"),
    ("triangle of many rows", lambda: weft.tril_indices(1 << 62, 2), RuntimeError,
     "tril_indices: expected a size that fits in memory, got 9.22337e+18 pairs"),
    ("deviations", lambda: weft.normal(X, -X), RuntimeError, "normal: expected std >= 0, got -5"),
    ("deviations of one mean", lambda: weft.normal(0.0, -X), RuntimeError, "normal: expected std >= 0, got -5"),
    ("sizes one by one of a matrix", lambda: weft.nn.functional.adaptive_avg_pool2d(X, (1, 1)), ValueError,
     "adaptive_avg_pool2d: expected at least 3 dims, got shape (2, 3)"),
    ("one size of a matrix", lambda: weft.nn.functional.adaptive_avg_pool2d(X, 1), RuntimeError,
     "adaptive_avg_pool2d: expected 3 or 4 dims, got shape (2, 3)"),
    ("sizes too few", lambda: weft.nn.functional.adaptive_avg_pool2d(X[None], ()), RuntimeError, "adaptive_avg_pool2d: expected 2 sizes, got ()"),
    ("channels that a large factor does not divide", lambda: weft.pixel_shuffle(X[None], 1 << 62), RuntimeError,
     "pixel_shuffle: expected channels divisible by the square of 4611686018427387904, got shape (1, 2, 3)"),
    ("map_", lambda: weft.ones(2).map_(3, max), TypeError, "map_: expected a Tensor, got int"),
    ("resize_as_", lambda: weft.ones(2).resize_as_(3), TypeError, "resize_as_: expected a Tensor, got int"),
    ("device", lambda: weft.ones(2, device="cuda"), AssertionError, "ones: expected device cpu, got cuda; Torch not compiled with CUDA enabled"),
    ("device word", lambda: weft.device("gpu"), RuntimeError, 'device: expected one of cpu, cuda, meta, privateuseone, xpu, mps, xla, hpu, mtia, vulkan, ipu, with an index as in "cuda:1" at most, got "gpu"'),
    ("non-scalar root", lambda: weft.ones(3, requires_grad=True).backward(), RuntimeError,
     "backward: expected a gradient for a non-scalar root, got None for shape (3,)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "text"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_error(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert str(caught.value) == text


@pytest.mark.parametrize("value", [-1, 0, 1 << 31, 1 << 62])
@pytest.mark.parametrize("name", ["stride", "dilation"])
@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("function", ["conv", "conv_transpose"])
def test_steps_of_convolutions(function: str, spatial: int, name: str, value: int) -> None:
    """Steps of 0 divide, large ones overflow: both are errors, not the end of the process."""
    call = getattr(weft.nn.functional, f"{function}{spatial}d")
    with pytest.raises(RuntimeError, match=f"{function}.*: expected"):
        call(weft.ones(1, 2, *[4] * spatial), weft.ones(2, 2, *[2] * spatial), **{name: value})


def test_running_out_of_memory_raises_and_leaves_everything_usable() -> None:
    before = weft.ones(4)
    with pytest.raises(weft.OutOfMemoryError, match=r"got .*4611686018427387904"):
        weft.empty(1 << 60)
    with pytest.raises(RuntimeError, match="empty: expected"):
        weft.empty(1 << 62, 1 << 62)
    assert (before + weft.ones(1 << 20)[:4]).tolist() == [2, 2, 2, 2]


def test_a_failing_operator_leaves_its_operands_as_they_were() -> None:
    target = weft.zeros(2, 3)
    version = target._version
    with pytest.raises(RuntimeError):
        target.add_(weft.ones(4))
    with pytest.raises(IndexError):
        target[weft.tensor([0, 9])] = 1.0
    assert target._version == version
    assert target.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_a_saved_value_changed_in_place_is_reported_with_the_operator() -> None:
    x = weft.ones(3, requires_grad=True)
    y = x * 2
    z = (y * weft.ones(3, requires_grad=True)).sum()
    y.add_(1)
    with pytest.raises(RuntimeError) as caught:
        z.backward()
    assert str(caught.value).startswith(
        "MulBackward0: expected saved tensor 'self' at version 0, got version 1"
    )
