"""Gradients of groups: sums of the operators' gradients, up to the order of addition."""

from __future__ import annotations

import pytest

import weft
import weft.nn.functional as F
from jit.groups import assert_same_sums, bits, group_of, make


def normalised(x, w):
    variance = x.var(-1, keepdim=True)
    return (x - x.mean(-1, keepdim=True)) / weft.sqrt(variance + 1e-5) * w


def root_mean_square(x, w):
    return x * weft.rsqrt(x.pow(2).mean(-1, True) + 1e-5) * w


def layer_norm(x, w):
    return F.layer_norm(x * w, [40], w, w) * x


def pointwise(x, w):
    return weft.sigmoid(x * w) * x + x.tanh()


def row_sums(x, w):
    return x.var(-1) * x.mean(-1) * (x * w).sum(-1)


FUNCTIONS = [normalised, root_mean_square, layer_norm, pointwise, row_sums]
SHAPES = [((130, 40), (40,)), ((130, 40), (130, 40)), ((2, 40), (40,)), ((600, 16), (16,))]
SHAPES += [((300, 9), (9,)), ((2, 90, 70), (70,))]


def leaves(shapes, dtype=weft.float32):
    weft.manual_seed(3)
    return [weft.randn(shape, dtype=dtype).requires_grad_() for shape in shapes]


def both(function, shapes, use, dtype=weft.float32):
    """The gradients that `use(call, inputs)` leaves with the group and with its operators."""
    found = []
    group = make(group_of(function))
    for call in (lambda *args: group.run(list(args))[0], function):
        inputs = leaves(shapes, dtype)
        weft.manual_seed(4)
        extra = use(call, inputs)
        found.append([*(x.grad for x in inputs), *(extra or ())])
    return found


