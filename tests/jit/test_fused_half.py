"""Groups of float16 and bfloat16: rounded after each step, as the operators round."""

from __future__ import annotations

import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
from jit.groups import NATIVE, assert_same_sums, bits, compile_now, group_of, make
from jit.test_fused import CHAIN, chain, eagerly, group, random_group

HALVES = [weft.float16, weft.bfloat16]


def raw(tensor):
    """The bits, as numpy knows no bfloat16."""
    return bits(tensor.detach().contiguous().view(weft.int16))


@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("shape", [(1,), (7,), (33, 17), (2, 1031), (70_000,)])
def test_chain_gives_the_operators_bits(dtype, shape, native):
    x, y = (weft.randn(shape) * 3).to(dtype), weft.randn(shape).to(dtype)
    made = group(2, CHAIN, [1, 4, 7], [1, 0.5])
    if native:
        compile_now(made, dtype, 0)
    got = made.run([x, y])
    assert [g.dtype for g in got] == [dtype] * 3
    assert raw(got[2]) == raw(chain(x, y))
    assert raw(got[0]) == raw(x * y + 1)
    assert raw(got[1]) == raw(weft.tanh(x - y))


@pytest.mark.parametrize("dtype", HALVES)
def test_the_order_of_rounding_shows(dtype):
    """Were the steps not rounded, these bits would differ."""
    x = weft.linspace(0.1, 9.7, 4001).to(dtype)
    steps = [("mul.Scalar", ["i0"], ["c0"]), ("mul.Scalar", ["s0"], ["c0"])]
    got = group(1, steps, [1], [0.3]).run([x])[0]
    assert raw(got) == raw((x * 0.3) * 0.3)
    assert raw(got) != raw((x.float() * 0.3 * 0.3).to(dtype))


@pytest.mark.parametrize("dtype", HALVES)
def test_masks_strides_and_broadcasting(dtype):
    steps = [
        ("gt.Scalar", ["i0"], ["c0"]),
        ("where.self", ["s0", "i0", "i1"], []),
        ("mul.Tensor", ["s1", "s0"], []),  # a mask as a number
        ("where.self", ["i2", "s2", "i1"], []),
    ]
    made = group(3, steps, [0, 3], [0.25])
    x, y, mask = weft.randn(40, 30).to(dtype), weft.randn(40).to(dtype), weft.rand(30, 40) > 0.5
    first = x.t() > 0.25
    wanted = weft.where(mask, weft.where(first, x.t(), y) * first, y)
    for _ in range(2):
        got = made.run([x.t(), y, mask])
        assert bits(got[0]) == bits(first)
        assert raw(got[1]) == raw(wanted)
        compile_now(made, dtype, 0b100)


@examples(60)
@given(
    random_group(),
    st.sampled_from([1, 5, 600, 1031]),
    st.sampled_from(HALVES),
    st.sampled_from(NATIVE),
)
def test_random_groups(spec, size, dtype, native):
    steps, outputs = spec
    made = group(2, steps, outputs, [1, 0.75])
    weft.manual_seed(size)
    inputs = [(weft.randn(size) * 2).to(dtype), weft.randn(size).to(dtype)]
    if native:
        compile_now(made, dtype, 0)
    results = eagerly(steps, inputs, [1, 0.75])
    for got, index in zip(made.run(inputs), outputs):
        same = raw if got.dtype == dtype else bits
        assert same(got.nan_to_num(0.0)) == same(results[index].nan_to_num(0.0))


def swish(x, y):
    return x * weft.sigmoid(x * y + 0.5) - weft.tanh(x - y) * 0.3


@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("shapes", [((5,), (5,)), ((40, 30), (30,)), ((300, 7), (300, 1))])
def test_gradients(shapes, dtype, native):
    made = make(group_of(swish))
    weft.manual_seed(3)
    values = [weft.randn(s).to(dtype) for s in shapes]
    mine, others = ([v.clone().requires_grad_() for v in values] for _ in range(2))
    if native:
        compile_now(made, dtype, 0)
    got, wanted = made.run(mine)[0], swish(*others)
    assert raw(got) == raw(wanted)
    assert got.grad_fn.name() == "FusedBackward"
    seed = weft.randn(wanted.shape).to(dtype)
    for a, b in zip(weft.autograd.grad(got, mine, seed), weft.autograd.grad(wanted, others, seed)):
        assert_same_sums(a, b, wanted.numel() // b.numel())
