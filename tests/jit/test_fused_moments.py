"""Groups with variances, deviations, norms, logsumexp and extremes of rows: the operators' bits."""

from __future__ import annotations

import math

import pytest

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
    only_group,
    optimised,
    results,
)
from weft.jit import pipeline
from weft.jit.codegen import tiles
from weft.jit.codegen.rows import RowStep
from weft.jit.passes.options import Options

__all__ = ["no_other_requests"]  # a fixture


def normalised(x, y):
    z = x * y
    mean, variance = z.mean(-1, keepdim=True), z.var(-1, keepdim=True, unbiased=False)
    return (z - mean) / weft.sqrt(variance + 1e-5) * y + x


def standardised(x, y):
    z = x + y
    return (z - z.mean(-1, keepdim=True)) / (z.std(-1, keepdim=True) + 1e-3)


def both_moments(x, y):
    variance, mean = weft.var_mean(x + y, -1, keepdim=True)
    return (x + y - mean) * weft.rsqrt(variance + 1e-5)


def deviation_and_mean(x, y):
    deviation, mean = weft.std_mean(x - y, dim=-1, correction=0, keepdim=True)
    return (x - mean) * deviation


def corrected(x, y):
    return (x * y) * weft.var(x * y, dim=-1, correction=0.5, keepdim=True)


def log_probabilities(x, y):
    z = x * 2.0 + y
    return z - weft.logsumexp(z, -1, keepdim=True)


def unit(x, y):
    z = x - y
    return z / z.norm(dim=-1, keepdim=True)


def clamped_unit(x, y):
    return F.normalize(x + y, dim=-1)


def third_norm(x, y):
    return (x * y) / weft.linalg.vector_norm(x * y, 3, -1, keepdim=True)


def first_norm(x, y):
    return (x * y) / (x * y).norm(p=1, dim=-1, keepdim=True)


def greatest_norm(x, y):
    return (x * y) / ((x + y).norm(math.inf, dim=-1, keepdim=True) + 0.5)


def row_variances(x, y):
    return (x * y).var(-1) + (x * y).logsumexp(-1)


def row_lengths(x, y):
    return weft.linalg.vector_norm(x * y, dim=-1) * (x * y).std(-1)


def softmax_by_hand(x, y):
    e = weft.exp(x - x.amax(-1, keepdim=True)) * y
    return e / e.sum(-1, keepdim=True)


def to_unit_range(x, y):
    z = x + y
    low = z.amin(-1, keepdim=True)
    return (z - low) / (z.amax(-1, keepdim=True) - low + 1e-6)


def through_softmax(x, y):
    p = weft.softmax(x, -1) * y
    return p * weft.rsqrt(p.var(-1, keepdim=True) + 1e-5)


def standardised_input(x, y):
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-3) * y


def normalised_input(x, y):
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
    return (x - mean) / weft.sqrt(variance + 1e-5) * y


def summed_input(x, y):
    return x.sum(-1) * 2.0 + (x * y).mean(-1)


def passed_on(x, y):
    total = x.sum(-1)
    return total, total + (x * y).sum(-1)


FUNCTIONS = [
    normalised, standardised, both_moments, deviation_and_mean, corrected, log_probabilities, unit,
    clamped_unit, third_norm, first_norm, greatest_norm, row_variances, row_lengths, softmax_by_hand,
    to_unit_range, through_softmax, standardised_input, normalised_input, summed_input, passed_on,
]  # fmt: skip


@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_have_the_operators_bits(function, dtype, native):
    made = make(group_of(function))
    for shapes in SHAPES:
        check_results(made, function, shapes, dtype, native)


@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_have_the_operators_bits(function, dtype, native):
    made = make(group_of(function))
    for shapes in SHAPES:
        check_gradients(made, function, shapes, dtype, native)


# Without a row operator in their gradients, which are for rows and for elements: no one walk.
SUMS = (summed_input, passed_on)


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f not in SUMS])
def test_backward_is_a_group_too(function):
    """Not its operators one by one: the derivative's group takes such gradients."""
    spec = group_of(function)
    assert spec.backward is not None
    args = inputs(((12, 40), (12, 40)), weft.float32)
    results = make(spec).run(args)
    saved = spec.backward.saved
    assert spec.backward.group.input_count == len(args) + 2 * len(results) + len(saved)
    assert make(spec.backward.group) is not None


SPECIAL = [0.0, -0.0, 1.0, math.inf, -math.inf, math.nan, 1e30, -1e30, 1e-30]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_special_values(function):
    """Rows with infinities and NaN, rows that are all the same, rows of zeros."""
    made = make(group_of(function))
    weft.manual_seed(1)
    x = weft.randn(len(SPECIAL) + 3, 37)
    for row, value in enumerate(SPECIAL):
        x[row, 5 * row % 37] = value
    x[-1], x[-2], x[-3] = 0.0, 2.5, -math.inf
    for y in (weft.ones(37), weft.zeros(37), weft.randn(37)):
        mine = [x.clone().requires_grad_(), y.clone().requires_grad_()]
        others = [x.clone().requires_grad_(), y.clone().requires_grad_()]
        got, wanted = made.run(mine), results(function(*others))
        assert [same_numbers(g) for g in got] == [same_numbers(w) for w in wanted]
        seeds = [weft.randn(w.shape) for w in wanted]
        a, b = weft.autograd.grad(got, mine, seeds), weft.autograd.grad(wanted, others, seeds)
        assert [same_numbers(g) for g in a] == [same_numbers(g) for g in b]


