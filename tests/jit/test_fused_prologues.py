"""Groups with a head and what makes its operand: bits of the operators one by one, and less memory."""

from __future__ import annotations

import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
import weft.nn.functional as F
from jit.allocations import use_of
from jit.heads import bits, check, check_errors, threads
from weft import jit

pytestmark = pytest.mark.threads


def gelu_linear(x, w, b):
    return F.linear(F.gelu(x), w, b)


def shifted(x, w, b):
    return weft.mm(weft.relu(x * 2.0 - 0.5), w.t())


def started(x, w, b):
    return weft.addmm(b, x.sigmoid() * x, w.t(), beta=0.5, alpha=2.0).tanh()


def both_sides(x, w, b):
    return F.gelu(F.linear(F.silu(x), w, b)) + 1.0


def matmul(x, w, b):
    return weft.matmul(x.tanh() + 1.0, w.t())


FUNCTIONS = [gelu_linear, shifted, started, both_sides, matmul]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "shape",
    [(1300, 128, 70), (1301, 65, 301), (1060, 300, 17), (1500, 1025, 33), (40, 7, 9), (1200, 0, 5)],
    ids=str,
)
def test_products_give_the_bits_of_eager(function, shape):
    """Enough rows for several panels, and too few of them; rows that are too long."""
    m, k, n = shape
    weft.manual_seed(0)
    for dtype in (weft.float32, weft.float64):
        x, w, b = (weft.randn(*s).to(dtype) for s in ((m, k), (n, k), (n,)))
        check(function, x, w, b)
        check(function, x.t().contiguous().t(), w.t().contiguous().t(), b)
        check(function, weft.randn(m, k + 3).to(dtype)[:, 1 : k + 1], w, b)


@pytest.mark.parametrize("dtype", [weft.float16, weft.bfloat16, weft.complex64], ids=str)
def test_other_dtypes(dtype):
    weft.manual_seed(0)
    x, w, b = (weft.randn(*s).to(dtype) for s in ((1300, 40), (30, 40), (30,)))
    check(matmul, x, w, b)


def test_threads():
    weft.manual_seed(0)
    for count in (1, 2, 3):
        with threads(count):
            for m, k, n in ((1600, 70, 40), (1590, 70, 200), (2000, 30, 700)):
                check(both_sides, weft.randn(m, k), weft.randn(n, k), weft.randn(n))
            x, w, s = weft.randn(7, 20, 33, 30), weft.randn(24, 20, 3, 3), weft.randn(20, 1, 1)
            check(padded_conv, x, w, s)
            check(padded_conv, x[:3].contiguous(), w, s)


def scaled(x, w, s):
    return F.linear(x * s, w)


def test_operands_broadcast():
    weft.manual_seed(0)
    x, w = weft.randn(4, 400, 48), weft.randn(20, 48)
    for s in ((48,), (400, 48), (4, 1, 48), (4, 400, 1), (1,), (4, 1, 1)):
        check(scaled, x, w, weft.randn(s))
    check(scaled, x, w, weft.randn(400, 4, 48).transpose(0, 1))  # the result lies otherwise
    check(scaled, x[:, ::2], w, weft.randn(48))
    check(scaled, weft.randn(1600, 1), w, weft.randn(48))  # the operand is larger than its parts
    check(scaled, weft.randn(48), w, weft.randn(48))


def norm_linear(x, w, b):
    return F.linear(F.layer_norm(x, [96]), w, b)


def attention(q, k, v):
    return weft.matmul(weft.softmax(weft.matmul(q * 0.25, k.transpose(-2, -1)), -1), v)


def rms(x, w, b):
    return F.linear(x * weft.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6), w, b)


def test_row_operators_make_operands():
    weft.manual_seed(0)
    for lead in ((1400,), (3, 500), (7, 2, 3)):
        for function in (norm_linear, rms):
            check(function, weft.randn(*lead, 96), weft.randn(50, 96), weft.randn(50))
    x = weft.randn(1400, 96)
    check(norm_linear, x.double(), weft.randn(50, 96).double(), weft.randn(50).double())
    check(norm_linear, weft.randn(96, 1400).t(), weft.randn(50, 96), weft.randn(50))


