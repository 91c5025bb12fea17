"""Convolutions of images by planes and by channels: values, layouts, threads, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(11)
# (N, C, H, W), outputs, kernel, stride, padding, dilation, groups
CASES: list[tuple[Any, ...]] = [
    ((1, 3, 23, 25), 64, (7, 7), 2, 3, 1, 1),  # few channels: lines of the kernel at once
    ((2, 16, 14, 14), 32, (3, 3), 1, 1, 1, 1),  # Winograd
    ((1, 24, 7, 9), 40, (3, 3), 1, 1, 1, 1),  # channels that are no whole vectors
    ((3, 32, 9, 8), 48, (3, 3), 1, 0, 1, 1),
    ((1, 32, 9, 8), 17, (3, 3), 1, 2, 1, 1),
    ((1, 64, 10, 11), 32, (3, 3), 1, 1, 1, 2),
    ((2, 64, 9, 9), 64, (3, 3), 2, 1, 1, 1),
    ((1, 20, 10, 11), 9, (3, 3), 1, 1, 2, 1),
    ((2, 32, 12, 11), 64, (3, 3), 2, 1, 1, 4),
    ((1, 300, 7, 7), 33, (3, 3), 1, 1, 1, 1),  # several blocks of depth
    ((1, 16, 14, 14), 145, (3, 3), 1, 1, 1, 1),  # several blocks of outputs
    ((1, 300, 7, 7), 33, (3, 3), 2, 1, 1, 1),
    ((2, 300, 7, 7), 64, (1, 1), 1, 0, 1, 1),
    ((1, 256, 7, 7), 512, (1, 1), 2, 0, 1, 1),
    ((1, 16, 30, 5), 16, (3, 5), 1, (1, 2), 1, 1),
    ((0, 16, 8, 8), 16, (3, 3), 1, 1, 1, 1),
    ((2, 16, 8, 8), 4, (3, 3), 1, 1, 1, 1),  # too few outputs
]
# Groups of 1, 2, 4 and 8 channels: vectors over the channels of all groups. Of groups of one channel
# 0 to 15 are left; taps come in threes, and what is left.
GROUPED: list[tuple[Any, ...]] = [
    ((2, 16, 9, 11), 16, (3, 3), 1, 1, 1, 16),
    ((2, 23, 13, 8), 23, (5, 3), (2, 3), (2, 0), 1, 23),
    ((1, 5, 9, 11), 5, (3, 3), 2, 1, 1, 5),  # a quarter of the image meets each tap
    ((2, 33, 12, 12), 33, (5, 5), 2, 4, 2, 33),  # no tap meets the odd places
    ((1, 18, 15, 15), 18, (3, 3), 2, 0, 3, 18),
    ((2, 17, 10, 10), 17, (4, 7), 3, (1, 5), (2, 3), 17),
    ((1, 8, 6, 6), 8, (2, 2), 4, 0, 1, 8),  # places that no tap meets
    ((1, 20, 3, 4), 20, (3, 5), 1, (2, 4), 1, 20),  # more border than image
    ((1, 20, 5, 4), 20, (3, 3), 1, 6, 3, 20),  # taps that never meet the image together
    ((1, 16, 5, 5), 16, (2, 2), 2_000_000_011, 0, 1, 16),  # a stride that nothing may count to
    ((3, 12, 1, 40), 12, (1, 4), 1, (0, 3), 1, 12),  # signals
    ((2, 12, 1, 41), 12, (1, 5), (1, 3), (0, 2), (1, 2), 12),
    ((4, 64, 40, 40), 64, (3, 3), 1, 1, 1, 64),  # several sums
    ((0, 16, 8, 8), 16, (3, 3), 2, 1, 1, 16),
    ((2, 16, 9, 11), 16, (3, 3), 1, 1, 1, 8),
    ((1, 48, 13, 12), 48, (3, 5), (3, 2), (2, 1), 1, 12),
    ((2, 32, 10, 9), 32, (3, 3), 2, 2, 2, 4),
    ((1, 32, 12, 12), 32, (4, 2), 1, 0, (1, 3), 4),
    ((2, 64, 30, 20), 64, (3, 3), 1, 1, 1, 8),
    ((2, 24, 9, 9), 24, (3, 3), 1, 1, 1, 3),  # 8 channels of no whole vectors
    ((2, 16, 9, 9), 32, (3, 3), 1, 1, 1, 4),  # as many results again
    ((1, 32, 1, 30), 32, (1, 3), 1, (0, 1), 1, 16),
]


def _operands(case: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sizes, outputs, kernel, *_, groups = case
    weight = (outputs, sizes[1] // groups, *kernel)
    made = (RNG.normal(size=size).astype(np.float32) for size in (sizes, weight, (outputs,)))
    x, w, b = made
    return x, w, b


def _bound(x: np.ndarray, w: np.ndarray, case: tuple[Any, ...]) -> np.ndarray:
    """Of the error of a float32 sum of n products, n times eps of the sum of their sizes; 12 times
    that for the transforms of Winograd's F(2x2), whose sums are of up to nine values."""
    sizes = [weft.from_numpy(np.abs(a).astype(np.float64)) for a in (x, w)]
    terms = weft.conv2d(*sizes, None, *case[3:]).numpy() + 1
    return 12 * w[0].size * np.finfo(np.float32).eps * terms


