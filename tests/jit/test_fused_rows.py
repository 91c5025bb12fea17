"""Groups with row operators: softmax, layer norm, sums; the bits of the operators one by one."""

from __future__ import annotations

import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
import weft.nn.functional as F
from jit.groups import (
    NATIVE,
    SHAPES,
    bits,
    check_gradients,
    check_results,
    check_second_gradients,
    compare_gradients,
    group_of,
    inputs,
    make,
    no_other_requests,
    results,
    threads,
)
from weft import _C

__all__ = ["no_other_requests"]  # a fixture


def attention(x, m):
    return weft.softmax(x * 0.125 + m, -1)


def log_probabilities(x, m):
    return weft.log_softmax(x + m, -1) * 0.5


def norm(x, r):
    return F.layer_norm(x + r, [20], None, None, 1e-5) * 2.0


def mean_square(x, y):
    return (x - y).pow(2).mean()


def total(x, y):
    return (x * y).sum()


def greatest(x, y):
    return (x * y).max()


def row_sums(x, y):
    return (x * y).sum(-1)


def row_means(x, y):
    return (x * y).mean(-1, True)


def means_of_differences(x, y):
    """The gradient reads none of the elements: how long the rows are it has to be told."""
    return (x - y).mean(-1, True)


def row_extremes(x, y):
    z = x * y
    return z.amax(-1) - z.amin(-1)


def by_hand(x, y):
    e = weft.exp(x - x.amax(-1, True)) * y
    return e / e.sum(-1, keepdim=True)


def centred(x, y):
    return (x - x.mean(-1, True)) * y


def root_mean_square(x, w):
    return x * weft.rsqrt((x * x).mean(-1, True) + 1e-5) * w


def two_rows(x, m):
    y = weft.softmax(x * 2.0 + m, -1)
    return weft.log_softmax(y - x, -1) + y


def several(x, y):
    z = x * y
    s = weft.softmax(z, -1)
    return z, s, (s * z).sum(-1)


ROWS = [
    attention, log_probabilities, row_sums, row_means, means_of_differences, row_extremes, centred,
    by_hand, root_mean_square, two_rows, several,
]  # fmt: skip
ALL = [mean_square, total, greatest]


@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("function", ROWS + ALL)
def test_results_have_the_operators_bits(function, shapes, dtype, native):
    check_results(make(group_of(function)), function, shapes, dtype, native)


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("function", ROWS + [mean_square, total])
def test_gradients_have_the_operators_bits(function, shapes, dtype):
    check_gradients(make(group_of(function)), function, shapes, dtype)


def masked(x, a, b):
    y = weft.softmax(x * 2.0, -1)
    return weft.where(a & b, y, x)


def counted(x, a, b):
    return weft.softmax(x * 2.0, -1) * (a + b)


@pytest.mark.parametrize("function, other", [(masked, weft.bool), (counted, weft.int64)])
@pytest.mark.parametrize("shape", [(5, 7), (300, 70)])
def test_stages_of_masks_or_integers_alone(function, other, shape):
    for dtype in (weft.float32, weft.float64):
        x = weft.randn(shape, dtype=dtype)
        a, b = ((weft.rand(shape) > 0.5).to(other) for _ in "ab")
        (got,) = make(group_of(function)).run([x, a, b])
        assert bits(got) == bits(function(x, a, b))


def affine(x, r, w, b):
    return F.gelu(F.layer_norm(x + r, [24], w, b, 1e-5)) * w


def weighted(x, r, w, b):
    return F.layer_norm(x * r, [24], w, None, 1e-5) + b


@pytest.mark.parametrize("rows", [1, 7, 400])
@pytest.mark.parametrize("function", [affine, weighted])
def test_layer_norm_with_weights(function, rows):
    shapes = [(rows, 24), (rows, 24), (24,), (24,)]
    made = make(group_of(function))
    mine, others = (inputs(shapes, weft.float32, grad=True) for _ in range(2))
    got, wanted = made.run(mine), results(function(*others))
    assert got is not None
    assert bits(got[0]) == bits(wanted[0])
    seeds = [weft.randn(rows, 24)]
    compare_gradients(got, mine, wanted, others, seeds)


