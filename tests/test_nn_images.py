"""Padding, resampling, sampling, pooling, windows and convolutions of one to three dimensions."""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft
from weft import nn
from weft.autograd import gradcheck
from weft.nn import functional as F

RNG = np.random.default_rng(5)


def _array(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def _distinct(*shape: int) -> np.ndarray:
    return RNG.permutation(int(np.prod(shape))).reshape(shape) * 0.37


def _check(function: Callable[..., Any], arrays: list[np.ndarray], expected: Any) -> None:
    """Values against the reference, then gradients by finite differences."""
    tensors = [weft.from_numpy(a.copy()) for a in arrays]
    np.testing.assert_allclose(function(*tensors).numpy(), expected, rtol=1e-10, atol=1e-10)
    assert gradcheck(function, [t.requires_grad_() for t in tensors])


# ---- padding ----


@pytest.mark.parametrize(
    ("mode", "numpy_mode"),
    [("constant", "constant"), ("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")],
)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_pad(mode: str, numpy_mode: str, dims: int) -> None:
    x = _array(2, 3, *range(3, 3 + dims))
    widths = [(1, 2), (2, 0), (0, 1)][:dims]
    expected = np.pad(x, [(0, 0)] * 2 + widths[::-1], numpy_mode)
    flat = [n for pair in widths for n in pair]
    _check(lambda t: F.pad(t, flat, mode), [x], expected)
    if mode != "constant":
        np.testing.assert_array_equal(F.pad(weft.from_numpy(x[0]), flat, mode).numpy(), expected[0])


def test_pad_cuts_and_says_what_it_expects() -> None:
    x = weft.arange(6.0).reshape(1, 1, 6)
    assert F.pad(x, [-1, -2]).tolist() == [[[1, 2, 3]]]
    assert F.pad(x, [-1, 1], "replicate").tolist() == [[[1, 2, 3, 4, 5, 5]]]
    assert F.pad(x, [-1, 1], "circular").tolist() == [[[1, 2, 3, 4, 5, 1]]]
    for widths, mode, error, text in (
        ([6, 0], "reflect", RuntimeError, "expected widths of at most 5 for mode 'reflect'"),
        ([7, 0], "circular", RuntimeError, "expected widths of at most 6 for mode 'circular'"),
        ([1], "constant", RuntimeError, "expected two numbers for each of at most 3 dims"),
        ([1, 1], "mirror", NotImplementedError, "expected mode constant, reflect"),
        ([1, 1, 1, 1, 1, 1], "reflect", NotImplementedError, "expected 4 or 5 dims"),
    ):
        with pytest.raises(error, match=text):
            F.pad(x, widths, mode)


def test_padding_layers() -> None:
    x = weft.from_numpy(_array(2, 3, 4, 5))
    for kind, mode in (
        (nn.ReflectionPad2d, "reflect"),
        (nn.ReplicationPad2d, "replicate"),
        (nn.CircularPad2d, "circular"),
        (nn.ZeroPad2d, "constant"),
    ):
        assert bool((kind(2)(x) == F.pad(x, (2, 2, 2, 2), mode)).all())
    assert nn.ConstantPad1d((1, 2), 3.5)(weft.zeros(1, 1, 2)).tolist() == [[[3.5, 0, 0, 3.5, 3.5]]]
    assert repr(nn.ConstantPad1d(1, 3.5)) == "ConstantPad1d(padding=(1, 1), value=3.5)"
    assert repr(nn.ReflectionPad2d((1, 2, 3, 4))) == "ReflectionPad2d((1, 2, 3, 4))"
    with pytest.raises(ValueError, match="ZeroPad2d: expected 1 or 4 numbers"):
        nn.ZeroPad2d((1, 2))


def test_layers_derive_from_the_bases_that_programs_ask_for() -> None:
    """Tools that count operations know layers by PyTorch's private names of their bases."""
    padding, pooling = nn.modules.padding, nn.modules.pooling
    for dims in (1, 2, 3):
        for kind in ("Constant", "Reflection", "Replication", "Circular"):
            layer = getattr(nn, f"{kind}Pad{dims}d")
            assert issubclass(layer, getattr(padding, f"_{kind}PadNd"))
        assert issubclass(getattr(nn, f"ZeroPad{dims}d"), padding._ConstantPadNd)
        for kind in (
            "MaxPool",
            "MaxUnpool",
            "AvgPool",
            "LPPool",
            "AdaptiveMaxPool",
            "AdaptiveAvgPool",
        ):
            layer = getattr(nn, f"{kind}{dims}d")
            assert issubclass(layer, getattr(pooling, f"_{kind}Nd"))
    assert not issubclass(nn.AdaptiveMaxPool2d, pooling._AdaptiveAvgPoolNd)


# ---- resampling ----


def _along(x: np.ndarray, axis: int, matrix: np.ndarray) -> np.ndarray:
    return np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)


def _linear_matrix(size: int, out: int, align: bool) -> np.ndarray:
    matrix = np.zeros((out, size))
    for i in range(out):
        if align:
            at = i * (size - 1) / (out - 1) if out > 1 else 0.0
        else:
            at = max((i + 0.5) * size / out - 0.5, 0)
        low = min(int(at), size - 1)
        matrix[i, low] += 1 - (at - low)
        matrix[i, min(low + 1, size - 1)] += at - low
    return matrix


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize(
    ("mode", "sizes"), [("linear", [7]), ("bilinear", [3, 9]), ("trilinear", [5, 2, 6])]
)
def test_interpolate_linearly(mode: str, sizes: list[int], align: bool) -> None:
    x = _array(2, 2, *[4, 5, 3][: len(sizes)])
    expected = x
    for i, out in enumerate(sizes):
        expected = _along(expected, i + 2, _linear_matrix(x.shape[i + 2], out, align))
    _check(lambda t: F.interpolate(t, sizes, mode=mode, align_corners=align), [x], expected)


