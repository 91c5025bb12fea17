"""Groups with a head where gradients are recorded: values and gradients have the bits of eager."""

from __future__ import annotations

import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
import weft.nn.functional as F
from jit.groups import bits
from jit.heads import threads
from weft import jit


def gelu_linear(x, w, b):
    return F.gelu(F.linear(x, w, b))


def silu_linear(x, w, b):
    y = F.linear(x, w)
    return y * weft.sigmoid(y) + b


def residual(x, w, b):
    return weft.relu(x @ w.t() + b) * 0.5


def scaled(x, w, b):
    return weft.addmm(b, x, w.t(), beta=0.5, alpha=2.0).tanh() - 1.0


def both(x, w, b):
    y = weft.mm(x, w.t())
    return weft.relu(y) + b, y * 2.0, y


def rows(x, w, b):
    return weft.softmax(F.linear(x, w) * 0.5 + b, -1)


def shared(x, w, b):
    """The operand of the product is read again, behind it and before it."""
    z = weft.tanh(x)
    y = F.linear(x, w, b)
    return weft.relu(y) * y.amax() + z.sum(), weft.relu(y + x.sum())


FUNCTIONS = [gelu_linear, silu_linear, residual, scaled, both, rows, shared]
# Parts are for 524,288 elements and more.
SHAPES = [(60, 20, 30), (1100, 20, 500), (700, 30, 800)]


def outcome(function, shapes, wanted, lead=()):
    """Values, gradients, and the gradients' names."""
    weft.manual_seed(0)
    args = [weft.randn(*s) for s in shapes]
    for arg, wants in zip(args, wanted):
        arg.requires_grad_(wants)
    results = function(*args)
    results = results if isinstance(results, tuple) else (results,)
    total = weft.zeros(())
    for one in results:
        total = total + (one * weft.linspace(-1, 1, one.shape[-1])).sum()
    if total.requires_grad:
        total.backward()
    return [bits(r.detach()) for r in results] + [bits(a.grad) for a in args], results


def check(function, shapes, wanted=(True, True, True)):
    expected, _ = outcome(function, shapes, wanted)
    compiled = jit.script(function)
    for _ in range(3):
        got, results = outcome(compiled, shapes, wanted)
        assert got == expected
    return results


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_are_those_of_eager(function, shape):
    m, k, n = shape
    for count in (1, 2):
        with threads(count):
            for wanted in ((True, True, True), (False, True, False), (False, False, True)):
                check(function, ((m, k), (n, k), (n,)), wanted)


def test_the_product_and_the_rest_are_a_node_each():
    (result,) = check(gelu_linear, ((1100, 20), (500, 20), (500,)))
    node = result.grad_fn
    assert node.name() == "FusedBackward"
    assert [n.name() for n, _ in node.next_functions] == ["LinearBackward0"]


def leading(x, w, b):
    return F.gelu(F.linear(x, w)) + b


def matmul(x, w, b):
    return weft.relu(weft.matmul(x, w.transpose(-2, -1)) + b)


def batches(x, w, b):
    return weft.relu(weft.bmm(x, w.transpose(1, 2)) * b), weft.baddbmm(b, x, w.mT).tanh() + 1.0


def test_leading_dimensions_and_batches():
    check(leading, ((4, 300, 20), (500, 20), (500,)))
    check(matmul, ((4, 300, 20), (500, 20), (500,)))
    check(matmul, ((4, 300, 20), (4, 500, 20), (500,)))
    check(batches, ((4, 300, 20), (4, 500, 20), (4, 1, 500)))


def test_no_grad_in_a_program_that_records():
    compiled = jit.script(residual)
    weft.manual_seed(0)
    x, w, b = (weft.randn(*s, requires_grad=True) for s in ((1100, 20), (500, 20), (500,)))
    for _ in range(2):
        assert compiled(x, w, b).requires_grad
        with weft.no_grad():
            got = compiled(x, w, b)
            assert not got.requires_grad
            assert bits(got) == bits(residual(x, w, b))


def test_second_derivatives():
    def run(function):
        weft.manual_seed(0)
        args = [weft.randn(*s, requires_grad=True) for s in ((1100, 20), (500, 20), (500,))]
        result = (function(*args) ** 2).sum()
        (first,) = weft.autograd.grad(result, args[:1], create_graph=True)
        return weft.autograd.grad((first**2).sum(), args)

    compiled = jit.script(scaled)
    for _ in range(3):
        for got, expected in zip(run(compiled), run(scaled)):
            assert (got - expected).abs().max() <= 1e-6 * expected.abs().max()


def kept(x, w, b):
    y = F.linear(x, w, b)
    return y * weft.sigmoid(y), y


def test_a_product_that_is_written_to_cannot_be_read_by_the_gradient():
    compiled = jit.script(kept)
    for function in (kept, compiled, compiled):
        args = [weft.randn(*s, requires_grad=True) for s in ((1100, 20), (500, 20), (500,))]
        result, product = function(*args)
        product.detach().zero_()
        with pytest.raises(RuntimeError, match=r"modified|changed|version"):
            (result.sum() + product.sum()).backward()


def test_autocast_and_other_dtypes():
    compiled = jit.script(gelu_linear)
    for dtype in (weft.float64, weft.bfloat16):
        args = [weft.randn(*s).to(dtype).requires_grad_() for s in ((900, 20), (600, 20), (600,))]
        for _ in range(2):
            assert weft.equal(compiled(*args), gelu_linear(*args))
    args = [weft.randn(*s, requires_grad=True) for s in ((900, 20), (600, 20), (600,))]
    with weft.autocast("cpu", dtype=weft.bfloat16):
        assert weft.equal(compiled(*args), gelu_linear(*args))


@given(
    st.integers(1, 900),
    st.integers(1, 40),
    st.integers(1, 900),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.sampled_from(FUNCTIONS),
)
@examples(20)
def test_random_products(m, k, n, wanted, function):
    check(function, ((m, k), (n, k), (n,)), wanted)