@pytest.mark.parametrize("function", [attention, norm, row_sums, row_means, mean_square, several])
def test_second_gradients_go_through_the_operators(function):
    check_second_gradients(function, rtol=1e-12, atol=1e-14)


def test_a_spread_gradient_is_as_dense_as_the_operators_make_it():
    made = make(group_of(total))
    x, y = inputs([(40, 30), (30,)], weft.float32, grad=True)
    made.run([x, y])[0].backward()
    assert x.grad.is_contiguous()
    assert bits(x.grad) == bits(y.detach().expand(40, 30))


def test_strided_and_broadcast_operands():
    made = make(group_of(attention))
    x = weft.randn(64, 200)
    for args in [
        (x[:, :150], weft.randn(150)),
        (x[::2, 50:], weft.randn(32, 1).expand(32, 150)),
        (weft.randn(4, 8, 30, 30), weft.randn(4, 1, 1, 30)),
    ]:
        assert bits(made.run(list(args))[0]) == bits(attention(*args))


MASKED = """
def masked(x, mask):
    return weft.softmax(weft.where(mask, x * 0.5, -1e9), -1)
"""


def test_masks():
    masked = weft.jit.CompilationUnit(MASKED).masked
    x, mask = weft.randn(50, 150), weft.rand(50, 150) > 0.3
    wanted = weft.softmax(weft.where(mask, x * 0.5, -1e9), -1)
    for _ in range(3):
        assert bits(masked(x, mask)) == bits(wanted)


REFUSED = [
    ("another dtype", lambda: (weft.randn(3, 5).half(), weft.randn(3, 5).half())),
    ("promotion", lambda: (weft.randn(3, 5), weft.randn(3, 5, dtype=weft.float64))),
    ("other order", lambda: (weft.randn(5, 3).t(), weft.randn(3, 5))),
    ("rows of one", lambda: (weft.randn(5, 1), weft.randn(5, 1))),
    ("nothing", lambda: (weft.randn(0, 5), weft.randn(0, 5))),
    ("a number", lambda: (weft.randn(()), weft.randn(()))),
]


@pytest.mark.parametrize(("why", "make_args"), REFUSED)
def test_what_a_group_refuses_runs_by_operators(why, make_args):
    args = make_args()
    assert make(group_of(attention)).run(list(args)) is None
    assert bits(weft.jit.script(attention)(*args)) == bits(attention(*args))


def first_dim(x, y):
    return weft.softmax(x * y, 0) * 2.0


def test_another_dimension_runs_by_operators():
    made = make(group_of(first_dim))
    x, y = weft.randn(30, 40), weft.randn(30, 40)
    assert made.run([x, y]) is None
    assert bits(weft.jit.script(first_dim)(x, y)) == bits(first_dim(x, y))
    assert bits(made.run([x[0], y[0]])[0]) == bits(first_dim(x[0], y[0]))  # there it is the last


def test_a_wrong_size_is_the_operators_error():
    with pytest.raises(RuntimeError, match="layer_norm: expected an input that ends in"):
        weft.jit.script(weighted)(
            weft.randn(3, 25), weft.randn(3, 25), weft.ones(25), weft.ones(25)
        )


BAD_STEPS = [
    ([(("exp", "last", -1, True, 0), ["i0"], [])], [0], "expected a row operator, got 'exp'"),
    ([("softmax_int", ["i0"], [])], [0], "expected a pointwise operator, got 'softmax_int'"),
    ([(("sum", "all", -1, True, 0), ["i0"], []), ("exp", ["s0"], [])], [1], "go together"),
    (
        [(("sum", "all", -1, True, 0), ["i0"], []), (("sum", "all", -1, True, 0), ["s0"], [])],
        [1],
        "expected one sum over all",
    ),
    (
        [(("sum", "all", -1, True, 0), ["i0"], []), (("amax", "last", -1, True, 0), ["i0"], [])],
        [0, 1],
        "got both",
    ),
    ([(("sum", "some", -1, True, 0), ["i0"], [])], [0], "expected last or all, got some"),
]