@pytest.mark.parametrize(("mode", "shift"), [("nearest", 0.0), ("nearest-exact", 0.5)])
def test_interpolate_by_the_nearest(mode: str, shift: float) -> None:
    x = _array(1, 2, 5, 4)
    rows, columns = (
        np.minimum(((np.arange(out) + shift) * n / out).astype(int), n - 1)
        for n, out in ((5, 8), (4, 3))
    )
    _check(lambda t: F.interpolate(t, (8, 3), mode=mode), [x], x[:, :, rows][..., columns])
    whole = weft.arange(4, dtype=weft.uint8).reshape(1, 1, 4)
    assert F.interpolate(whole, scale_factor=2, mode=mode).tolist() == [[[0, 0, 1, 1, 2, 2, 3, 3]]]


def test_interpolate_cubically_and_with_antialias() -> None:
    x = _array(1, 2, 6, 5)

    def at_ones(**kwargs: Any) -> weft.Tensor:
        return F.interpolate(weft.ones(1, 1, 6, 5, dtype=weft.float64), (9, 3), **kwargs)

    for options in (
        {"mode": "bicubic"},
        {"mode": "bicubic", "align_corners": True},
        {"mode": "bicubic", "antialias": True},
        {"mode": "bilinear", "antialias": True},
    ):
        np.testing.assert_allclose(at_ones(**options).numpy(), 1, rtol=1e-12)  # weights sum to 1
        same = F.interpolate(weft.from_numpy(x), (6, 5), **options)
        np.testing.assert_allclose(same.numpy(), x, rtol=1e-12)
        assert gradcheck(
            lambda t, o=options: F.interpolate(t, (4, 7), **o),
            [weft.from_numpy(x).requires_grad_()],
        )
    line = (np.arange(9.0) ** 2).reshape(1, 1, 1, 9)
    wide = F.interpolate(weft.from_numpy(line), (1, 17), mode="bicubic", align_corners=True)
    half = -0.09375 * (2**2 + 5**2) + 0.59375 * (3**2 + 4**2)  # Keys's kernel, a = -0.75, at 3.5
    assert wide[0, 0, 0, 7].item() == pytest.approx(half, rel=1e-12)
    halved = F.interpolate(weft.from_numpy(line), (1, 3), mode="bilinear", antialias=True)
    assert (
        abs(halved[0, 0, 0, 1].item() - np.average(line[0, 0, 0, 2:7], weights=[1, 2, 3, 2, 1]))
        < 1e-12
    )


BYTES = [[0, 255, 30, 200], [255, 1, 90, 7], [10, 128, 254, 66]]
#: BYTES in other sizes, as PyTorch has them: (mode, align_corners, antialias)
RESIZED: dict[tuple[str, bool, bool], Any] = {
    ("bilinear", False, False): [
        ((2, 3), [[85, 119, 134], [76, 155, 78]]),
        (
            (4, 5),
            [
                [0, 179, 143, 81, 200],
                [159, 115, 82, 71, 79],
                [163, 83, 100, 115, 29],
                [10, 93, 191, 198, 66],
            ],
        ),
    ],
    ("bilinear", False, True): [
        ((2, 3), [[115, 107, 105], [95, 137, 88]]),
        (
            (4, 5),
            [
                [0, 179, 143, 81, 200],
                [159, 115, 82, 71, 79],
                [163, 83, 100, 115, 29],
                [10, 93, 191, 198, 66],
            ],
        ),
    ],
    ("bilinear", True, False): [
        ((2, 3), [[0, 143, 200], [10, 191, 66]]),
        (
            (4, 5),
            [
                [0, 191, 143, 73, 200],
                [170, 107, 78, 70, 71],
                [173, 76, 94, 115, 27],
                [10, 99, 191, 207, 66],
            ],
        ),
    ],
    ("bilinear", True, True): [
        ((2, 3), [[117, 102, 97], [81, 156, 78]]),
        (
            (4, 5),
            [
                [0, 159, 171, 51, 179],
                [128, 128, 103, 66, 98],
                [214, 94, 58, 105, 29],
                [51, 86, 151, 206, 78],
            ],
        ),
    ],
    ("bicubic", False, False): [
        ((2, 3), [[88, 116, 135], [75, 172, 73]]),
        (
            (4, 5),
            [
                [0, 220, 159, 51, 225],
                [191, 113, 52, 53, 71],
                [192, 53, 85, 129, 0],
                [0, 82, 234, 225, 59],
            ],
        ),
    ],
    ("bicubic", False, True): [
        ((2, 3), [[121, 101, 102], [91, 141, 85]]),
        (
            (4, 5),
            [
                [0, 206, 154, 61, 218],
                [177, 114, 65, 59, 75],
                [180, 64, 92, 125, 9],
                [0, 87, 219, 217, 61],
            ],
        ),
    ],
    ("bicubic", True, False): [
        ((2, 3), [[0, 150, 200], [10, 220, 66]]),
        (
            (4, 5),
            [
                [0, 221, 150, 45, 200],
                [202, 99, 46, 54, 61],
                [206, 42, 76, 130, 4],
                [10, 88, 220, 225, 66],
            ],
        ),
    ],
    ("bicubic", True, True): [
        ((2, 3), [[121, 99, 95], [69, 172, 66]]),
        (
            (4, 5),
            [
                [0, 182, 199, 32, 196],
                [135, 136, 97, 50, 101],
                [237, 83, 30, 110, 13],
                [35, 76, 167, 226, 72],
            ],
        ),
    ],
}


@pytest.mark.parametrize("options", RESIZED, ids=str)
def test_interpolate_bytes(options: tuple[str, bool, bool]) -> None:
    mode, align, antialias = options
    x = weft.tensor(BYTES, dtype=weft.uint8).reshape(1, 1, 3, 4)
    kind: Any = {"mode": mode, "align_corners": align, "antialias": antialias}
    for size, wanted in RESIZED[options]:
        got = F.interpolate(x, size, **kind)
        assert got.dtype == weft.uint8
        assert got[0, 0].tolist() == wanted
        if mode == "bilinear":  # cubic sums leave 0 to 255 on the way
            exact = F.interpolate(x.double(), size, **kind)
            assert (got - exact).abs().max().item() < 1.5
    with pytest.raises(RuntimeError, match="expected a floating dtype for linear, got uint8"):
        F.interpolate(x[0], 3, mode="linear")


