"""Ways that the library takes for some shapes only, each against the same result got another way."""

from __future__ import annotations

import numpy as np
import pytest

import weft

pytestmark = pytest.mark.threads

F = weft.nn.functional


def _random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def _gradients(x, w, b, grad, dtype, **options):  # type: ignore[no-untyped-def]
    """The result of conv2d and its gradients, in float64 or its complex form."""
    leaves = [weft.tensor(a).to(dtype).requires_grad_(True) for a in (x, w, b)]
    out = F.conv2d(*leaves, **options)
    out.backward(weft.tensor(grad).to(dtype))
    return [
        np.real(t.detach().numpy()).astype(np.float64) for t in (out, *(a.grad for a in leaves))
    ]


# Batch, input channels, output channels, height, width and options.
_WINOGRAD = {
    "even": ((2, 16, 16, 10, 12), {"padding": 1}),
    "odd, no padding": ((3, 17, 19, 9, 11), {}),
    "padding 2 and 0": ((2, 33, 16, 7, 9), {"padding": (2, 0)}),
    "groups": ((2, 48, 32, 12, 20), {"padding": 1, "groups": 2}),
    "several images to a block": ((9, 64, 80, 7, 7), {"padding": 1}),
    "several blocks to an image": ((1, 64, 32, 40, 36), {"padding": 1}),
    "narrow": ((2, 16, 16, 40, 3), {"padding": (0, 1)}),
    "deep": ((2, 300, 16, 9, 9), {"padding": 1}),
}