def same_numbers(tensor):
    """The bits, with one NaN for all: which operand's comes out is not the operators' promise."""
    return tensor.dtype, bits(tensor.detach().masked_fill(tensor.isnan(), math.nan).double())


EDGES = [
    ("rows of one", (6, 1)),
    ("no rows", (0, 7)),
    ("empty rows", (6, 0)),
    ("a vector", (9,)),
    ("a number", ()),
]


@pytest.mark.parametrize("dtype", [weft.float32, weft.float16, weft.bfloat16])
@pytest.mark.parametrize(("why", "shape"), EDGES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_edges_and_halves_run_as_eagerly(function, why, shape, dtype):
    scripted = weft.jit.script(function)
    for _ in range(3):
        mine, others = ([a.to(dtype).requires_grad_() for a in inputs((shape, shape), weft.float32)]
                        for _ in range(2))  # fmt: skip
        try:
            wanted = results(function(*others))
        except (RuntimeError, IndexError) as error:
            with pytest.raises(type(error)):
                scripted(*mine)
            continue
        got = results(scripted(*mine))
        assert [(g.shape, same_numbers(g)) for g in got] == [
            (w.shape, same_numbers(w)) for w in wanted
        ]
        seeds = [weft.ones_like(w) for w in wanted]
        a, b = weft.autograd.grad(got, mine, seeds), weft.autograd.grad(wanted, others, seeds)
        assert [same_numbers(g) for g in a] == [same_numbers(g) for g in b]


def test_strided_operands():
    wide = weft.randn(64, 200)
    for function in FUNCTIONS:
        made = make(group_of(function))
        for args in (
            (wide[:, :150], weft.randn(150)),
            (wide[::2, 50:], weft.randn(32, 1).expand(32, 150)),
            (weft.randn(4, 8, 30, 30), weft.randn(4, 1, 1, 30)),
        ):
            mine = [a.detach().requires_grad_() for a in args]
            others = [a.detach().requires_grad_() for a in args]
            got, wanted = made.run(mine), results(function(*others))
            assert got is not None
            assert [bits(g) for g in got] == [bits(w) for w in wanted]
            seeds = [weft.randn(w.shape) for w in wanted]
            compare_gradients(got, mine, wanted, others, seeds)


@pytest.mark.parametrize("function", [normalised, standardised, log_probabilities, unit])
def test_another_order_runs_by_operators(function):
    made = make(group_of(function))
    x, y = weft.randn(40, 30).t(), weft.randn(30, 40)
    assert made.run([x, y]) is None
    assert bits(weft.jit.script(function)(x, y)) == bits(function(x, y))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_second_gradients_go_through_the_operators(function):
    check_second_gradients(function, rtol=1e-11, atol=1e-13)


def variance_of_all(x, y):
    return (x * y).var() + 1.0


def mask_count(x, y):
    return (x * y > 0).sum(-1)


@pytest.mark.parametrize("function", [variance_of_all, mask_count])
def test_what_does_not_join(function):
    """All elements at once take several passes; a mask is counted in int64."""
    groups = [n for n in optimised(function).walk() if n.kind == tiles.FUSED]
    steps = [op for n in groups for op, _, _ in tiles.spec(n).steps]
    assert not any(isinstance(op, RowStep) for op in steps)
    x, y = weft.randn(7, 9), weft.randn(7, 9)
    scripted = weft.jit.script(function)
    for _ in range(3):
        assert bits(scripted(x, y)) == bits(function(x, y))


def squared_distance(x, y):
    return F.mse_loss(x * y, y.tanh())


def absolute_distance(x, y):
    return F.l1_loss(x * y, y.tanh(), reduction="sum")


def surprise(x, y):
    return weft.binary_cross_entropy_with_logits(x * y, y.sigmoid(), None, None, 1)


def without_nan(x, y):
    return (x / y).nansum(-1, keepdim=True) * x


def product_of_rows(x, y):
    return (x * y).prod(-1, keepdim=True) * y


TAGGED = [squared_distance, absolute_distance, surprise, without_nan, product_of_rows]


@pytest.mark.parametrize("function", TAGGED)
def test_reductions_join_by_the_tag_of_their_row(function):
    x, y = weft.randn(7, 33), weft.randn(7, 33)
    x[0, 3] = y[0, 3] = 0.0
    traced = weft.jit.trace(function, (x, y))
    graph = traced.graph.copy()
    pipeline.optimize_graph(graph, 2, Options(), None)
    steps = tiles.spec(only_group(graph)).steps
    assert any(isinstance(op, RowStep) for op, _, _ in steps)
    for grad in (False, True):
        mine, others = ([a.clone().requires_grad_(grad) for a in (x, y)] for _ in range(2))
        for _ in range(3):
            got, wanted = traced(*mine), function(*others)
            assert same_numbers(got) == same_numbers(wanted)
        if grad:
            a, b = (weft.autograd.grad(r.sum(), i) for r, i in ((got, mine), (wanted, others)))
            assert [same_numbers(g) for g in a] == [same_numbers(g) for g in b]


def test_what_is_written_over_keeps_its_gradient():
    source = """
def f(x, y):
    z = x * y
    s = z.std(-1, keepdim=True)
    z += 1.0
    return z / s
"""
    names = {"weft": weft}
    exec(source, names)
    scripted = weft.jit.CompilationUnit(source).f
    for _ in range(3):
        mine, others = (inputs(((5, 8), (5, 8)), weft.float32) for _ in range(2))
        assert bits(scripted(*mine)) == bits(names["f"](*others))