@pytest.mark.parametrize("case", [*CASES, *GROUPED])
@pytest.mark.parametrize("by_channels", [False, True])
def test_values(case: tuple[Any, ...], by_channels: bool) -> None:
    x, w, b = _operands(case)
    expected = weft.conv2d(*(weft.from_numpy(a).double() for a in (x, w, b)), *case[3:]).numpy()
    images = weft.from_numpy(x)
    if by_channels:
        images = images.contiguous(memory_format=weft.channels_last)
    got = weft.conv2d(images, weft.from_numpy(w), weft.from_numpy(b), *case[3:])
    assert (np.abs(got.numpy() - expected) <= _bound(x, w, case)).all()
    moved = weft.from_numpy(w).contiguous(memory_format=weft.channels_last)
    again = weft.conv2d(images, moved, weft.from_numpy(b), *case[3:])
    assert (np.abs(again.numpy() - expected) <= _bound(x, w, case)).all()


GRADIENTS = [
    *CASES,
    ((2, 32, 9, 11), 48, (3, 3), 2, 1, 1, 1),  # lines that add to every other one
    ((2, 32, 9, 11), 48, (5, 3), (3, 2), (2, 0), (1, 2), 2),
    ((1, 64, 5, 5), 512, (1, 1), 1, 0, 1, 1),  # several blocks of outputs
    ((1, 32, 40, 40), 24, (3, 3), 1, 1, 1, 1),  # several blocks of positions
    ((3, 16, 30, 30), 200, (3, 3), 1, 1, 1, 1),  # in planes, blocks that end within an image
    ((1, 128, 8, 8), 512, (3, 3), 2, 1, 1, 1),  # parts of channels
    ((0, 16, 8, 8), 128, (3, 3), 1, 1, 1, 1),
    *GROUPED,
]


@pytest.mark.parametrize("case", GRADIENTS)
@pytest.mark.parametrize("by_channels", [False, True])
@pytest.mark.threads
@pytest.mark.parametrize("threads", [1, 3])
def test_gradients(case: tuple[Any, ...], by_channels: bool, threads: int) -> None:
    """Against float64; the bound counts the products of each sum, as `_bound` does."""
    x, w, _ = _operands(case)
    format = weft.channels_last if by_channels else weft.contiguous_format
    weft.set_num_threads(threads)
    results: list[Any] = []
    slopes = np.empty(0)
    for convert in (np.float64, np.float32, np.abs):
        operands = [weft.from_numpy(convert(a)) for a in (x, w)]
        if convert is not np.float32:
            operands = [a.double() for a in operands]
        images, weight = (a.contiguous(memory_format=format).requires_grad_() for a in operands)
        y = weft.conv2d(images, weight, None, *case[3:])
        slopes = slopes if results else RNG.normal(size=y.shape)
        given = weft.from_numpy(np.abs(slopes) if convert is np.abs else slopes).to(y.dtype)
        given = given.contiguous(memory_format=format)
        results.append(weft.autograd.grad(y, (images, weight), given))
    terms = (w.shape[0] * w[0, 0].size, slopes[:, :1].size)
    for exact, got, sizes, count in zip(*results, terms):
        bound = 12 * count * np.finfo(np.float32).eps * (sizes.numpy() + 1)
        assert (np.abs(got.double().numpy() - exact.numpy()) <= bound).all()
        if by_channels and min(w.shape[:2]) >= 8 and exact is results[0][0]:
            assert got.is_contiguous(memory_format=weft.channels_last)


