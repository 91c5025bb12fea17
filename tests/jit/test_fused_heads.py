"""Groups with a head: products and convolutions with what is computed from their results. The bits
are those of the operators one by one, whatever the shapes, strides, dtypes and processor levels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
import weft.nn.functional as F
from jit.heads import bits, check, check_errors, threads
from weft import jit

pytestmark = pytest.mark.threads


def gelu_linear(x, w, b):
    return F.gelu(F.linear(x, w, b))


def silu_linear(x, w, b):
    y = F.linear(x, w)
    return y * weft.sigmoid(y)


def residual(x, w, b):
    return weft.relu(x @ w.t() + b) * 0.5


def scaled(x, w, b):
    return weft.addmm(b, x, w.t(), beta=0.5, alpha=2.0).tanh() - 1.0


def both(x, w, b):
    """The product itself is a result too."""
    y = F.linear(x, w, b)
    return y, weft.relu(y) + y


def masked(x, w, b):
    """Results of several dtypes, none of the product's."""
    y = weft.mm(x, w.t())
    return (y > b) & (y < 1.0)


PRODUCTS = [gelu_linear, silu_linear, residual, scaled, both, masked]
SHAPES = [
    (256, 128, 256),
    (133, 65, 301),
    (1, 30, 20000),
    (20000, 30, 1),
    (300, 0, 200),
    (0, 8, 16),
    (7, 520, 4111),
    (600, 260, 70),
    (5, 300, 9),
]


def forms(rows, columns, dtype):
    """One matrix as it may lie in memory."""
    plain = weft.randn(rows, columns).to(dtype)
    yield plain
    yield plain.t().contiguous().t()
    wide = weft.zeros(rows, columns + 3, dtype=dtype)
    wide[:, 1 : columns + 1] = plain
    yield wide[:, 1 : columns + 1]