def compare(group, operators):
    assert len(group) == len(operators)
    largest = max(wanted.numel() for wanted in operators if wanted is not None)
    for got, wanted in zip(group, operators):
        assert_same_sums(got, wanted, 1 if wanted is None else largest // wanted.numel())


def fitting(function, shapes):
    return function is not layer_norm or shapes[0][-1] == shapes[1][-1] == 40 == shapes[1][0]


def alone(call, inputs):
    y = call(*inputs)
    y.backward(weft.randn(y.shape, dtype=y.dtype))


def behind_a_residual(call, inputs):
    x, w = inputs
    y = call(x, w)
    weft.autograd.backward([y, x * 3.0], [weft.randn(y.shape), weft.randn(x.shape)])


def before_others(call, inputs):
    x, w = inputs
    z = x * 3.0
    y = call(x, w)
    weft.autograd.backward([y, z], [weft.randn(y.shape), weft.randn(x.shape)])


def of_an_inner_tensor(call, inputs):
    x, w = inputs
    z = x.exp()
    y = call(z, w)
    weft.autograd.backward([y, z.sin()], [weft.randn(y.shape), weft.randn(x.shape)])


def behind_an_expanded_gradient(call, inputs):
    x, w = inputs
    y = call(x, w)
    weft.autograd.backward([y, x.sum()], [weft.randn(y.shape), weft.tensor(2.0)])


def twice_and_kept(call, inputs):
    y = call(*inputs)
    g = weft.randn(y.shape)
    y.backward(g, retain_graph=True)
    y.backward(g)


def of_one_input(call, inputs):
    x, w = inputs
    y = call(x, w)
    g = weft.randn(y.shape)
    return [
        *weft.autograd.grad(y, [x], g, retain_graph=True),
        *weft.autograd.grad(y, [w], g, retain_graph=True),
        *weft.autograd.grad(y, [w, x], g),
    ]


def of_a_gradient(call, inputs):
    x, w = inputs
    y = call(x, w)
    (g,) = weft.autograd.grad(y, [x], weft.randn(y.shape), create_graph=True)
    assert g.requires_grad
    return [g]


def of_a_gradient_behind_a_residual(call, inputs):
    x, w = inputs
    y = call(x, w)
    seeds = [weft.randn(y.shape), weft.randn(x.shape)]
    (g,) = weft.autograd.grad([y, x * 3.0], [x], seeds, create_graph=True)
    assert g.requires_grad
    return [g]


def in_anomaly_mode(call, inputs):
    with weft.autograd.detect_anomaly():
        alone(call, inputs)


USES = [
    alone, behind_a_residual, before_others, of_an_inner_tensor, behind_an_expanded_gradient,
    twice_and_kept, of_one_input, of_a_gradient, of_a_gradient_behind_a_residual,
]  # fmt: skip


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_are_the_operators_sums(function, use):
    for shapes in SHAPES:
        if fitting(function, shapes):
            group, operators = both(function, shapes, use)
            compare(group, operators)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_in_anomaly_mode(function):
    shapes = ((130, 40), (40,))
    with pytest.warns(UserWarning):
        group, operators = both(function, shapes, in_anomaly_mode)
    compare(group, operators)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_tensor_as_both_inputs(function):
    def use(call, inputs):
        (x,) = inputs
        y = call(x, x)
        y.backward(weft.randn(y.shape))

    if function is not layer_norm:
        group, operators = both(function, [(300, 40)], use)
        compare(group, operators)


@pytest.mark.parametrize("function", [pointwise, normalised])
def test_hooks_of_the_node_see_one_gradient_of_each_input(function):
    seen = []
    x, w = leaves(((130, 40), (40,)))
    y = make(group_of(function)).run([x, w])[0]
    y.grad_fn.register_hook(lambda into, _: seen.append([g is None for g in into]))
    y.backward(weft.ones_like(y))
    assert seen == [[False, False]]


@pytest.mark.parametrize("function", [pointwise, normalised])
def test_hooks_of_tensors_see_the_sum(function):
    def use(call, inputs):
        x, w = inputs
        seen = []
        z = x.exp()
        z.register_hook(lambda g: seen.append(g.clone()))
        z.retain_grad()
        y = call(z, w)
        weft.autograd.backward([y, z * 2.0], [weft.randn(y.shape), weft.randn(z.shape)])
        assert len(seen) == 1
        return [*seen, z.grad]

    group, operators = both(function, ((130, 40), (40,)), use)
    compare(group, operators)


def test_a_gradient_that_others_hold_is_not_written_over():
    """The gradient given for the root is also the first one of the sum."""
    x, w = leaves(((300, 40), (40,)))
    y = make(group_of(normalised)).run([x, w])[0]
    given = weft.randn(300, 40)
    before = bits(given)
    weft.autograd.backward([y, x], [weft.randn(300, 40), given])
    assert bits(given) == before


@pytest.mark.parametrize("ends", [(0,), (1,), (0, 1)])
def test_a_result_without_a_gradient_sends_none(ends):
    """The sum of such a result passes its gradient on as it is: there is none."""

    def two(x, w):
        z = x * w
        return z + x, z.tanh() * x

    found = []
    made = make(group_of(two))
    for call in (lambda *args: made.run(list(args)), two):
        x, w = leaves(((300, 40), (40,)))
        results = call(x, w)
        weft.manual_seed(4)
        weft.autograd.backward([results[k] for k in ends], [weft.randn(300, 40) for _ in ends])
        found.append([x.grad, w.grad])
    compare(*found)


@pytest.mark.parametrize("rows", [3, 600])  # stage by stage, and in blocks
def test_values_of_rows_are_kept_beside_the_results(rows):
    """Whoever writes over a result changes no gradient."""

    def scaled(x, w):
        s = x.var(-1, keepdim=True)
        return x * w * s, s

    found = []
    made = make(group_of(scaled))
    assert group_of(scaled).backward.saved
    for call in (lambda *args: made.run(list(args)), scaled):
        x, w = leaves(((rows, 40), (40,)))
        of_rows, result = sorted(call(x, w), key=lambda t: t.numel())
        if call is not scaled:
            of_rows.detach().zero_()
        result.backward(weft.ones(rows, 40))
        found.append([x.grad, w.grad])
    compare(*found)