@pytest.mark.parity
@pytest.mark.parametrize("options", RESIZED, ids=str)
def test_interpolate_bytes_as_pytorch_does(options: tuple[str, bool, bool]) -> None:
    torch = pytest.importorskip("torch")
    mode, align, antialias = options
    kind: Any = {"mode": mode, "align_corners": align, "antialias": antialias}
    for channels in (1, 3, 6):
        for size, target in (((7, 9), (13, 5)), ((16, 16), (32, 31)), ((30, 33), (11, 10))):
            x = RNG.integers(0, 256, (2, channels, *size)).astype("uint8")
            scale = {"scale_factor": tuple(b / a for a, b in zip(size, target))}
            for where in ({"size": target}, scale):
                ours = F.interpolate(weft.from_numpy(x), **where, **kind)
                theirs = torch.nn.functional.interpolate(torch.from_numpy(x), **where, **kind)
                np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_interpolate_sizes_and_errors() -> None:
    x = weft.ones(1, 1, 5, 5)
    assert tuple(F.interpolate(x, scale_factor=1.5).shape) == (1, 1, 7, 7)
    assert tuple(F.interpolate(x, scale_factor=(2, 0.4)).shape) == (1, 1, 10, 2)
    ramp = weft.arange(5.0).reshape(1, 1, 5)
    by_scale = F.interpolate(ramp, scale_factor=1.5, mode="linear")
    by_size = F.interpolate(ramp, scale_factor=1.5, mode="linear", recompute_scale_factor=True)
    assert by_scale.tolist() != by_size.tolist() == F.interpolate(ramp, 7, mode="linear").tolist()
    assert (
        F.interpolate(x, (2, 3), mode="area").tolist() == F.adaptive_avg_pool2d(x, (2, 3)).tolist()
    )
    assert repr(nn.Upsample(scale_factor=2)) == "Upsample(scale_factor=2.0, mode='nearest')"
    assert tuple(nn.Upsample(scale_factor=2, mode="bilinear")(x).shape) == (1, 1, 10, 10)
    assert nn.UpsamplingBilinear2d(9)(x).tolist() == F.upsample_bilinear(x, 9).tolist()
    for args, kwargs, error, text in (
        ((), {}, ValueError, "expected either size or scale_factor, got None and None"),
        ((3,), {"mode": "trilinear"}, NotImplementedError, "expected a mode for 4 dims"),
        ((3,), {"align_corners": True}, ValueError, "expected align_corners=None for nearest"),
        ((0,), {}, RuntimeError, "expected sizes of at least 1"),
        (((1, 2, 3),), {}, ValueError, "expected 2 numbers"),
        ((3,), {"antialias": True}, ValueError, "expected antialias=False for nearest"),
    ):
        with pytest.raises(error, match=text):
            F.interpolate(x, *args, **kwargs)
    with pytest.raises(RuntimeError, match="expected a floating dtype for bilinear, got int64"):
        F.interpolate(x.long(), 3, mode="bilinear")


def _sampled(
    x: np.ndarray, grid: np.ndarray, nearest: bool, align: bool, border: bool
) -> np.ndarray:
    """Two dimensions, pixel by pixel."""
    n, c, h, w = x.shape
    out = np.zeros((n, c, *grid.shape[1:3]))
    for b, i, j in np.ndindex(n, *grid.shape[1:3]):
        place = []
        for at, size in zip(grid[b, i, j], (w, h)):
            p = (at + 1) / 2 * (size - 1) if align else ((at + 1) * size - 1) / 2
            place.append(np.clip(p, 0, size - 1) if border else p)
        px, py = place
        if nearest:
            taps = [(int(np.rint(py)), int(np.rint(px)), 1.0)]
        else:
            y0, x0 = int(np.floor(py)), int(np.floor(px))
            taps = [
                (y0 + a, x0 + b_, (1 - abs(py - y0 - a)) * (1 - abs(px - x0 - b_)))
                for a, b_ in itertools.product((0, 1), (0, 1))
            ]
        for y, x_, weight in taps:
            if 0 <= y < h and 0 <= x_ < w:
                out[b, :, i, j] += weight * x[b, :, y, x_]
    return out


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding_mode", ["zeros", "border"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample(mode: str, padding_mode: str, align: bool) -> None:
    x, grid = _array(2, 3, 4, 5), RNG.uniform(-1.4, 1.4, (2, 3, 2, 2))

    def sample(t: weft.Tensor, g: weft.Tensor) -> weft.Tensor:
        return F.grid_sample(t, g, mode, padding_mode, align)

    expected = _sampled(x, grid, mode == "nearest", align, padding_mode == "border")
    _check(sample, [x, grid], expected)


@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_grid_sample_of_nearest_pixels_gives_the_grid_zeros(padding_mode: str) -> None:
    grid = weft.tensor([[[[-0.5, 0.5], [float("nan"), 3.0]]]], requires_grad=True)
    F.grid_sample(weft.ones(1, 2, 3, 3), grid, "nearest", padding_mode, False).sum().backward()
    assert grid.grad is not None and weft.equal(grid.grad, weft.zeros(1, 1, 2, 2))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_grid_sample_has_second_derivatives_and_samples(mode: str) -> None:
    def sampled(image, grid):
        return F.grid_sample(image, grid, mode, align_corners=False)

    weft.manual_seed(0)
    images = weft.randn(3, 2, 2, 4, 5, dtype=weft.float64, requires_grad=True)
    grids = weft.rand(3, 2, 3, 3, 2, dtype=weft.float64, requires_grad=True)
    assert weft.autograd.gradgradcheck(sampled, (images[0], grids[0]))
    each = weft.stack([sampled(image, grid) for image, grid in zip(images, grids)])
    assert weft.equal(weft.func.vmap(sampled)(images, grids), each)
    along = (weft.ones_like(images[0]), weft.ones_like(grids[0]))
    _, tangent = weft.func.jvp(sampled, (images[0].detach(), grids[0].detach()), along)
    step = 1e-6
    moved = sampled(images[0] + step, grids[0] + step)
    assert weft.allclose(tangent, (moved - each[0]) / step, atol=1e-4)