@pytest.mark.parametrize("groups", [2, 4, 8])
def test_groups_do_not_meet(groups: int) -> None:
    """What is infinite in one group leaves the results of the others alone."""
    x, weight = weft.ones(1, 32, 6, 6), weft.ones(32, 32 // groups, 3, 3)
    x[:, : 32 // groups] = float("inf")
    for format in (weft.contiguous_format, weft.channels_last):
        images = x.contiguous(memory_format=format).requires_grad_()
        y = weft.conv2d(images, weight, None, 1, 1, 1, groups)
        (grad,) = weft.autograd.grad(y, images, y.detach())
        for values in (y, grad):
            assert values[:, 32 // groups :].isfinite().all()
            assert not values[:, : 32 // groups].isfinite().any()


def test_gradients_of_a_row_of_columns() -> None:
    """Channels beside each other, and a dimension of size 1 whose stride says nothing of that."""
    x = weft.from_numpy(RNG.normal(size=(2, 16, 9)).astype(np.float32))
    grad = x.transpose(1, 2).contiguous().transpose(1, 2).unsqueeze(3)
    weight = weft.from_numpy(RNG.normal(size=(16, 24, 3, 1)).astype(np.float32))
    images = weft.zeros(2, 24, 9, 1, requires_grad=True)
    y = weft.conv2d(images, weight, None, 1, (1, 0))
    (got,) = weft.autograd.grad(y, images, grad, retain_graph=True)
    (expected,) = weft.autograd.grad(y, images, grad.contiguous())
    assert weft.allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64, weft.bfloat16])
@pytest.mark.parametrize("kernel", [1, 3])
def test_signals_have_no_order_by_channels(kernel: int, dtype: weft.dtype) -> None:
    """Dropout draws in the order in which the result lies."""
    for batch, channels, groups in ((2, 3, 1), (32, 512, 1), (4, 16, 2), (4, 16, 16)):
        x = weft.randn(batch, 9, channels, dtype=dtype).transpose(1, 2)
        weight = weft.randn(32, channels // groups, kernel, dtype=dtype)
        result = weft.conv1d(x, weight, None, 1, kernel // 2, 1, groups)
        expected = weft.conv1d(x.contiguous(), weight, None, 1, kernel // 2, 1, groups)
        assert result.is_contiguous()
        assert weft.allclose(result, expected, rtol=2e-2, atol=1e-1)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("by_channels", [False, True])
def test_threads_change_nothing(case: tuple[Any, ...], by_channels: bool) -> None:
    x, w, _ = (weft.from_numpy(a) for a in _operands(case))
    if by_channels:
        x = x.contiguous(memory_format=weft.channels_last)
    before, results = weft.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            weft.set_num_threads(threads)
            results.append(weft.conv2d(x, w, None, *case[3:]).numpy())
    finally:
        weft.set_num_threads(before)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("residual", "relu"), [(True, True), (True, False), (False, True)])
def test_sums_are_those_of_the_operators(case: tuple[Any, ...], residual: bool, relu: bool) -> None:
    x, w, b = (weft.from_numpy(a) for a in _operands(case))
    x = x.contiguous(memory_format=weft.channels_last)
    plain = weft.conv2d(x, w, b, *case[3:])
    more = None
    if residual:
        more = weft.from_numpy(RNG.normal(size=plain.shape).astype(np.float32))
        more = more.contiguous(memory_format=weft.channels_last)
    expected = plain if more is None else plain + more
    expected = expected.relu() if relu else expected
    got = weft._C._aten._conv2d_sum(x, w, b, more, relu, *case[3:])
    assert weft.equal(got, expected) and got.stride() == plain.stride()


@pytest.mark.parity
@pytest.mark.parametrize("case", CASES)
def test_layouts_and_errors_beside_pytorch(case: tuple[Any, ...]) -> None:
    torch = pytest.importorskip("torch")
    x, w, b = _operands(case)
    exact = torch.conv2d(*(torch.from_numpy(a).double() for a in (x, w, b)), *case[3:])
    errors = {}
    for library in (weft, torch):
        for last in (False, True):
            images = library.from_numpy(x)
            if last:
                images = images.contiguous(memory_format=library.channels_last)
            y = library.conv2d(images, library.from_numpy(w), library.from_numpy(b), *case[3:])
            errors[library.__name__, last] = np.abs(y.numpy() - exact.numpy()).max(initial=0)
            if w.shape[0] >= 8 and y.numel() > 0:
                assert tuple(y.stride()) == _strides(tuple(y.shape), last)
    scale = np.finfo(np.float32).eps * np.abs(exact.numpy()).max(initial=1)
    for last in (False, True):  # Winograd doubles the error of the direct sum
        assert errors["weft", last] <= 4 * errors["torch", last] + 4 * scale


def _strides(shape: tuple[int, ...], by_channels: bool) -> tuple[int, ...]:
    empty = weft.empty(shape)
    if by_channels:
        empty = empty.contiguous(memory_format=weft.channels_last)
    return tuple(empty.stride())


# (N, C, H, W), outputs, kernel, groups: few channels, several groups, one channel each, one tap
SMALL = [
    ((2, 4, 5, 6), 3, 3, 1),
    ((2, 4, 5, 6), 4, 3, 2),
    ((2, 4, 5, 6), 8, 3, 4),
    ((2, 4, 5, 6), 6, 1, 1),
    ((2, 32, 9, 8), 32, 3, 1),
]


def _layouts(lib: Any, dtype: Any, case: tuple[Any, ...]) -> list[tuple[int, ...]]:
    """Strides of results and of the images' gradients, for images and weights that lie by
    channels or not."""
    sizes, outputs, kernel, groups = case
    found = []
    for orders in ((0, 0), (0, 1), (1, 0), (1, 1)):
        for function, weight in (
            (lib.nn.functional.conv2d, (outputs, sizes[1] // groups, kernel, kernel)),
            (lib.nn.functional.conv_transpose2d, (sizes[1], outputs // groups, kernel, kernel)),
        ):
            x, w = lib.ones(sizes, dtype=dtype), lib.ones(weight, dtype=dtype)
            formats = [(lib.contiguous_format, lib.channels_last)[order] for order in orders]
            x = x.contiguous(memory_format=formats[0]).requires_grad_()
            result = function(x, w.contiguous(memory_format=formats[1]), groups=groups)
            (gradient,) = lib.autograd.grad(result.square().sum(), x)
            found += [result.stride(), gradient.stride()]
    signal = lib.ones(2, 6, 4).transpose(1, 2)
    return [*found, lib.nn.functional.conv1d(signal, lib.ones(3, 4, 3)).stride()]


@pytest.mark.parametrize("case", SMALL)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_results_lie_by_channels_where_an_operand_does(dtype: str, case: tuple[Any, ...]) -> None:
    found = _layouts(weft, getattr(weft, dtype), case)
    planes, channels = found[:2], found[-3:-1]
    assert all(strides[-1] == 1 for strides in planes)
    assert all(strides[1] == 1 for strides in channels)
    assert found[-1] == (12, 4, 1)


@pytest.mark.parity
@pytest.mark.parametrize("case", SMALL)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_layouts_of_torch(dtype: str, case: tuple[Any, ...]) -> None:
    torch = pytest.importorskip("torch")
    ours = _layouts(weft, getattr(weft, dtype), case)
    assert ours == _layouts(torch, getattr(torch, dtype), case)


def test_one_weight_for_images_with_and_without_a_batch() -> None:
    """Either way packs it in an order of its own, and keeps it."""
    x = weft.from_numpy(RNG.normal(size=(1, 64, 10, 10)).astype(np.float32))
    weight = weft.from_numpy(RNG.normal(size=(64, 8, 3, 3)).astype(np.float32))
    exact = weft.conv2d(x.double(), weight.double(), None, 1, 1, 1, 8)
    for _ in range(3):
        for images in (x, x[0]):
            y = weft.conv2d(images, weight, None, 1, 1, 1, 8)
            assert weft.allclose(y.double().reshape_as(exact), exact, rtol=1e-4, atol=1e-4)
