"""Groups with a head and row operators behind it: bits of the operators one by one, whichever thread
completes a row."""

from __future__ import annotations

import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
import weft.nn.functional as F
from jit.allocations import use_of
from jit.heads import check, check_errors, threads
from weft import jit

pytestmark = pytest.mark.threads


def scores(x, w, r):
    return weft.softmax(weft.mm(x, w.t()) * 0.125 + r, -1)


def log_scores(x, w, r):
    return weft.log_softmax(F.linear(x, w), 1)


def both(x, w, r):
    """The product is a result too, so that nothing may be written over it."""
    y = F.linear(x, w, r)
    return y, y - y.amax(-1, keepdim=True), y.sum(-1)


def rows_alone(x, w, r):
    return (F.linear(x, w) + r).mean(1) * 2.0


def over_columns(x, w, r):
    """Not along the last dimension: operator by operator."""
    return weft.softmax(F.linear(x, w) + r, 0)


def over_all(x, w, r):
    return weft.relu(F.linear(x, w, r)).sum()


def led(x, w, r):
    return weft.softmax(F.linear(F.gelu(x), w) + r, -1)


FUNCTIONS = [scores, log_scores, both, rows_alone, over_columns, over_all, led]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_rows_give_the_bits_of_eager(function):
    """Rows short and long, a part of a block of them, and more than are run as they come."""
    weft.manual_seed(0)
    shapes = ((300, 40, 90), (1700, 30, 130), (90, 70, 500), (40, 20, 700), (9, 5, 3))
    for count in (1, 2, 3):
        with threads(count):
            for m, k, n in shapes:
                x, w, r = weft.randn(m, k), weft.randn(n, k), weft.randn(n)
                check(function, x, w, r)
                check(function, x.t().contiguous().t(), w.double().float(), r)
            check(function, x.double(), w.double(), r.double())


@pytest.mark.parametrize("dtype", [weft.float64, weft.float16, weft.bfloat16], ids=str)
def test_other_dtypes(dtype):
    weft.manual_seed(0)
    check(scores, *(weft.randn(*s).to(dtype) for s in ((300, 40), (130, 40), (130,))))


def normed(x, w, r):
    return F.layer_norm(F.linear(x, w) + r, [96])


def masked(q, k, m):
    return weft.softmax(weft.matmul(q, k.transpose(-2, -1)) * 0.25 + m, -1)


def batches(q, k, m):
    return weft.softmax(weft.bmm(q, k.transpose(1, 2)) - m, 2), weft.baddbmm(m, q, k.mT).sum(-1)


def conv_rows(x, w, m):
    return weft.softmax(F.conv2d(x, w, padding=1) * 0.5, -1)


def test_shapes_of_all_heads():
    weft.manual_seed(0)
    for lead in ((700,), (3, 250), (2, 5, 70)):
        check(normed, weft.randn(*lead, 40), weft.randn(96, 40), weft.randn(*lead, 96))
        check(normed, weft.randn(*lead, 40), weft.randn(96, 40), weft.randn(96))
    check(normed, weft.randn(700, 40), weft.randn(96, 40), weft.randn(96, 700).t())
    check(normed, weft.randn(700, 40), weft.randn(96, 40), weft.randn(2, 700, 96))
    q, k = weft.randn(3, 4, 60, 16), weft.randn(3, 4, 70, 16)
    check(masked, q, k, weft.randn(60, 70))
    check(masked, q, k[0], weft.randn(3, 1, 1, 70))
    check(masked, q[0, 0], k[0, 0], weft.randn(70))
    check(masked, q, k[0, 0], weft.randn(1))
    check(batches, q[0], k[0], weft.randn(4, 60, 70))
    check(conv_rows, weft.randn(2, 20, 30, 33), weft.randn(24, 20, 3, 3), weft.randn(1))


@given(st.integers(1, 400), st.integers(0, 100), st.integers(1, 600), st.sampled_from(FUNCTIONS))
@examples(25)
def test_random_products(m, k, n, function):
    check(function, weft.randn(m, k), weft.randn(n, k), weft.randn(n))


@pytest.mark.parametrize("n", [256, 1024])
def test_rows_are_written_where_the_product_lies(n):
    """As they come, or behind the whole product."""

    @jit.script
    def run(x, w, r):
        return weft.softmax(F.linear(x, w) + r, -1)

    x, w, r = weft.randn(600, 32), weft.randn(n, 32), weft.randn(n)
    with weft.no_grad():
        for _ in range(3):
            run(x, w, r)
        assert 600 * n * 4 <= use_of(run, x, w, r).peak < 2 * 600 * n * 4


def test_errors_are_those_of_eager():
    check_errors(
        normed,
        (weft.randn(600, 5), weft.randn(96, 7), weft.randn(1)),
        (weft.randn(600, 33), weft.randn(96, 33), weft.randn(7)),
        (weft.randn(600, 33), weft.randn(90, 33), weft.randn(90)),
    )