def test_gradients_of_grids_are_checked() -> None:
    image, grid = weft.ones(1, 1, 2, 2), weft.ones(1, 2, 2, 2)
    with pytest.raises(RuntimeError, match="grid_sampler: expected 3 orders, got 0"):
        weft._C._aten._grid_gradient(image, image, grid, 0, 0, True, [])
    with pytest.raises(RuntimeError, match="cdist: expected shapes"):
        weft._C._aten._difference_sums(weft.ones(5, 4), weft.ones(5, 300), weft.ones(4, 3))


def test_grid_sample_of_no_place_is_nan_and_of_a_place_outside_0() -> None:
    grid = weft.tensor([math.nan, 5.0, 1e30]).reshape(1, 1, 3, 1).expand(1, 1, 3, 2)
    image = weft.tensor([[math.inf, 1.0], [2.0, 3.0]]).reshape(1, 1, 2, 2)
    result = F.grid_sample(image, grid, align_corners=False).flatten().tolist()
    assert math.isnan(result[0]) and result[1:] == [0.0, 0.0]


def test_grid_sample_of_an_identity_grid_gives_the_image_back() -> None:
    for shape in ((2, 3, 4, 5), (1, 2, 3, 4, 5)):
        x = weft.from_numpy(_array(*shape))
        spatial = len(shape) - 2
        theta = weft.eye(spatial, spatial + 1, dtype=weft.float64).expand(shape[0], -1, -1)
        for align, padding_mode in itertools.product(
            (False, True), ("zeros", "border", "reflection")
        ):
            grid = F.affine_grid(theta, shape, align)
            assert tuple(grid.shape) == (shape[0], *shape[2:], spatial)
            modes = ("bilinear", "nearest", "bicubic") if spatial == 2 else ("bilinear", "nearest")
            for mode in modes:
                same = F.grid_sample(x, grid, mode, padding_mode, align)
                np.testing.assert_allclose(same.numpy(), x.numpy(), atol=1e-12)
    with pytest.raises(RuntimeError, match="grid_sampler: expected an input"):
        F.grid_sample(weft.ones(1, 1, 2, 2), weft.ones(1, 2, 2, 3), align_corners=False)
    with pytest.raises(ValueError, match="affine_grid: expected theta"):
        F.affine_grid(weft.ones(1, 2, 2), (1, 1, 2, 2))


# ---- pooling ----


def _windows(
    x: np.ndarray, kernel: int, stride: int, padding: int, fill: float, dims: int
) -> np.ndarray:
    padded = np.pad(x, [(0, 0)] * 2 + [(padding, padding)] * dims, constant_values=fill)
    axes = tuple(range(2, 2 + dims))
    view = np.lib.stride_tricks.sliding_window_view(padded, (kernel,) * dims, axes)
    return view[(slice(None), slice(None), *[slice(None, None, stride)] * dims)]


@pytest.mark.parametrize(("dims", "names"), [(1, "1d"), (2, "2d"), (3, "3d")])
def test_pools(dims: int, names: str) -> None:
    x = _distinct(2, 2, *[6, 5, 7][:dims])
    last = tuple(range(-dims, 0))
    for window in ((2, 2, 0), (3, 2, 1), (3, 1, 0)):
        high = _windows(x, *window, -np.inf, dims).max(last)
        _check(lambda t, w=window: getattr(F, f"max_pool{names}")(t, *w), [x], high)
        mean = _windows(x, *window, 0, dims).mean(last)
        _check(lambda t, w=window: getattr(F, f"avg_pool{names}")(t, *w), [x], mean)
    norm = (np.abs(_windows(x + 1, 2, 2, 0, 0, dims)) ** 3).sum(last) ** (1 / 3)
    _check(lambda t: getattr(F, f"lp_pool{names}")(t, 3.0, 2), [x + 1], norm)
    signs = np.where(np.arange(x.size).reshape(x.shape) % 3, 1.0, -1.0)
    sizes = np.abs(_windows(x + 1, 2, 2, 0, 0, dims))
    for p, extreme in ((np.inf, sizes.max(last)), (-np.inf, sizes.min(last))):
        _check(lambda t, p=p: getattr(F, f"lp_pool{names}")(t, p, 2), [(x + 1) * signs], extreme)