def test_batches():
    weft.manual_seed(0)
    q, k, v = weft.randn(2, 6, 60, 16), weft.randn(2, 6, 70, 16), weft.randn(2, 6, 70, 30)
    check(attention, q, k, v)
    check(attention, q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1))
    check(attention, q[:, :1], k, v)  # repeated for all of them
    check(attention, q[0, 0], k[0, 0], v[0, 0])
    check(batches, q[0], k[0], weft.randn(6, 60, 70))


def batches(q, k, m):
    return weft.baddbmm(m, q.tanh() - 1.0, k.transpose(1, 2)), weft.bmm(q * 2.0, k.transpose(1, 2))


def activated_conv(x, w, s):
    return F.conv2d(weft.relu(x * s + 0.5), w)


def strided_conv(x, w, s):
    return F.conv2d(weft.relu(x * s), w, stride=2).tanh()


def grouped_conv(x, w, s):
    return F.silu(F.conv2d(weft.relu(x - s), w, s.reshape(-1), groups=2))


def padded_conv(x, w, s):
    """Zeros of the padding are none of what stands before: they do not become 0.5."""
    return F.conv2d(weft.relu(x * s + 0.5), w, padding=1)


def dilated_conv(x, w, s):
    return F.conv2d(F.gelu(x) - s, w, padding=[3, 2], dilation=[2, 1]) + 1.0


def skipping_conv(x, w, s):
    return F.conv2d(weft.exp(x * s), w, None, [2, 3], 1)


def depthwise(x, w, s):
    return F.conv2d(weft.relu(x * s + 0.5), w, s.reshape(-1), padding=1, groups=12)


def depthwise_strided(x, w, s):
    return F.silu(F.conv2d(x.tanh() * s, w, None, 2, 1, groups=12))


def test_pointwise_convolutions_give_the_bits_of_eager():
    weft.manual_seed(0)
    for dtype in (weft.float32, weft.float64, weft.bfloat16):
        for image, out in (((5, 20, 30, 28), 16), ((2, 600, 20, 27), 24), ((3, 20, 7, 5), 9)):
            x, w, s = (weft.randn(*d) for d in (image, (out, image[1], 1, 1), (image[1], 1, 1)))
            for function in (activated_conv, strided_conv):
                check(function, x.to(dtype), w.to(dtype), s.to(dtype))
    x, w = weft.randn(4, 32, 20, 20), weft.randn(32, 16, 1, 1)
    check(grouped_conv, x, w, weft.randn(32, 1, 1))
    check(activated_conv, x.transpose(-2, -1), weft.randn(24, 32, 1, 1), weft.randn(20))
    check(activated_conv, x[0], weft.randn(24, 32, 1, 1), weft.randn(32, 1, 1))


@pytest.mark.parametrize(
    "function", [activated_conv, padded_conv, dilated_conv, skipping_conv], ids=lambda f: f.__name__
)
def test_convolutions_give_the_bits_of_eager(function):
    """By Winograd's tiles, unrolled, of one channel; images of which a thread has too few."""
    weft.manual_seed(0)
    shapes = (
        ((9, 20, 30, 28), (24, 20, 3, 3)),
        ((9, 20, 7, 7), (24, 20, 3, 3)),
        ((4, 3, 41, 37), (17, 3, 5, 3)),
        ((8, 1, 20, 20), (6, 1, 3, 3)),
        ((1, 20, 30, 28), (24, 20, 3, 3)),
        ((20, 30, 28), (24, 20, 3, 3)),
        ((0, 20, 9, 9), (4, 20, 3, 3)),
    )
    for image, weight in shapes:
        for dtype in (weft.float32, weft.float64, weft.bfloat16):
            x, w, s = (weft.randn(*d).to(dtype) for d in (image, weight, (weight[1], 1, 1)))
            check(function, x, w, s)
        check(function, weft.randn(*image).transpose(-2, -1), weft.randn(*weight), weft.randn(1))
        check(function, weft.randn(*image), weft.randn(*weight), weft.randn(image[-1]))


@pytest.mark.parametrize("function", [depthwise, depthwise_strided], ids=lambda f: f.__name__)
def test_depthwise_convolutions_give_the_bits_of_eager(function):
    weft.manual_seed(0)
    for multiplier, size in ((1, (33, 30)), (2, (9, 8)), (1, (130, 99)), (1, (3, 2))):
        for dtype in (weft.float32, weft.float64):
            x = weft.randn(3, 12, *size).to(dtype)
            w = weft.randn(12 * multiplier, 1, 3, 3).to(dtype)
            s = weft.randn(12 if multiplier == 1 else 1, 1, 1).to(dtype)
            if function is depthwise_strided or multiplier == 1:
                check(function, x, w, s)