@pytest.mark.parametrize("name", _WINOGRAD)
def test_winograd_convolution(name: str) -> None:
    """3x3 kernels with stride 1 of many channels, against float64, which never goes this way."""
    (batch, inputs, outputs, height, width), options = _WINOGRAD[name]
    x = _random(batch, inputs, height, width, seed=1)
    w = _random(outputs, inputs // options.get("groups", 1), 3, 3, seed=2)
    b = _random(outputs, seed=3)
    shape = F.conv2d(weft.tensor(x), weft.tensor(w), **options).shape
    grad = _random(*shape, seed=4)
    expected = _gradients(x, w, b, grad, weft.float64, **options)
    for got, want in zip(_gradients(x, w, b, grad, weft.float32, **options), expected):
        assert np.abs(got - want).max() < 3e-6 * np.abs(want).max()


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize(
    ("m", "n"), [(3, 9), (20, 40), (20, 140), (280, 40), (280, 140)], ids=lambda n: str(n)
)
def test_products_deeper_than_a_block(m: int, n: int, dtype: str) -> None:
    """Of small whole numbers, which are exact: parts of the depth are added once each."""
    a, b, c = (np.round(3 * _random(*s)) for s in ((m, 520), (520, n), (m, n)))
    start = weft.tensor(c.astype(dtype))
    for left in (weft.tensor(a.astype(dtype)), weft.tensor(a.T.astype(dtype).copy()).t()):
        for right in (weft.tensor(b.astype(dtype)), weft.tensor(b.T.astype(dtype).copy()).t()):
            np.testing.assert_array_equal((left @ right).numpy(), a @ b)
            got = weft.addmm(start, left, right, beta=3, alpha=2)
            np.testing.assert_array_equal(got.numpy(), 3 * c + 2 * (a @ b))


# Batch, input channels, kernels of each, height, width, kernel sizes and options.
_PLANES = {
    "depthwise 3x3": ((2, 8, 1, 17, 19), (3, 3), {"padding": 1}),
    "multiplier": ((2, 5, 3, 9, 16), (3, 3), {"padding": 1}),
    "narrower than a vector": ((2, 5, 1, 6, 5), (3, 3), {}),
    "5x2, dilation": ((1, 4, 2, 20, 33), (5, 2), {"padding": (1, 2), "dilation": (2, 3)}),
    "stride along columns": ((2, 4, 1, 20, 18), (3, 3), {"stride": (2, 1), "padding": 1}),
    "more padding than the kernel reaches": ((1, 3, 1, 6, 6), (1, 2), {"padding": (2, 1)}),
    "one input channel": ((3, 1, 7, 28, 28), (3, 3), {"padding": 1}),
}


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
@pytest.mark.parametrize("name", _PLANES)
def test_convolution_of_single_planes(name: str, dtype: weft.dtype) -> None:
    """Kernels of one channel, against complex numbers, which go by matrix products and lines."""
    (batch, channels, multiplier, height, width), kernel, options = _PLANES[name]
    options = {**options, "groups": channels}
    x = _random(batch, channels, height, width, seed=1)
    w, b = _random(channels * multiplier, 1, *kernel, seed=2), _random(channels * multiplier)
    shape = F.conv2d(weft.tensor(x), weft.tensor(w), **options).shape
    grad = _random(*shape, seed=4)
    tolerance = 2e-6 if dtype == weft.float32 else 2e-15
    expected = _gradients(x, w, b, grad, weft.complex128, **options)
    for got, want in zip(_gradients(x, w, b, grad, dtype, **options), expected):
        assert np.abs(got - want).max() <= tolerance * np.abs(want).max()


# Batch, channels, height, width, kernel sizes and options.
_DEPTHWISE = {
    "3x3": ((2, 32, 17, 19), (3, 3), {"padding": 1}),
    "stride 2": ((2, 24, 15, 22), (3, 3), {"stride": 2, "padding": 1}),
    "strides, odd channels": ((1, 37, 20, 18), (3, 3), {"stride": (2, 1), "padding": (0, 1)}),
    "few channels": ((3, 5, 9, 16), (5, 2), {"padding": (1, 2)}),
    "two channels": ((2, 2, 8, 9), (3, 3), {"padding": 1}),
    "dilation": ((1, 20, 20, 33), (3, 5), {"padding": (1, 2), "dilation": (2, 3)}),
    "more padding than the kernel reaches": ((1, 17, 6, 6), (1, 2), {"padding": (2, 3)}),
    "narrower than the kernel": ((2, 16, 3, 2), (7, 7), {"padding": 3}),
    "stride over the kernel": ((2, 18, 11, 13), (2, 2), {"stride": 3}),
}


@pytest.mark.parametrize("name", _DEPTHWISE)
def test_depthwise_convolution_by_channels(name: str) -> None:
    """Images by channels, against float64; what follows a convolution is joined to it."""
    (batch, channels, *sizes), kernel, options = _DEPTHWISE[name]
    options = {**options, "groups": channels}
    x = _random(batch, channels, *sizes, seed=1)
    w, b = _random(channels, 1, *kernel, seed=2), _random(channels, seed=3)
    want = F.conv2d(*(weft.tensor(a) for a in (x, w, b)), **options).numpy()
    image, *rest = (weft.tensor(a).float() for a in (x, w, b))
    image = image.contiguous(memory_format=weft.channels_last)
    got = F.conv2d(image, *rest, **options)
    assert got.is_contiguous(memory_format=weft.channels_last)
    scale = 2e-6 * np.abs(want).max()
    assert np.abs(got.numpy() - want).max() <= scale
    residual = weft.tensor(_random(*want.shape, seed=5)).float()
    residual = residual.contiguous(memory_format=weft.channels_last)
    lists = [[v, v] if isinstance(v, int) else list(v) for v in (
        options.get("stride", 1), options.get("padding", 0), options.get("dilation", 1)
    )]  # fmt: skip
    joined = weft.ops.aten._conv2d_sum(image, *rest, residual, True, *lists, channels)
    assert (joined == F.relu(got + residual)).all()
    bare = F.conv2d(image, rest[0], **options) + rest[1].reshape(-1, 1, 1)
    assert np.abs(bare.numpy() - want).max() <= scale
    grad = _random(*want.shape, seed=4)
    expected = _gradients(x, w, b, grad, weft.float64, **options)
    leaf = image.requires_grad_()
    weights = [r.requires_grad_() for r in rest]
    F.conv2d(leaf, *weights, **options).backward(weft.tensor(grad).float())
    for got, want in zip((leaf, *weights), expected[1:]):
        assert np.abs(got.grad.numpy() - want).max() <= 3e-6 * np.abs(want).max()


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize(
    "shape", [(3, 5, 4, 4), (2, 3, 7, 31), (4, 2, 100), (6, 4, 15), (9, 4), (1500, 70)]
)
def test_batch_norm_lines(shape: tuple[int, ...], affine: bool) -> None:
    """Lines of at least 16 values have loops of their own; against NumPy, with a mean far from 0."""
    x, grad = _random(*shape) * 3 + 50, _random(*shape, seed=1)
    along = (0, *range(2, len(shape)))
    w, b = _random(shape[1], seed=2), _random(shape[1], seed=3)
    wide = (1, -1, *[1] * (len(shape) - 2))
    scale, shift = (w.reshape(wide), b.reshape(wide)) if affine else (1.0, 0.0)
    mean, deviation = x.mean(along, keepdims=True), np.sqrt(x.var(along, keepdims=True) + 1e-5)
    normal = (x - mean) / deviation
    slope = (grad * normal).mean(along, keepdims=True)
    back = (grad - grad.mean(along, keepdims=True) - normal * slope) * scale / deviation
    for dtype, tolerance in ((weft.float64, 1e-12), (weft.float32, 2e-5)):
        leaf = weft.tensor(x).to(dtype).requires_grad_(True)
        parts = [weft.tensor(a).to(dtype).requires_grad_(True) for a in (w, b)]
        out = F.batch_norm(leaf, None, None, *(parts if affine else (None, None)), training=True)
        out.backward(weft.tensor(grad).to(dtype))
        assert np.abs(out.detach().numpy() - (normal * scale + shift)).max() < tolerance
        assert np.abs(leaf.grad.numpy() - back).max() < tolerance
        if affine:
            sums = (grad * normal).sum(along), grad.sum(along)
            for part, want in zip(parts, sums):
                assert np.abs(part.grad.numpy() - want).max() < tolerance * shape[0] * 10


@pytest.mark.parametrize("length", [31, 255, 256, 257, 511, 512, 513, 700, 1023, 1024, 1500])
def test_rows_that_repeat(length: int) -> None:
    """A row that broadcasts is copied side by side for tiles of several rows."""
    x, row = _random(67, length), _random(length, seed=1)
    a, b = weft.tensor(x), weft.tensor(row)
    assert np.array_equal((a + b).numpy(), x + row)
    assert np.array_equal(weft.where(a > 0, b, a).numpy(), np.where(x > 0, row, x))
    assert np.array_equal(b.expand(67, length).contiguous().numpy(), np.tile(row, (67, 1)))
    small = weft.arange(length, dtype=weft.int32)
    assert np.array_equal((a + small).numpy(), x + np.arange(length))
    assert np.array_equal(
        (a.half() + b.half()).numpy(), (a.half() + b.half().expand(67, -1)).numpy()
    )
    every_other = weft.tensor(_random(2 * length, seed=2))[::2]
    assert np.array_equal((a * every_other).numpy(), x * every_other.numpy())


@pytest.mark.parametrize("shape", [(5, 1), (700, 1), (3, 511), (99, 513), (40, 5000), (3, 40000)])
def test_rows_that_repeat_in_place(shape: tuple[int, int]) -> None:
    x, row = _random(*shape), _random(shape[1], seed=1)
    number, scale = np.float64(1.5), _random(1, seed=2)
    a, b = weft.tensor(x), weft.tensor(row)
    given = weft.empty(shape, dtype=weft.float64)
    assert weft.mul(a, b, out=given) is given
    assert np.array_equal(given.numpy(), x * row)
    mixed = weft.addcmul(a, b, weft.tensor(scale), value=2.0)
    assert np.array_equal(mixed.numpy(), (x + 2.0 * (row * scale)))
    assert np.array_equal((a * weft.tensor(number)).numpy(), x * number)
    a += b
    assert np.array_equal(a.numpy(), x + row)
    first = a.numpy()[0].copy()
    a += a[0]  # lies in what is written
    assert np.array_equal(a.numpy(), x + row + first)


@pytest.mark.parametrize("count", [7, 5000, 100_000])
def test_a_given_result_over_an_input(count: int) -> None:
    x = _random(count + 1)
    for shift in (0, 1):
        memory = weft.tensor(x)
        weft.mul(memory[:count], 3.0 * weft.ones(count), out=memory[shift : count + shift])
        assert np.array_equal(memory[shift : count + shift].numpy(), x[:count] * 3.0)
    wide = weft.empty(count, 2, dtype=weft.float64)[:, 0]
    assert np.array_equal(
        weft.exp(weft.tensor(x[:count]), out=wide).numpy(), weft.exp(weft.tensor(x[:count])).numpy()
    )
    with pytest.raises(RuntimeError):
        weft.mul(weft.tensor(x), weft.tensor(x), out=weft.empty(count + 1, dtype=weft.int64))


@pytest.mark.parametrize("rows", [1, 3, 4, 9])
def test_running_sums_of_several_rows(rows: int) -> None:
    x = _random(rows, 37)
    assert np.array_equal(weft.tensor(x).cumsum(1).numpy(), np.cumsum(x, 1))
    single = x.astype(np.float32)
    wide = np.cumsum(single.astype(np.float64), 1).astype(np.float32)
    assert np.array_equal(weft.tensor(single).cumsum(1).numpy(), wide)


def test_gelu_in_float32() -> None:
    """Within 2 units of the last place of x, and in relative terms on the negative side too."""
    x = np.linspace(-5, 8, 40001).astype(np.float32)
    got = F.gelu(weft.tensor(x)).numpy().astype(np.float64)
    want = F.gelu(weft.tensor(x.astype(np.float64))).numpy()
    assert (np.abs(got - want) < 2 * np.spacing(np.abs(x))).all()
    left = x < -0.01
    assert (np.abs(got - want) < 1e-4 * np.abs(want))[left].all()
    special = F.gelu(weft.tensor([float("inf"), -100.0, -0.0, float("nan")])).tolist()
    assert special[:3] == [float("inf"), 0.0, 0.0] and special[3] != special[3]


@pytest.mark.parametrize("shape", [(2, 2), (16, 3), (17, 3), (3, 5, 2), (128, 16), (129, 16)])
def test_small_reductions_over_first_dimensions(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
    a = weft.tensor(x)
    assert np.array_equal(a.sum(0).numpy(), x.sum(0))
    assert np.array_equal(a.amax(0, keepdim=True).numpy(), x.max(0, keepdims=True))
    assert np.array_equal(a.argmin(0).numpy(), x.argmin(0))
    assert np.allclose(a.var(0).numpy(), x.var(0, ddof=1), rtol=1e-5)


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64, weft.int64, weft.uint8])
@pytest.mark.parametrize(
    "rows, inner, columns",
    [(12, 5, 32), (13, 256, 33), (64, 300, 127), (240, 513, 40), (30, 256, 200), (30, 240, 130)],
)
def test_products_of_a_few_rows(rows: int, inner: int, columns: int, dtype: weft.dtype) -> None:
    """Strips of the second matrix are packed while the first rows meet them."""
    generator = np.random.default_rng(0)
    # Rows of `a` a kilobyte apart are packed first.
    a = weft.tensor(generator.integers(-3, 4, (rows, 512 + 2 * inner // 512 * 256))).to(dtype)
    a, b = a[:, :inner], weft.tensor(generator.integers(-3, 4, (inner, columns))).to(dtype)
    want = a.to(weft.int64).numpy() @ b.to(weft.int64).numpy()
    assert np.array_equal((a @ b).numpy(), weft.tensor(want).to(dtype).numpy())
    start = weft.ones(rows, columns, dtype=dtype)
    both = weft.addmm(start, a, b, beta=2)
    assert np.array_equal(both.numpy(), weft.tensor(want + 2).to(dtype).numpy())


def test_strided_convolution() -> None:
    """A stride of 2 takes every other value of a line, whole vectors at a time but for the end."""
    for width in (5, 31, 32, 33, 34, 64, 97):
        x, w = _random(2, 3, 6, width, seed=1), _random(4, 3, 3, 3, seed=2)
        options = {"stride": 2, "padding": 1}
        want = F.conv2d(weft.tensor(x), weft.tensor(w), **options).numpy()
        got = F.conv2d(weft.tensor(x).float(), weft.tensor(w).float(), **options).numpy()
        assert np.abs(got - want).max() < 1e-5


def test_running_sums_of_lines() -> None:
    """float32 lines are summed some elements at a time, in float64; the rest one by one."""
    for length in (1, 7, 8, 9, 31, 64, 1025):
        x = np.random.default_rng(length).integers(-999, 999, (6, length)).astype(np.float32)
        want = np.cumsum(x.astype(np.float64), 1).astype(np.float32)
        assert np.array_equal(weft.tensor(x).cumsum(1).numpy(), want)
    x = np.ones((1, 20), np.float32)
    x[0, 9], x[0, 17] = np.inf, -np.inf
    want = [*range(1, 10), *[np.inf] * 8, *[np.nan] * 3]
    np.testing.assert_array_equal(weft.tensor(x).cumsum(1).numpy()[0], want)


@pytest.mark.parametrize("shape", [(300, 700), (700, 300), (3, 90_000), (90_000, 3), (5, 200, 300)])
def test_rows_that_lie_at_one_distance(shape: tuple[int, ...]) -> None:
    """Blocks of equal rows or columns: each kernel is called along them, without a plan for each."""
    x = _random(*shape, seed=3).astype(np.float32)
    t = weft.tensor(x)
    for dim in range(len(shape)):
        wide = x.astype(np.float64)
        np.testing.assert_allclose(t.sum(dim).numpy(), wide.sum(dim), rtol=1e-4, atol=1e-3)
        np.testing.assert_array_equal(t.amax(dim).numpy(), x.max(dim))
        e = np.exp(wide - wide.max(dim, keepdims=True))
        want = e / e.sum(dim, keepdims=True)
        np.testing.assert_allclose(F.softmax(t, dim).numpy(), want, rtol=1e-5)


SHORT = {
    "add": lambda x, y, m: x + y,
    "add, scaled": lambda x, y, m: weft.add(x, y, alpha=0.3),
    "a number": lambda x, y, m: x * 1.001 - 70000.0,
    "divided": lambda x, y, m: x / y,
    "sides": lambda x, y, m: weft.where(m, x, y).maximum(y).clamp(-2.3, 3.1),
    "compared": lambda x, y, m: (x < y).logical_xor(x == y),
    "signs": lambda x, y, m: -x.abs(),
    "relu": lambda x, y, m: x.relu() + x.masked_fill(m, 0.1),
    "lerp": lambda x, y, m: weft.lerp(x, y, 0.7),
    "addcmul": lambda x, y, m: weft.addcmul(x, y, y, value=0.1),
    "roots": lambda x, y, m: x.sqrt() + y.reciprocal(),
    "in place": lambda x, y, m: x.clone().mul_(y).add_(0.1).sub_(y, alpha=2),
    "by itself": lambda x, y, m: x.clone().mul_(x),
    "numbers of no dimension": lambda x, y, m: x * y.reshape(-1)[0] + weft.tensor(0.1),
}


@pytest.mark.parametrize("dtype", [weft.float16, weft.bfloat16])
@pytest.mark.parametrize("size", [1, 3, 4, 15, 16, 17, 33, 1000, 70_001])
@pytest.mark.parametrize("name", SHORT)
def test_short_kernels_of_16_bits_round_as_conversions_do(name, size, dtype):
    special = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-7, -6e-5, 65504.0, 1e-40]
    numbers = weft.randn(2 * size, 4)
    numbers.view(-1)[: len(special)] = weft.tensor(special)[: numbers.numel()]
    numbers = numbers.view(-1)[weft.randperm(numbers.numel())].view(2 * size, 4).to(dtype)
    mask = weft.randn(2 * size, 2) > 0
    apart = numbers[::2, 0], numbers[::2, 1], mask[::2, 0]  # goes through float32, tile by tile
    together = [x.contiguous() for x in apart]
    wanted, got = SHORT[name](*apart), SHORT[name](*together)
    assert got.dtype == wanted.dtype
    bits = (lambda t: t) if got.dtype == weft.bool else (lambda t: t.contiguous().view(weft.int16))
    nan = wanted.isnan() & got.isnan()
    assert ((bits(got) == bits(wanted)) | nan).all()
    one = [x.double() if x.is_floating_point() else x for x in together]
    if name == "add":  # rounded once
        weft.testing.assert_close(got, (one[0] + one[1]).to(dtype), rtol=0, atol=0, equal_nan=True)
