"""Products of bfloat16, which some processors multiply in pairs: values against float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(5)
HALF_ULP = 2.0**-8  # of a result that is rounded to bfloat16, of its size
F = weft.nn.functional


def _bfloat16(*sizes: int) -> weft.Tensor:
    return weft.from_numpy(RNG.normal(size=sizes).astype(np.float32)).bfloat16()


def _check(got: weft.Tensor, exact: weft.Tensor, terms: weft.Tensor, count: int) -> None:
    """Rounded sums of `count` products, whose sizes add up to `terms`, added up in float32."""
    assert got.dtype == weft.bfloat16
    bound = exact.abs() * HALF_ULP + terms * (count * 2.0**-23) + 1e-30
    assert bool(((got.double() - exact).abs() <= bound).all())


# How the factors lie: by rows, by columns, with gaps; odd starts cannot be read in pairs.
LAYOUTS: dict[str, Callable[[weft.Tensor], weft.Tensor]] = {
    "rows": lambda x: x,
    "columns": lambda x: x.t().contiguous().t(),
    "gaps": lambda x: weft.stack([x, x], -1)[..., 0],
    "odd rows": lambda x: weft.cat([x, x[:, :1]], 1)[:, : x.shape[1]],
    "odd start": lambda x: weft.cat([x[:1].flatten()[:1], x.flatten()])[1:].view(x.shape),
}


@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
def test_layouts(left: str, right: str) -> None:
    for m, k, n in ((40, 65, 70), (13, 130, 35), (200, 36, 33)):
        a, b = LAYOUTS[left](_bfloat16(m, k)), LAYOUTS[right](_bfloat16(k, n))
        exact, terms = a.double() @ b.double(), a.double().abs() @ b.double().abs()
        _check(a @ b, exact, terms, k)


@pytest.mark.parametrize("m", [1, 2, 11, 12, 25, 193])
@pytest.mark.parametrize("k", [1, 2, 31, 64, 769, 1601])
def test_sizes(m: int, k: int) -> None:
    for n in (1, 8, 15, 33, 64, 600):
        a, b, start = _bfloat16(m, k), _bfloat16(k, n), _bfloat16(n)
        exact, terms = a.double() @ b.double(), a.double().abs() @ b.double().abs()
        _check(a @ b, exact, terms, k)
        weight = b.t().contiguous()
        for _ in range(3):  # packed, kept, from what is kept
            moved, more = exact + start.double(), terms + start.double().abs()
            _check(F.linear(a, weight, start), moved, more, k + 1)
        _check(weft.addmm(start, a, b), moved, more, k + 1)
        _check(weft.addmm(start, a, b, beta=0, alpha=2), 2 * exact, 2 * terms, k)


def test_batches() -> None:
    a, b, start = _bfloat16(5, 40, 33), _bfloat16(5, 33, 41), _bfloat16(5, 40, 41)
    exact, terms = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    _check(weft.bmm(a, b), exact, terms, 33)
    terms += start.double().abs()
    _check(weft.baddbmm(start, a, b), exact + start.double(), terms, 34)


@pytest.mark.threads
def test_threads() -> None:
    a, b = _bfloat16(300, 257), _bfloat16(257, 190)
    exact, terms = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    _check(a @ b, exact, terms, 257)
    _check(F.linear(a, b.t().contiguous()), exact, terms, 257)


def test_a_changed_weight_is_packed_anew() -> None:
    rows, weight = _bfloat16(20, 160), _bfloat16(160, 160)
    for factor in (1, 2, 4):
        for _ in range(3):
            exact = rows.double() @ weight.double().t()
            _check(
                F.linear(rows, weight), exact, rows.double().abs() @ weight.double().abs().t(), 160
            )
        weight.mul_(factor)


# Channels, outputs, kernel, then stride, padding, dilation, groups.
CONVOLUTIONS: list[tuple[Any, ...]] = [
    (8, 16, 1, 1, 0, 1, 1),
    (64, 32, 3, 1, 1, 1, 1),
    (40, 24, 3, 2, 1, 1, 1),
    (6, 40, 5, 1, 2, 2, 1),
    (7, 16, 3, 1, 1, 1, 1),  # an odd number of channels
    (32, 32, 3, 1, 1, 1, 2),
    (20, 20, 3, 1, 1, 1, 20),
    (2, 9, 3, 2, 0, 1, 1),
    (300, 16, 1, 1, 0, 1, 1),
    (32, 32, 3, 2, 1, 1, 8),
    (64, 64, 3, 1, 1, 1, 8),
]


@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("by_channels", [False, True])
def test_convolutions(case: tuple[Any, ...], by_channels: bool) -> None:
    inputs, outputs, kernel, *window = case
    layout = weft.channels_last if by_channels else weft.contiguous_format
    images = _bfloat16(3, inputs, 23, 19).contiguous(memory_format=layout).requires_grad_()
    weight = _bfloat16(outputs, inputs // window[-1], kernel, kernel).requires_grad_()
    bias = _bfloat16(outputs)
    x, w = (t.detach().double().requires_grad_() for t in (images, weight))
    got, exact = F.conv2d(images, weight, bias, *window), F.conv2d(x, w, bias.double(), *window)
    terms = F.conv2d(x.detach().abs(), w.detach().abs(), bias.double().abs(), *window)
    # 12: Winograd's transforms, as in test_conv_layouts.py
    _check(got.detach(), exact.detach(), 12 * terms, weight[0].numel() + 1)
    assert got.is_contiguous(memory_format=layout)
    grad = _bfloat16(*got.shape)
    got.backward(grad)
    exact.backward(grad.double())
    size = F.conv2d(weft.ones_like(x), weft.ones_like(w), None, *window).numel()
    for leaf, reference in ((images, x), (weight, w)):
        assert leaf.grad is not None and reference.grad is not None
        largest = reference.grad.abs().max() * size * 2.0**-23
        bound = reference.grad.abs() * HALF_ULP + 12 * largest
        assert bool(((leaf.grad.double() - reference.grad).abs() <= bound).all())