def made_by_rows(x, w, s):
    """Parts of an image are not whole rows: only the whole."""
    return F.conv2d(weft.softmax(x * s, -1) * 2.0, w, padding=1)


def test_row_operators_before_a_convolution():
    weft.manual_seed(0)
    check(made_by_rows, weft.randn(6, 20, 30, 28), weft.randn(24, 20, 3, 3), weft.randn(20, 1, 1))


@given(st.data())
@examples(40)
def test_random_convolutions(data):
    """Any geometry, in a program made for it."""

    def draw(low, high):
        return data.draw(st.integers(low, high))

    groups, of_group, out = draw(1, 4), draw(1, 20), draw(1, 20)
    kernel, stride, dilation = ([draw(1, 3), draw(1, 3)] for _ in range(3))
    padding = [draw(0, 3), draw(0, 3)]
    size = [d * (k - 1) + draw(1, 24) for d, k in zip(dilation, kernel)]
    before = data.draw(st.sampled_from(["torch.relu(x * s + 0.5)", "torch.exp(x) - s", "-x"]))
    source = f"""
def run(x, w, s):
    return torch.conv2d({before}, w, None, {stride}, {padding}, {dilation}, {groups})
"""
    eager = {"torch": weft}
    exec(source, eager)
    compiled = jit.CompilationUnit(source).run
    x = weft.randn(draw(1, 5), groups * of_group, *size)
    w, s = weft.randn(groups * out, of_group, *kernel), weft.randn(groups * of_group, 1, 1)
    with weft.no_grad():
        expected = bits(eager["run"](x, w, s))
        assert all(bits(compiled(x, w, s)) == expected for _ in range(2))


@given(
    st.integers(0, 1500),
    st.integers(0, 200),
    st.integers(0, 100),
    st.booleans(),
    st.sampled_from(FUNCTIONS),
)
@examples(25)
def test_random_products(m, k, n, left, function):
    x = weft.randn(k, m).t() if left else weft.randn(m, k)
    check(function, x, weft.randn(n, k), weft.randn(n))


# ---- right operands ----


def dequantised(x, w, s):
    return F.linear(x, w * s)


def product(x, w, s):
    return weft.relu(x @ (w.exp() - 0.5) + 1.0)


def started_right(x, w, s):
    return weft.addmm(s[0], x, weft.relu(w), beta=0.5, alpha=2.0)


def normed_weight(x, w, s):
    """Row operators make whole rows, which are parts of a turned operand."""
    return F.linear(x, w / weft.sqrt((w * w).sum(-1, keepdim=True)) * s)


def both_made(x, w, s):
    """One is the prologue, the other a group of its own."""
    return F.linear(F.gelu(x), w * s)


RIGHT = {
    dequantised: lambda k, n: ((n, k), (n, 1)),
    product: lambda k, n: ((k, n), (1,)),
    started_right: lambda k, n: ((k, n), (1, n)),
    normed_weight: lambda k, n: ((n, k), (n, 1)),
    both_made: lambda k, n: ((n, k), (k,)),
}


@pytest.mark.parametrize("function", RIGHT, ids=lambda f: f.__name__)
def test_right_operands_give_the_bits_of_eager(function):
    weft.manual_seed(0)
    for count in (1, 2, 3):
        with threads(count):
            for m, k, n in ((1, 270, 3100), (2, 300, 3100), (20, 513, 3100), (600, 40, 3300)):
                for dtype in (weft.float32, weft.float64):
                    w, s = (weft.randn(*size).to(dtype) for size in RIGHT[function](k, n))
                    check(function, weft.randn(m, k).to(dtype), w, s)
    w, s = (weft.randn(*size) for size in RIGHT[function](513, 3100))
    check(function, weft.randn(513, 20).t(), w, s)
    check(function, weft.randn(4, 5, 513)[0], w, s)
    if function is not started_right:
        check(function, weft.randn(4, 5, 513), w, s)
    check(function, weft.randn(20, 513).bfloat16(), w.bfloat16(), s.bfloat16())


def values(p, v, m):
    return weft.matmul(p, weft.where(m > 0, v, 0.0)), weft.bmm(p[0], v[0] * 2.0)