@pytest.mark.parametrize("function", PRODUCTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_give_the_bits_of_eager(function, shape):
    m, k, n = shape
    weft.manual_seed(0)
    bias = weft.randn(n)
    for x in forms(m, k, weft.float32):
        for w in forms(n, k, weft.float32):
            check(function, x, w, bias)


@pytest.mark.parametrize(
    "dtype", [weft.float64, weft.float16, weft.bfloat16, weft.complex64], ids=str
)
def test_other_dtypes(dtype):
    weft.manual_seed(0)
    x, w, b = (weft.randn(*s).to(dtype) for s in ((150, 40), (140, 40), (140,)))
    check(residual if not dtype.is_complex else complex_exp, x, w, b)


def complex_exp(x, w, b):
    return F.linear(x, w, b).exp() * 2.0


def test_threads_cut_as_without_a_group():
    weft.manual_seed(0)
    for count in (1, 2, 3):
        with threads(count):
            for m, k, n in ((500, 70, 200), (90, 200, 700)):
                check(gelu_linear, weft.randn(m, k), weft.randn(n, k), weft.randn(n))


def other_operands(x, w, r, scale):
    return F.relu(F.linear(x, w) + r) * scale


@pytest.mark.parametrize(
    ("r", "scale"),
    [
        ((200, 130), (130,)),
        ((200, 1), ()),
        ((1, 130), (200, 1)),
        ((3, 200, 130), (130,)),
        ((1,), (1, 1)),
    ],
    ids=str,
)
def test_operands_broadcast(r, scale):
    """Also to more than the product is: then the rest runs behind it."""
    weft.manual_seed(0)
    check(
        other_operands, weft.randn(200, 33), weft.randn(130, 33), weft.randn(r), weft.randn(scale)
    )


def test_operands_of_other_layouts():
    weft.manual_seed(0)
    x, w, scale = weft.randn(200, 33), weft.randn(130, 33), weft.randn(130)
    check(other_operands, x, w, weft.randn(130, 200).t(), scale)
    check(other_operands, x, w, weft.randn(200, 260)[:, ::2], scale)
    check(other_operands, x, w, weft.randn(200, 130).flip(0), weft.randn(260)[::2])


def leading(x, w, b):
    return F.gelu(F.linear(x, w, b)) + 1.0


def attention_scores(q, k, m):
    return (weft.matmul(q, k.transpose(-2, -1)) * 0.125 + m).tanh()


def batches(q, k, m):
    return weft.relu(weft.bmm(q, k.transpose(1, 2))) - 0.5


def started_batches(q, k, m):
    return weft.sigmoid(weft.baddbmm(m, q, k.transpose(1, 2)))


def test_leading_dimensions_and_batches():
    weft.manual_seed(0)
    x = weft.randn(3, 50, 40)
    for view in (x, x.transpose(0, 1), x[:, ::2]):
        check(leading, view, weft.randn(170, 40), weft.randn(170))
    check(leading, weft.randn(40), weft.randn(170, 40), weft.randn(170))
    check(leading, weft.randn(300, 40, 50), weft.randn(50), weft.randn(1))
    q, k = weft.randn(2, 3, 60, 16), weft.randn(2, 3, 70, 16)
    check(attention_scores, q, k, weft.randn(60, 70))
    check(attention_scores, q, k[0], weft.randn(2, 1, 60, 70))
    check(attention_scores, weft.randn(200, 100), weft.randn(130, 100), weft.randn(1))
    check(attention_scores, weft.randn(4, 60, 16), weft.randn(70, 16), weft.randn(70))
    for run in (batches, started_batches):
        check(run, weft.randn(9, 60, 16), weft.randn(9, 70, 16), weft.randn(9, 60, 70))


def conv_relu(x, w, b):
    return weft.relu(F.conv2d(x, w, b, padding=1))


def conv_residual(x, w, b):
    y = F.conv2d(x, w, None, padding=1)
    return weft.relu(y * b.reshape(-1, 1, 1) + y.sigmoid())


def strided_conv(x, w, b):
    return F.silu(F.conv2d(x, w, b, stride=2, padding=[1, 0], dilation=[1, 2]))


@pytest.mark.parametrize(
    "function", [conv_relu, conv_residual, strided_conv], ids=lambda f: f.__name__
)
@pytest.mark.parametrize(
    ("image", "weight"),
    [
        ((2, 20, 33, 30), (24, 20, 3, 3)),
        ((1, 3, 41, 37), (17, 3, 5, 3)),
        ((4, 20, 30, 28), (16, 20, 1, 1)),
        ((8, 1, 40, 40), (6, 1, 3, 3)),
        ((20, 30, 40), (24, 20, 3, 3)),
    ],
    ids=str,
)
def test_convolutions_give_the_bits_of_eager(function, image, weight):
    weft.manual_seed(0)
    image = image if len(image) == 4 else (20, 30, 40)
    for dtype in (weft.float32, weft.float64):
        x, w, b = (weft.randn(*s).to(dtype) for s in (image, weight, weight[:1]))
        check(function, x, w, b)
    check(
        function, weft.randn(*image).transpose(-2, -1), weft.randn(*weight), weft.randn(weight[0])
    )


def grouped(x, w, b):
    return weft.relu(F.conv2d(x, w, b, 1, 1, 1, 4)) + 0.25


def test_convolutions_of_groups():
    weft.manual_seed(0)
    for channels, of_group in ((4, 1), (72, 18), (8, 2)):
        check(
            grouped,
            weft.randn(2, channels, 50, 50),
            weft.randn(channels, of_group, 3, 3),
            weft.randn(channels),
        )


@given(
    st.integers(0, 200),
    st.integers(0, 300),
    st.integers(0, 400),
    st.booleans(),
    st.booleans(),
    st.sampled_from([gelu_linear, residual, both]),
)
@examples(25)
def test_random_products(m, k, n, left, right, function):
    x = weft.randn(k, m).t() if left else weft.randn(m, k)
    w = weft.randn(k, n).t() if right else weft.randn(n, k)
    check(function, x, w, weft.randn(n))


# ---- errors, gradients, modes ----


def test_errors_are_those_of_eager():
    check_errors(
        other_operands,
        (weft.randn(4, 5), weft.randn(6, 7), weft.randn(1), weft.randn(1)),
        (weft.randn(200, 33), weft.randn(130, 33), weft.randn(7), weft.randn(1)),
    )


def test_gradients_are_those_of_eager():
    def run(function):
        weft.manual_seed(0)
        args = [weft.randn(*s, requires_grad=True) for s in ((150, 60), (140, 60), (140,))]
        for _ in range(3):
            result = function(*args)
            (result * weft.linspace(-1, 1, 140)).sum().backward()
        return [bits(result)] + [bits(a.grad) for a in args]

    for function in (gelu_linear, silu_linear, residual, scaled):
        assert run(jit.script(function)) == run(function)


def test_a_gradient_wanted_inside_of_a_program_without():
    """Programs without gradients may meet one all the same: the product is recorded."""

    @jit.script
    def inside(x, w, b):
        return weft.relu(F.linear(x, w, b)) * 2.0

    x, w, b = weft.randn(150, 60), weft.randn(140, 60), weft.randn(140)
    inside(x, w, b)
    w.requires_grad_()
    result = inside(x, w, b)
    assert result.requires_grad
    with weft.no_grad():
        assert bits(inside(x, w, b)) == bits(result)


def test_autocast_lowers_the_product():
    x, w, b = weft.randn(150, 60), weft.randn(140, 60), weft.randn(140)
    run = jit.script(gelu_linear)
    with weft.no_grad(), weft.autocast("cpu", dtype=weft.bfloat16):
        expected, got = gelu_linear(x, w, b), run(x, w, b)
    assert got.dtype == expected.dtype and bits(got) == bits(expected)


_LEVELS = """
import sys
sys.path.insert(0, sys.argv[1])
import weft
from jit import test_fused_heads as heads
weft.manual_seed(0)
for m, k, n in ((200, 70, 150), (37, 300, 601), (1, 64, 20000), (300, 0, 200), (3, 5, 2)):
    for x in heads.forms(m, k, weft.float32):
        for w in heads.forms(n, k, weft.float32):
            heads.check(heads.gelu_linear, x, w, weft.randn(n))
            heads.check(heads.both, x.double(), w.double(), weft.randn(n).double())
for image, weight in (((2, 20, 33, 30), (24, 20, 3, 3)), ((1, 3, 41, 37), (17, 3, 5, 3))):
    heads.check(heads.conv_relu, weft.randn(*image), weft.randn(*weight), weft.randn(weight[0]))
print("ok")
"""


@pytest.mark.parametrize("isa", ["v2", "v3", "v4"])
def test_every_processor_level(isa):
    """A level that the processor lacks is lowered to what it has."""
    tests = Path(__file__).parent.parent
    environment = {**os.environ, "WEFT_ISA": isa}
    done = subprocess.run(
        [sys.executable, "-c", _LEVELS, str(tests)], capture_output=True, text=True, env=environment
    )
    assert done.stdout.strip() == "ok", done.stderr


def unread(x, w):
    y = x @ w
    _ = (x - y) * 2
    return y


def unread_behind_an_operand(x, w):
    y = (x * 2).tanh() @ w
    _ = y + 0.25
    return y


def unread_beside_a_result(x, w):
    y = x @ w
    _ = (x - y).exp()
    return y.relu() * 2, y


@pytest.mark.parametrize("function", [unread, unread_behind_an_operand, unread_beside_a_result])
@pytest.mark.parametrize("gradients", [False, True])
def test_what_nobody_reads_stands_behind_no_product(function, gradients):
    """It is computed, because it may raise, and is no result that a group could have."""
    x, w = weft.randn(16, 16), weft.randn(16, 16)
    x.requires_grad_(gradients)
    program = jit.script(function)
    expected = function(x, w)
    for _ in range(3):
        found = program(x, w)
        both = zip(found, expected) if isinstance(found, tuple) else [(found, expected)]
        assert all(bits(one) == bits(other) for one, other in both)
    if gradients:
        slopes = [
            weft.autograd.grad(one[0] if isinstance(one, tuple) else one, x, weft.ones(16, 16))
            for one in (found, expected)
        ]
        assert bits(slopes[0][0]) == bits(slopes[1][0])
    if function is not unread_behind_an_operand:
        with pytest.raises(RuntimeError, match=r"add|sub|broadcast"):
            program(x, weft.randn(16, 5))
