"""Operands whose shapes do not fit: the operator that minds raises, as in eager code."""

from __future__ import annotations

import pytest

import weft


def _chain(x, y, z):
    a = x * 2
    b = a + y
    return b.relu() - z


def _norm(x, y, z):
    a = (x + y).softmax(-1)
    return (a - z) * 2


def _sums(x, y, z):
    return (x + y).relu().sum() + (x - z).exp().sum()


def _product(x, y, z):
    return (weft.mm(x, x.t()) + y).relu() * z


def _two_parts(x, y, z):
    a = x * y
    b = x * z
    return a + b


@pytest.mark.parametrize("function", [_chain, _norm, _sums, _product, _two_parts])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("runs_before", [0, 3])
@pytest.mark.parametrize("shapes", [((4,), (1,)), ((1,), (4,)), ((4,), (5,)), ((2, 4), (1,))])
def test_the_first_operator_that_minds_raises(function, grad, runs_before, shapes):
    script = weft.jit.script(function)
    x = weft.randn(3, 3, requires_grad=grad)
    for _ in range(runs_before):
        script(x, weft.ones(3), weft.ones(1))
    y, z = (weft.ones(*shape) for shape in shapes)
    with pytest.raises(RuntimeError) as expected:
        function(x, y, z)
    line = expected.traceback[-1].statement
    with pytest.raises(RuntimeError) as raised:
        script(x, y, z)
    message, _, traceback = str(raised.value).partition("\n")
    assert message == str(expected.value)
    assert str(line).strip() in traceback
