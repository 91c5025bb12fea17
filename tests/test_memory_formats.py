"""Memory formats: what keeps images by channels, and the same values in either format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft
from weft.nn import functional as F

RNG = np.random.default_rng(12)
IMAGES, VOLUMES = weft.channels_last, weft.channels_last_3d


def _random(*sizes: int) -> weft.Tensor:
    return weft.from_numpy(RNG.normal(size=sizes).astype(np.float32))


def _batch_norm(x: weft.Tensor, **more: Any) -> weft.Tensor:
    count = x.shape[1]
    scale, shift = weft.linspace(1, 2, count), weft.linspace(-1, 1, count)
    return F.batch_norm(x, weft.zeros(count), weft.ones(count), scale, shift, **more)


KEEPING: dict[str, Callable[[weft.Tensor], weft.Tensor]] = {
    "clone": lambda x: x.clone(),
    "pointwise": lambda x: x.sigmoid() * 2 + x,
    "bias": lambda x: x + weft.linspace(0, 1, x.shape[1])[:, None, None],
    "cat of channels": lambda x: weft.cat([x, x * 2, x[:, :1] - 1], 1),
    "cat of images": lambda x: weft.cat([x, x[:1]], 0),
    "cat of rows": lambda x: weft.cat([x, x], 2),
    "cat of dtypes": lambda x: weft.cat([x, x.double()], 1),
    "batch_norm": lambda x: _batch_norm(x, training=True),
    "batch_norm, fixed": lambda x: _batch_norm(x),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "nearest, less": lambda x: F.interpolate(x, size=(3, 5), mode="nearest-exact"),
    "bilinear": lambda x: F.interpolate(x, size=(11, 5), mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, size=(11, 5), mode="bicubic"),
    "pad": lambda x: F.pad(x, (1, 2, 0, 3), value=2.0),
    "pad of channels": lambda x: F.pad(x, (0, -1, 0, 0, 1, 2)),
    "flip": lambda x: x.flip(1, 3),
    "roll": lambda x: x.roll((1, 2), (1, 2)),
    "max_pool2d": lambda x: F.max_pool2d(x, 3, 2, 1),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "avg_pool2d of parts": lambda x: F.avg_pool2d(x, (2, 3), 1, count_include_pad=False),
}


@pytest.mark.parametrize("name", KEEPING)
@pytest.mark.parametrize("channels", [2, 7, 40, 100])
def test_images_stay_by_channels(name: str, channels: int) -> None:
    """Values and gradients are those of planes, and lie as the operand does."""
    plain, function = _random(2, channels, 6, 7), KEEPING[name]
    results = []
    for x in (plain, plain.contiguous(memory_format=IMAGES)):
        x.requires_grad_()
        y = function(x)
        slopes = weft.linspace(-1, 1, y.numel(), dtype=y.dtype).reshape(y.shape)
        slopes = weft.empty_like(y).copy_(slopes)
        (gradient,) = weft.autograd.grad((y * y * slopes).sum(), x)
        results.append((y.detach(), gradient))
    (y, gradient), (by_channels, its_gradient) = results
    bound = 1e-5 if "norm" in name else 1e-6
    assert weft.allclose(by_channels, y, rtol=bound, atol=bound)
    assert weft.allclose(its_gradient, gradient, rtol=10 * bound, atol=10 * bound)
    assert by_channels.is_contiguous(memory_format=IMAGES)
    with weft.device("meta"):
        without_elements = function(weft.empty_like(x.detach(), device="meta"))
    assert without_elements.is_meta and without_elements.stride() == by_channels.stride()
    assert its_gradient.is_contiguous(memory_format=IMAGES)


def test_volumes_stay_by_channels() -> None:
    x = _random(2, 5, 3, 4, 6)
    moved = x.to(memory_format=VOLUMES)
    assert moved.stride() == (360, 1, 120, 30, 5) and weft.equal(moved, x)
    assert moved.is_contiguous(memory_format=VOLUMES) and not moved.is_contiguous()
    assert weft.empty_like(moved).stride() == moved.stride()
    for function in (
        lambda x: weft.cat([x, x], 1),
        lambda x: _batch_norm(x, training=True),
        lambda x: F.interpolate(x, scale_factor=2),
        lambda x: F.interpolate(x, size=(5, 5, 5), mode="trilinear"),
        lambda x: F.pad(x, (1, 0, 2, 1)),
    ):
        y = function(moved)
        assert y.is_contiguous(memory_format=VOLUMES)
        assert weft.allclose(y, function(x), rtol=1e-5, atol=1e-5)


def test_operands_of_two_formats_give_the_usual_one() -> None:
    x = _random(2, 3, 4, 5)
    for pair in ((x, x.to(memory_format=IMAGES)), (x.to(memory_format=IMAGES), x)):
        assert weft.cat(pair, 1).is_contiguous()


@pytest.mark.parametrize("rows", [1, 5, 1000])
@pytest.mark.parametrize("channels", [1, 3, 8, 21, 32, 75])
@pytest.mark.parametrize("dtype", [weft.float32, weft.float64, weft.bfloat16])
def test_statistics_over_rows(rows: int, channels: int, dtype: weft.dtype) -> None:
    """The mean is far from 0: squares must not cancel."""
    x = (_random(2, channels, rows, 1) + 1000).to(dtype).contiguous(memory_format=IMAGES)
    kind = weft.float64 if dtype == weft.float64 else weft.float32
    mean, var = weft.zeros(2, channels, dtype=kind).unbind()
    y = F.batch_norm(x, mean, var, training=True, momentum=1.0)
    exact = x.double().numpy()
    centred = exact - exact.mean((0, 2, 3), keepdims=True)
    spread = exact.var((0, 2, 3), ddof=1)
    # Up to 128 values are added in sequence, each sum rounded, and then those sums by pairs.
    bound = 2.0**-17 if kind == weft.float32 else 2.0**-45
    np.testing.assert_allclose(mean.numpy(), exact.mean((0, 2, 3)), rtol=bound)
    np.testing.assert_allclose(var.numpy(), spread, rtol=bound, atol=1e-12)
    expected = centred / np.sqrt((centred**2).mean((0, 2, 3), keepdims=True) + 1e-5)
    # x * scale + shift: each of the size of 1000 * scale.
    scale = 1000 / np.sqrt((centred**2).mean((0, 2, 3), keepdims=True) + 1e-5)
    eps = {"float64": 2.0**-50, "float32": 2.0**-22, "bfloat16": 2.0**-22}[str(dtype)[6:]]
    rounding = np.abs(expected) * 2.0**-8 if dtype == weft.bfloat16 else 0
    assert (np.abs(y.double().numpy() - expected) <= eps * scale + rounding + 1e-12).all()


def test_statistics_of_few_wide_rows() -> None:
    """Fewer rows than blocks of that many elements."""
    x = _random(3, 70_000).requires_grad_()
    y = F.batch_norm(x, None, None, training=True)
    exact = x.detach().double()
    exact = (exact - exact.mean(0)) / (exact.var(0, correction=0) + 1e-5).sqrt()
    assert weft.allclose(y.double(), exact, rtol=1e-4, atol=1e-4)
    (gradient,) = weft.autograd.grad(y.square().sum(), x)
    assert bool(gradient.isfinite().all())


@pytest.mark.threads
def test_threads_change_nothing_in_statistics() -> None:
    x = _random(4, 24, 40, 50).contiguous(memory_format=IMAGES)
    results = []
    for threads in (1, 2, 5):
        weft.set_num_threads(threads)
        results.append(_batch_norm(x, training=True))
    assert all(weft.equal(result, results[0]) for result in results[1:])


def test_resize_takes_a_format() -> None:
    x = weft.zeros(1)
    assert x.resize_(2, 3, 4, 5, memory_format=IMAGES).stride() == (60, 1, 15, 3)
    assert x.resize_(2, 3, 4, 4).is_contiguous()
    with pytest.raises(RuntimeError, match="expected 5 dims for channels_last_3d"):
        x.resize_(2, 3, 4, 5, memory_format=VOLUMES)


@pytest.mark.parametrize("format, dims", [(IMAGES, 4), (VOLUMES, 5)])
def test_formats_of_other_dims_are_refused(format: weft.memory_format, dims: int) -> None:
    x = weft.ones(2, 3)
    assert not x.is_contiguous(memory_format=format)
    for call in (x.to, x.contiguous, x.clone):
        with pytest.raises(RuntimeError, match=f"expected {dims} dims"):
            call(memory_format=format)


def test_programs_take_formats() -> None:
    @weft.jit.script
    def moved(x: weft.Tensor) -> weft.Tensor:
        return x.contiguous(memory_format=weft.channels_last_3d)

    x = _random(2, 3, 4, 5, 2)
    assert moved(x).stride() == x.to(memory_format=VOLUMES).stride()


@both
def test_group_norm_keeps_channels_last(lib: Any) -> None:
    x = lib.arange(2.0 * 4 * 3 * 5).reshape(2, 4, 3, 5).cos()
    norm = lib.nn.GroupNorm(2, 4)
    turned = norm(x.contiguous(memory_format=lib.channels_last).requires_grad_())
    assert turned.stride() == (60, 1, 20, 4) and lib.allclose(turned, norm(x))
    # Draws in the order of memory follow it.
    assert lib.empty_like(turned).stride() == turned.stride()
    assert norm(x).stride() == (60, 15, 5, 1)
    each = lib.nn.InstanceNorm2d(4)(x.contiguous(memory_format=lib.channels_last))
    assert each.stride() == (60, 15, 5, 1)
