"""Groups with a head and what makes its operand: bits of the operators one by one, and less memory."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
import weft.nn.functional as F
from jit.allocations import use_of
from jit.test_fused_heads import check
from weft import jit


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
    before = weft.get_num_threads()
    try:
        for threads in (1, 2, 3):
            weft.set_num_threads(threads)
            for m, k, n in ((1600, 70, 40), (1590, 70, 200), (2000, 30, 700)):
                check(both_sides, weft.randn(m, k), weft.randn(n, k), weft.randn(n))
    finally:
        weft.set_num_threads(before)


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


def test_convolutions_give_the_bits_of_eager():
    weft.manual_seed(0)
    for dtype in (weft.float32, weft.float64, weft.bfloat16):
        for image, out in (((5, 20, 30, 28), 16), ((2, 600, 20, 27), 24), ((3, 20, 7, 5), 9)):
            x, w, s = (weft.randn(*d) for d in (image, (out, image[1], 1, 1), (image[1], 1, 1)))
            for function in (activated_conv, strided_conv):
                check(function, x.to(dtype), w.to(dtype), s.to(dtype))
    x, w = weft.randn(4, 32, 20, 20), weft.randn(32, 16, 1, 1)
    check(grouped_conv, x, w, weft.randn(32, 1, 1))
    check(activated_conv, x, weft.randn(24, 32, 3, 3), weft.randn(32, 1, 1))
    check(activated_conv, x.transpose(-2, -1), weft.randn(24, 32, 1, 1), weft.randn(20))
    check(activated_conv, x[0], weft.randn(24, 32, 1, 1), weft.randn(32, 1, 1))


@given(
    st.integers(0, 1500),
    st.integers(0, 200),
    st.integers(0, 100),
    st.booleans(),
    st.sampled_from(FUNCTIONS),
)
@settings(max_examples=25, deadline=None)
def test_random_products(m, k, n, left, function):
    x = weft.randn(k, m).t() if left else weft.randn(m, k)
    check(function, x, weft.randn(n, k), weft.randn(n))


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
        q, k, v = weft.randn(40, 60, 16), weft.randn(40, 60, 16), weft.randn(40, 60, 16)
        check_memory(batches_of_one, (q, k, v), 40 * 60 * 60 * 4, 60 * 16 * 4)
    finally:
        weft.set_num_threads(before)


def check_memory(function, args, result, part):
    compiled = jit.script(function)
    with weft.no_grad():
        for _ in range(3):
            compiled(*args)
        whole = use_of(function, *args).peak
        used = use_of(compiled, *args).peak
    assert whole >= result + args[0].nbytes
    if _has_tiles() or function is batches_of_one:
        assert result + part <= used < result + 2 * part + 4096
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
    run = jit.script(scaled)
    with weft.no_grad():
        for args in (
            (weft.randn(1300, 5), weft.randn(6, 7), weft.randn(1)),
            (weft.randn(1300, 33), weft.randn(130, 33), weft.randn(7)),
        ):
            with pytest.raises(RuntimeError) as eager:
                scaled(*args)
            with pytest.raises(RuntimeError, match="HERE") as script:
                run(*args)
            assert str(eager.value).partition(":")[2] in str(script.value)