@pytest.mark.parametrize(("steps", "outputs", "text"), BAD_STEPS)
def test_bad_steps(steps, outputs, text):
    kinds = {"i": "input", "s": "step"}
    wanted = [(op, [(kinds[t[0]], int(t[1:])) for t in tensors], n) for op, tensors, n in steps]
    with pytest.raises((RuntimeError, ValueError), match=text):
        _C._FusedGroup(1, [], wanted, outputs)


POINTWISE = [
    "x * y",
    "x + y",
    "weft.sin({0})",
    "{0} * {1}",
    "{0} - {1}",
    "weft.sigmoid({0})",
    "{0} * 0.3",
]
ROWWISE = [
    "weft.softmax({0}, -1)",
    "weft.log_softmax({0}, -1)",
    "{0} * {1}.sum(-1, True)",
    "{0} - {1}.mean(-1, keepdim=True)",
    "F.layer_norm({0}, [{0}.size(-1)], None, None, 1e-5)",
    "{0} * weft.rsqrt(({1} * {1}).mean(-1, True) + 1e-5)",
    "{0} / ({1}.std(-1, keepdim=True) + 0.5)",
    "{0} * weft.rsqrt({1}.var(-1, keepdim=True, unbiased=False) + 1e-5)",
    "{0} - weft.logsumexp({1}, -1, keepdim=True)",
    "{0} / ({1}.norm(dim=-1, keepdim=True) + 0.5)",
    "{0} - {1}.amax(-1, keepdim=True)",
]
ENDS = ["{0}", "({0}, {1})"]
ENDS += [f"{{0}}.{name}(-1)" for name in ("sum", "mean", "var", "std", "logsumexp", "amin")]
ENDS += ["{0}.sum()", "{0}.mean()", "{0}.norm(dim=-1)"]


def assert_same_sums(gradient, eager):
    """A group may add the gradients of its uses of an input in another order (docs/differences.md)."""
    assert (gradient is None) == (eager is None)
    if eager is not None:
        bound = 1e-4 * eager.nan_to_num(0.0, 0.0, 0.0).abs().max().item()
        weft.testing.assert_close(gradient, eager, rtol=1e-4, atol=bound, equal_nan=True)


@st.composite
def sources(draw):
    """A function of x and y: pointwise operators, row operators and perhaps a sum at the end."""
    names = ["x", "y"]
    lines = []
    for i in range(draw(st.integers(2, 7))):
        text = draw(st.sampled_from(POINTWISE + ROWWISE))
        lines.append(f"    v{i} = " + text.format(*(draw(st.sampled_from(names)) for _ in "ab")))
        names = [*names, f"v{i}", f"v{i}"]
    end = draw(st.sampled_from(ENDS)).format(names[-1], names[-3])
    return "\n".join(["def f(x, y):", *lines, f"    return {end}", ""])


@examples(60)
@given(
    sources(),
    st.sampled_from([((4, 5), (4, 5)), ((12, 400), (400,)), ((300, 20), (300, 1))]),
    st.booleans(),
)
def test_random_functions(source, shapes, grad):
    names = {"weft": weft, "F": F}
    exec(source, names)
    scripted = weft.jit.CompilationUnit(source).f
    mine, others = inputs(shapes, weft.float32, grad), inputs(shapes, weft.float32, grad)
    for _ in range(2):
        got, wanted = results(scripted(*mine)), results(names["f"](*others))
        assert [g.shape for g in got] == [w.shape for w in wanted]
        assert [bits(g) for g in got] == [bits(w) for w in wanted]
    if grad and all(w.requires_grad for w in wanted):
        seeds = [weft.randn(w.shape) for w in wanted]
        a = weft.autograd.grad(got, mine, seeds, allow_unused=True)
        b = weft.autograd.grad(wanted, others, seeds, allow_unused=True)
        for ours, eager in zip(a, b):
            assert_same_sums(ours, eager)


@pytest.mark.parametrize("function", [attention, root_mean_square, several, mean_square, total])
def test_threads_do_not_change_bits(function):
    args = inputs(((700, 300), (700, 300)), weft.float32)
    made, found = make(group_of(function)), []
    for count in (1, 3):
        with threads(count):
            found.append([bits(r) for r in made.run(args)])
    assert found[0] == found[1] == [bits(r) for r in results(function(*args))]