@pytest.mark.parity
@pytest.mark.parametrize("p", [1, 3, 5, 2, 0.5, -1, math.inf, -math.inf])
def test_power_pools_of_negative_numbers_equal_torch(p: float) -> None:
    """Values and gradients: NaN where a sum of odd powers is negative, 0 where it is 0."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for dims in (1, 2, 3):
        values = rng.standard_normal((2, 2, *[5] * dims))
        values[0, 0] = 0.0
        for options in ({"kernel_size": 2}, {"kernel_size": 3, "stride": 1, "ceil_mode": True}):
            results = []
            for lib in (weft, torch):
                x = lib.tensor(values).requires_grad_()
                y = getattr(lib.nn.functional, f"lp_pool{dims}d")(x, p, **options)
                results.append((y.detach().numpy(), *lib.autograd.grad(y.sum(), x)))
            for ours, theirs in zip(*results):
                np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-12)


#: Sizes of an image and the kernel, stride, padding and dilation of both directions: rows shorter
#: and longer than vectors, every way of parting them by the stride, windows that leave the image.
IMAGE_WINDOWS = [
    ((1, 3, 7, 9), (3, 2, 1, 1)), ((2, 17, 12, 40), (3, 2, 1, 1)), ((1, 4, 9, 37), (2, 2, 0, 1)),
    ((1, 2, 6, 70), (3, 1, 1, 1)), ((2, 2, 8, 33), (2, 3, 1, 1)), ((1, 2, 11, 19), (3, 4, 1, 2)),
    ((1, 2, 5, 5), (5, 5, 2, 1)), ((1, 3, 70, 130), (3, 2, 1, 1)), ((2, 2, 4, 21), (2, 1, 1, 3)),
]  # fmt: skip


def _wins(value: Any, best: Any) -> bool:
    return best is None or value > best or value != value


def _highest(x: np.ndarray, window: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The maximum of each window and the place of the first of equals, one by one."""
    kernel, stride, padding, dilation = window
    h, w = x.shape[2:]
    out = [(n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 for n in (h, w)]
    values = np.zeros((*x.shape[:2], *out), x.dtype)
    places = np.zeros(values.shape, np.int64)
    taps = range(0, kernel * dilation, dilation)
    for at in itertools.product(*map(range, values.shape)):
        best = None
        for i, j in itertools.product(taps, taps):
            r, c = (stride * n - padding + k for n, k in zip(at[2:], (i, j)))
            if 0 <= r < h and 0 <= c < w and _wins(x[at[:2]][r, c], best):
                best, places[at] = x[at[:2]][r, c], r * w + c
        values[at] = best
    return values, places


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "int64", "uint8"])
def test_max_pool_of_both_layouts(dtype: str) -> None:
    """Few different values, so that most windows have equal ones; NaN and infinities."""
    rng = np.random.default_rng(0)
    for shape, window in IMAGE_WINDOWS[:5] if dtype != "float32" else IMAGE_WINDOWS[:-2]:
        x = rng.integers(0, 4, shape).astype(dtype)
        if x.dtype.kind == "f":
            x[rng.random(shape) < 0.05] = np.nan
            x[rng.random(shape) < 0.5] = -np.inf
        expected = _highest(x, window)
        for layout in (weft.contiguous_format, weft.channels_last):
            t = weft.from_numpy(x).contiguous(memory_format=layout)
            results = F.max_pool2d(t, *window, return_indices=True)
            for ours, wanted in zip((*results, F.max_pool2d(t, *window)), (*expected, expected[0])):
                np.testing.assert_array_equal(ours.numpy(), wanted)
                assert ours.is_contiguous(memory_format=layout)


def test_mean_pool_of_both_layouts() -> None:
    rng = np.random.default_rng(0)
    for shape, (kernel, stride, padding, _) in IMAGE_WINDOWS:
        x = rng.standard_normal(shape).astype(np.float32)
        sums = _windows(x.astype(np.float64), kernel, stride, padding, 0, 2).sum((-1, -2))
        inside = _windows(np.ones(shape), kernel, stride, padding, 0, 2).sum((-1, -2))
        for layout in (weft.contiguous_format, weft.channels_last):
            t = weft.from_numpy(x).contiguous(memory_format=layout)
            for count, padded in ((kernel**2, True), (inside, False)):
                y = F.avg_pool2d(t, kernel, stride, padding, False, padded)
                np.testing.assert_allclose(y.numpy(), sums / count, rtol=1e-5, atol=1e-6)
                assert y.is_contiguous(memory_format=layout)


def test_a_max_pool_records_indices_for_its_gradient_alone() -> None:
    x = weft.from_numpy(_distinct(1, 2, 6, 6))
    assert F.max_pool2d(x, 2).grad_fn is None
    y = F.max_pool2d(x.requires_grad_(), 3, 2, 1)
    (grad,) = weft.autograd.grad(y.sum(), x)
    places = F.max_pool2d(x, 3, 2, 1, return_indices=True)[1].flatten(2)
    counted = weft.zeros(1, 2, 36, dtype=x.dtype).scatter_add(
        2, places, weft.ones_like(places, dtype=x.dtype)
    )
    assert bool((grad.flatten(2) == counted).all())