def test_right_operands_of_batches():
    weft.manual_seed(0)
    p, v, m = weft.randn(2, 6, 60, 70), weft.randn(2, 6, 70, 30), weft.randn(70, 30)
    check(values, p, v, m)
    check(values, p, v, weft.randn(2, 6, 70, 1))
    check(values, p[:, :1].expand(2, 6, 60, 70), v.transpose(-2, -1).contiguous().mT, m)


@given(
    st.integers(1, 40),
    st.integers(1, 300),
    st.integers(1, 3000),
    st.sampled_from(list(RIGHT)),
    st.integers(1, 3),
)
@examples(40)
def test_random_right_operands(m, k, n, function, count):
    w, s = (weft.randn(*size) for size in RIGHT[function](k, n))
    with threads(count):
        check(function, weft.randn(m, k), w, s)


# ---- memory ----


def test_the_operand_is_never_there_as_a_whole():
    """A panel of it is, of 264 rows for each thread: so much the most that calls need grows by."""
    before = weft.get_num_threads()
    weft.set_num_threads(1)
    try:
        m, k, n = 2112, 512, 32
        w, b = weft.randn(n, k), weft.randn(n)
        for x in (weft.randn(m, k), weft.randn(4, m // 4, k)):
            for function in (gelu_linear, norm_of_512, matmul):
                check_memory(function, (x, w, b), 4 * m * n, 4 * 264 * k)
        image, kernel, scale = (
            weft.randn(6, 64, 50, 50),
            weft.randn(8, 64, 1, 1),
            weft.randn(64, 1, 1),
        )
        # All of one image, a sixth of the operand.
        check_memory(activated_conv, (image, kernel, scale), 6 * 8 * 2500 * 4, 64 * 2500 * 4)
        kernel = weft.randn(64, 1, 3, 3)
        assert use_of_third(by_channels, image, kernel, scale) < 6 * 64 * 2500 * 4 + 65536
        kernel = weft.randn(8, 64, 3, 3)
        peak = use_of_third(activated_conv, image, kernel, scale)
        assert peak < 6 * 8 * 2304 * 4 + 6 * 64 * 2500 * 4 // 2 + 2**21  # of Winograd's: 2 MiB
        for x in (weft.randn(1, 512), weft.randn(18, 512)):
            w, s = weft.randn(4096, 512), weft.randn(4096, 1)
            used = use_of_third(dequantised, x, w, s)
            assert used < w.nbytes // 4 or not (_has_tiles() or len(x) == 1)
        q, k, v = weft.randn(40, 60, 16), weft.randn(40, 60, 16), weft.randn(40, 60, 16)
        check_memory(batches_of_one, (q, k, v), 40 * 60 * 60 * 4, 60 * 16 * 4)
    finally:
        weft.set_num_threads(before)


def by_channels(x, w, s):
    return F.conv2d(weft.relu(x * s + 0.5), w, padding=1, groups=64)


def use_of_third(function, *args):
    """The most memory that the third call needs."""
    compiled = jit.script(function)
    with weft.no_grad():
        for _ in range(2):
            compiled(*args)
        return use_of(compiled, *args).peak


def check_memory(function, args, result, part):
    with weft.no_grad():
        whole = use_of(function, *args).peak
    used = use_of_third(function, *args)
    assert whole >= result + args[0].nbytes
    if _has_tiles() or function is batches_of_one:
        assert result <= used < result + 2 * part + 4096
    else:
        assert used <= whole


def batches_of_one(q, k, v):
    return weft.bmm(q.tanh(), k.transpose(1, 2))


def norm_of_512(x, w, b):
    return F.linear(F.layer_norm(x, [512]), w, b)


def _has_tiles():
    """Panels are for processors whose products go by tiles of weft's own."""
    return weft._C._isa() == 2


def test_errors_are_those_of_eager():
    check_errors(
        scaled,
        (weft.randn(1300, 5), weft.randn(6, 7), weft.randn(1)),
        (weft.randn(1300, 33), weft.randn(130, 33), weft.randn(7)),
    )
    check_errors(
        padded_conv,
        (weft.randn(6, 5, 9, 9), weft.randn(6, 7, 3, 3), weft.randn(1)),
        (weft.randn(6, 5, 9, 9), weft.randn(6, 5, 3, 3), weft.randn(7)),
    )