def test_a_window_beside_the_image_is_empty() -> None:
    """Both taps of a dilated window may miss a short image: no memory is read there."""
    values, places = F.max_pool2d(weft.zeros(1, 1, 1, 1), 2, 1, 1, 2, return_indices=True)
    assert (values.item(), places.item()) == (-math.inf, 2)


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_windows_of_images_equal_torch(kind: str) -> None:
    """Values, indices and layouts, with and without rounding up."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    for (shape, window), up, last in itertools.product(IMAGE_WINDOWS, (False, True), (False, True)):
        x = rng.standard_normal(shape).astype(np.float32)
        results = []
        for lib in (weft, torch):
            t = lib.from_numpy(x)
            t = t.contiguous(memory_format=lib.channels_last) if last else t
            pool = getattr(lib.nn.functional, f"{kind}_pool2d")
            if kind == "max":
                results.append(pool(t, *window, ceil_mode=up, return_indices=True))
            else:
                results.append([pool(t, *window[:3], ceil_mode=up)])
        for ours, theirs in zip(*results):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-6)
            assert ours.stride() == theirs.stride()


def test_max_pool_indices_lead_back() -> None:
    for dims in (1, 2, 3):
        x = weft.from_numpy(_distinct(2, 3, *[4, 6, 4][:dims])).requires_grad_()
        values, places = getattr(F, f"max_pool{dims}d")(x, 2, return_indices=True)
        assert bool((x.flatten(2).gather(2, places.flatten(2)) == values.flatten(2)).all())
        back = getattr(F, f"max_unpool{dims}d")(values, places, 2)
        assert tuple(back.shape) == tuple(x.shape)
        assert bool(((back == x) | (back == 0)).all())
        assert back.sum().item() == pytest.approx(values.sum().item())
        layer = getattr(nn, f"MaxUnpool{dims}d")(2)
        assert bool((layer(values, places) == back).all())
    with pytest.raises(
        RuntimeError, match=r"max_unpool1d: expected indices in \[0, 3\], got 9 to 9"
    ):
        F.max_unpool1d(weft.ones(1, 1, 2), weft.full((1, 1, 2), 9), 2)


def test_average_options_and_adaptive_pools() -> None:
    x = weft.ones(1, 1, 4, 4, 4, dtype=weft.float64)
    assert F.avg_pool3d(x, 3, 1, 1, count_include_pad=False).unique().tolist() == [1]
    assert F.avg_pool3d(x, 2, divisor_override=4).unique().tolist() == [2]
    corner = F.avg_pool3d(x, 3, 1, 1)[0, 0, 0, 0, 0].item()
    assert corner == pytest.approx(8 / 27)
    y = _distinct(2, 3, 7, 5, 4)
    for dims, sizes in ((1, (3,)), (2, (3, 2)), (3, (3, 2, 5))):
        part = y.reshape(2, 3, -1)[:, :, :7] if dims == 1 else y[..., 0] if dims == 2 else y
        edges = [
            [(i * n // out, -(-(i + 1) * n // out)) for i in range(out)]
            for n, out in zip(part.shape[2:], sizes)
        ]
        for fold, name in ((np.mean, "avg"), (np.max, "max")):
            expected = np.zeros((2, 3, *sizes))
            for place in itertools.product(*(range(n) for n in sizes)):
                cut = tuple(slice(*edges[d][i]) for d, i in enumerate(place))
                cells = part[(slice(None), slice(None), *cut)].reshape(2, 3, -1)
                expected[(slice(None), slice(None), *place)] = fold(cells, -1)
            function = getattr(F, f"adaptive_{name}_pool{dims}d")
            _check(lambda t, f=function, s=sizes: f(t, s), [part], expected)
        values, places = getattr(F, f"adaptive_max_pool{dims}d")(
            weft.from_numpy(part.copy()), sizes, True
        )
        flat = weft.from_numpy(part.copy()).flatten(2)
        assert bool((flat.gather(2, places.flatten(2)) == values.flatten(2)).all())
    assert tuple(F.adaptive_max_pool2d(weft.ones(1, 1, 5, 4), (None, 2)).shape) == (1, 1, 5, 2)
    assert tuple(nn.AdaptiveMaxPool2d(1)(weft.ones(3, 2, 2)).shape) == (3, 1, 1)
    with pytest.raises(RuntimeError, match="max_pool3d: expected 4 or 5 dims"):
        F.max_pool3d(weft.ones(2, 2, 2), 2)


#: Arguments of the kinds of layers that take an image without a batch too.
LAYERS: dict[str, tuple[float, ...]] = {
    "AdaptiveAvgPool": (2,), "AdaptiveMaxPool": (2,), "AvgPool": (2,), "CircularPad": (1,),
    "ConstantPad": (1, 3.5), "Conv": (2, 3, 2), "ConvTranspose": (2, 3, 2), "Dropout": (),
    "InstanceNorm": (2,), "LPPool": (3, 2), "MaxPool": (2,), "MaxUnpool": (2,),
    "ReflectionPad": (1,), "ReplicationPad": (1,), "Softmax": (), "ZeroPad": (1,),
}  # fmt: skip
#: of batches alone, or with windows that are drawn
IN_BATCHES_ONLY = (
    "BatchNorm",
    "CrossMapLRN",
    "FractionalMaxPool",
    "Lazy",
    "NLLLoss",
    "UpsamplingBilinear",
    "UpsamplingNearest",
)


@pytest.mark.filterwarnings("ignore:dropout2d. expected shape")
@pytest.mark.parametrize(
    "name",
    [n for n in dir(nn) if n[-2:] in ("1d", "2d", "3d") and not n.startswith(IN_BATCHES_ONLY)],
)
def test_an_image_gives_what_it_gives_in_a_batch(name: str) -> None:
    kind, dims = name[:-2], int(name[-2])
    layer = getattr(nn, name)(*LAYERS[kind]).double().eval()
    given = [weft.from_numpy(_distinct(3, 2, *[4, 6, 4][:dims]))]
    if kind == "MaxUnpool":
        given = getattr(F, f"max_pool{dims}d")(*given, 2, return_indices=True)
    batch = layer(*given).detach().numpy()
    for i, expected in enumerate(batch):
        alone = layer(*(t[i] for t in given)).detach().numpy()
        np.testing.assert_allclose(alone, expected, rtol=1e-12, atol=1e-12)


# ---- windows and convolutions ----


def test_unfold_and_fold() -> None:
    x = _array(2, 3, 5, 6)
    kernel, stride, padding = (2, 3), (1, 2), (1, 0)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 0)])
    view = np.lib.stride_tricks.sliding_window_view(padded, kernel, (2, 3))[:, :, ::1, ::2]
    columns = view.transpose(0, 1, 4, 5, 2, 3).reshape(2, 3 * 6, -1)
    _check(lambda t: F.unfold(t, kernel, 1, padding, stride), [x], columns)
    ones = F.unfold(weft.ones(2, 3, 5, 6, dtype=weft.float64), kernel, 1, padding, stride)
    counts = F.fold(ones, (5, 6), kernel, 1, padding, stride)
    whole = F.fold(weft.from_numpy(columns), (5, 6), kernel, 1, padding, stride) / counts
    np.testing.assert_allclose(
        whole.numpy()[..., :5], x[..., :5]
    )  # the last column is in no window
    assert gradcheck(
        lambda t: F.fold(t, (5, 6), kernel, 1, padding, stride),
        [weft.from_numpy(columns).requires_grad_()],
    )
    assert bool((nn.Fold((5, 6), kernel, 1, padding, stride)(ones) == counts).all())
    with pytest.raises(RuntimeError, match="fold: expected channels divisible by 6 and"):
        F.fold(ones, (5, 7), kernel)
    with pytest.raises(RuntimeError, match="unfold: expected windows that fit the input"):
        F.unfold(weft.ones(1, 1, 2, 2), 3)


def _conv3d(x: np.ndarray, w: np.ndarray, stride: int, padding: int, dilation: int) -> np.ndarray:
    padded = np.pad(x, [(0, 0)] * 2 + [(padding, padding)] * 3)
    span = [dilation * (k - 1) + 1 for k in w.shape[2:]]
    view = np.lib.stride_tricks.sliding_window_view(padded, span, (2, 3, 4))
    view = view[:, :, ::stride, ::stride, ::stride, ::dilation, ::dilation, ::dilation]
    return np.einsum("ncdhwijk,ocijk->nodhw", view, w)


@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (1, 2, 2)])
def test_conv3d_and_its_transpose(stride: int, padding: int, dilation: int) -> None:
    x, w = _array(2, 2, 5, 4, 5), _array(3, 2, 3, 2, 2)

    def conv(t: weft.Tensor, k: weft.Tensor) -> weft.Tensor:
        return F.conv3d(t, k, None, stride, padding, dilation)

    _check(conv, [x, w], _conv3d(x, w, stride, padding, dilation))
    # <conv(x), y> = <x, transpose(y)> for every y.
    tensors = weft.from_numpy(x).requires_grad_(), weft.from_numpy(w)
    y = conv(*tensors)
    upstream = weft.from_numpy(_array(*y.shape))
    (expected,) = weft.autograd.grad(y, tensors[0], upstream)
    got = F.conv_transpose3d(upstream, tensors[1], None, stride, padding, 0, 1, dilation)
    cut = [slice(0, n) for n in got.shape]
    np.testing.assert_allclose(got.numpy(), expected[tuple(cut)].numpy(), atol=1e-12)


@both
def test_programs_take_views_of_convolved_volumes(lib: Any) -> None:
    x = lib.ones(2, 4, 5, 5, 5)
    for layer in (
        lib.nn.Conv3d(4, 6, 3), lib.nn.Conv3d(4, 6, 1, bias=False), lib.nn.ConvTranspose3d(4, 6, 3),
        lib.nn.ConvTranspose3d(4, 6, 3, padding=1, bias=False), lib.nn.Conv3d(4, 4, 3, groups=2),
    ):  # fmt: skip
        y = layer(x)
        assert y.is_contiguous() and y.view(2, -1).shape[0] == 2
        assert layer(x[0]).is_contiguous()


@both
@pytest.mark.parametrize("name, dims", [("conv1d", 1), ("conv2d", 2), ("conv3d", 3)])
def test_gradients_of_convolutions_as_functions(lib: Any, name: str, dims: int) -> None:
    module = importlib.import_module(f"{lib.__name__}.nn.grad")
    for options in ((1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1)):
        x = lib.rand(2, 4, *[7] * dims, dtype=lib.float64, requires_grad=True)
        w = lib.rand(6, 4 // options[-1], *[3] * dims, dtype=lib.float64, requires_grad=True)
        y = getattr(lib.nn.functional, name)(x, w, None, *options)
        start = lib.rand(y.shape, dtype=lib.float64)
        of_x, of_w = lib.autograd.grad(y, (x, w), start)
        w = w.detach()
        assert lib.allclose(getattr(module, f"{name}_input")(x.shape, w, start, *options), of_x)
        given = dict(zip(("stride", "padding", "dilation", "groups"), options))
        found = getattr(module, f"{name}_weight")(x.detach(), w.shape, start, **given)
        assert lib.allclose(found, of_w) and not found.requires_grad
    with pytest.raises(RuntimeError):
        getattr(module, f"{name}_input")(x.shape, w, start[..., 1:])


@both
def test_maxima_and_their_places_by_name(lib: Any) -> None:
    functional, x = lib.nn.functional, lib.arange(64.0).reshape(1, 4, 4, 4)
    for name, values, size in (
        ("max_pool1d", x[0], 2), ("max_pool2d", x, (2, 1)), ("max_pool3d", x, 2),
        ("adaptive_max_pool1d", x[0], 3), ("adaptive_max_pool2d", x, (1, 3)), ("adaptive_max_pool3d", x, 2),
    ):  # fmt: skip
        found = getattr(functional, f"{name}_with_indices")(values, size)
        wanted = getattr(functional, name)(values, size, return_indices=True)
        assert all(lib.equal(one, other) for one, other in zip(found, wanted))


def test_groups_bias_and_layers_of_convolutions() -> None:
    x, w, b = (
        weft.from_numpy(a) for a in (_array(1, 4, 3, 3, 3), _array(4, 2, 2, 2, 2), _array(4))
    )
    halves = [F.conv3d(x[:, i : i + 2], w[i : i + 2], b[i : i + 2]) for i in (0, 2)]
    np.testing.assert_allclose(
        F.conv3d(x, w, b, groups=2).numpy(), weft.cat(halves, 1).numpy(), atol=1e-12
    )
    same = F.conv3d(x, w, padding="same", groups=2)
    assert tuple(same.shape) == (1, 4, 3, 3, 3)
    layer = nn.Conv3d(4, 6, 3, padding=1, padding_mode="circular")
    assert "padding_mode=circular" in repr(layer)
    around = F.pad(x.float(), (1,) * 6, "circular")
    expected = F.conv3d(around, layer.weight, layer.bias)
    np.testing.assert_allclose(layer(x.float()).detach().numpy(), expected.detach().numpy())
    up = nn.ConvTranspose1d(2, 3, 4, stride=2, padding=1)
    assert tuple(up(weft.ones(1, 2, 5)).shape) == (1, 3, 10)
    assert tuple(nn.ConvTranspose3d(2, 3, 2, stride=2)(weft.ones(1, 2, 2, 3, 4)).shape) == (
        1,
        3,
        4,
        6,
        8,
    )
    signal, taps = _array(2, 2, 6), _array(2, 3, 3)
    _check(
        lambda t, k: F.conv_transpose1d(t, k),
        [signal, taps],
        np.stack([sum(np.apply_along_axis(np.convolve, 0, s[c], taps[c, o]) for c in range(2))
                  for s in signal for o in range(3)]).reshape(2, 3, 8),
    )  # fmt: skip
    with pytest.raises(RuntimeError, match="conv3d: expected a weight of shape"):
        F.conv3d(x, w)
    for dims in (1, 2, 3):  # of one element, it must not broadcast
        image, kernel = weft.ones(1, 3, *[4] * dims), weft.ones(3, 4, *[3] * dims)
        with pytest.raises(RuntimeError, match=r"expected (a )?bias of shape \(4,\), got \(1,\)"):
            getattr(F, f"conv_transpose{dims}d")(image, kernel, weft.ones(1))
    with pytest.raises(ValueError, match="Conv2d: expected padding_mode 'zeros', 'reflect'"):
        nn.Conv2d(1, 1, 3, padding_mode="mirror")


@pytest.mark.parametrize("padding_mode", ["zeros", "circular"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_padding_same_keeps_the_size_for_even_kernels_too(dims: int, padding_mode: str) -> None:
    kernel = (2, 3, 4)[-dims:]
    layer = getattr(nn, f"Conv{dims}d")(
        2, 3, kernel, padding="same", dilation=2 if dims == 1 else 1, padding_mode=padding_mode
    )
    assert layer.padding == "same" and ", padding=same" in repr(layer)
    around = {1: (3, 3), 2: (1, 2, 1, 1), 3: (1, 2, 1, 1, 0, 1)}[dims]  # one more behind
    x = weft.from_numpy(_array(1, 2, *[6] * dims)).float()
    padded = F.pad(x, around, "constant" if padding_mode == "zeros" else padding_mode)
    conv = getattr(F, f"conv{dims}d")
    expected = conv(padded, layer.weight, layer.bias, dilation=layer.dilation).detach()
    for got in (layer(x), weft.jit.script(layer)(x)):
        assert got.shape == (1, 3, *[6] * dims)
        np.testing.assert_allclose(got.detach().numpy(), expected.numpy(), atol=1e-6)
    with pytest.raises(ValueError, match="or 'same' with stride 1, got 'same'"):
        type(layer)(2, 3, kernel, stride=2, padding="same")


@pytest.mark.parametrize(
    "name",
    ["dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"],
)
def test_dropout_in_place_that_changes_nothing_takes_leaves(name: str) -> None:
    x = weft.ones(2, 3, 4, 4, requires_grad=True)
    x = x[0].detach().requires_grad_() if name == "dropout1d" else x
    for p, training in ((0.5, False), (1.0, False), (0.0, True)):
        y = getattr(F, name)(x, p, training=training, inplace=True)
        assert y.is_leaf or name in ("dropout1d", "dropout3d")
        assert y.data_ptr() == x.data_ptr() and weft.equal(y, x)
    with pytest.raises(RuntimeError, match=r"got a (view of a )?leaf that requires grad"):
        getattr(F, name)(x, 0.5, training=True, inplace=True)


@pytest.mark.parametrize("name", ["softmax", "softmin", "log_softmax"])
def test_softmax_without_dim_takes_what_pytorch_takes(name: str) -> None:
    function = getattr(F, name)
    shapes = {(): 0, (3,): 0, (2, 3): 1, (2, 3, 2): 0, (2, 3, 1, 2): 1, (2, 3, 1, 2, 1): 1}
    for shape, dim in shapes.items():
        x = weft.randn(shape)
        with pytest.warns(UserWarning, match=f"Implicit dimension choice for {name} has") as seen:
            got = function(x)
        assert weft.equal(got, function(x, dim)) and seen[0].filename == __file__
    layer = {"softmax": nn.Softmax, "softmin": nn.Softmin, "log_softmax": nn.LogSoftmax}[name]()
    assert repr(layer).endswith("(dim=None)")
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        assert weft.equal(layer(x), function(x, 1))
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        assert weft.equal(weft.jit.trace(layer, x)(x), function(x, 1))


def test_softmax_over_channels() -> None:
    for shape in ((2, 3, 4, 5), (3, 4, 5)):
        x = weft.randn(shape)
        assert weft.equal(nn.Softmax2d()(x), x.softmax(-3))
    with pytest.raises(ValueError, match=r"Softmax2d: expected 3 or 4 dims, got shape \(3,\)"):
        nn.Softmax2d()(weft.ones(3))


def test_channels_dropped_and_instances_normalised() -> None:
    weft.manual_seed(3)
    x = weft.ones(4, 50, 3, 3)
    y = nn.Dropout2d(0.25)(x)
    assert set(y.flatten(2).sum(2).round(decimals=3).flatten().tolist()) == {0.0, 12.0}
    assert nn.Dropout2d(0.25).eval()(x) is x
    z = F.alpha_dropout(weft.randn(20000), 0.3, True)
    assert abs(z.mean().item()) < 0.05 and abs(z.std().item() - 1) < 0.05
    norm = nn.InstanceNorm2d(3, affine=True)
    out = norm(weft.randn(2, 3, 4, 5))
    np.testing.assert_allclose(out.mean((2, 3)).detach().numpy(), 0, atol=1e-6)
    assert tuple(norm(weft.randn(3, 4, 5)).shape) == (3, 4, 5)
    assert tuple(nn.BatchNorm3d(2)(weft.randn(2, 2, 2, 2, 2)).shape) == (2, 2, 2, 2, 2)
    with pytest.raises(ValueError, match="expected 3D or 4D input"):
        norm(weft.ones(2, 2))


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64, weft.bfloat16])
def test_maxima_of_lines_of_every_width(dtype: Any) -> None:
    """Lines of fewer results than a register has lanes take narrower ones."""
    for width in range(2, 40):
        x = weft.arange(6.0 * width).mul(37).remainder(101).reshape(1, 2, 3, width).to(dtype)
        sides = x[..., :-1].maximum(x[..., 1:])
        assert F.max_pool2d(x, (1, 2), 1).equal(sides)
        assert F.max_pool2d(x, 2, 1).equal(sides[..., :-1, :].maximum(sides[..., 1:, :]))
        values, places = F.max_pool2d(x, (1, 2), (1, 2), return_indices=True)
        assert values.equal(sides[..., ::2]) and x.flatten(2).gather(2, places.flatten(2)).equal(
            values.flatten(2)
        )
