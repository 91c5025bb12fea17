"""weft.jit.memory_plan: which tensor lies where, and how much that is at most."""

from __future__ import annotations

import pytest

import weft
from jit.allocations import use_of
from jit.passes import read
from weft.jit.planning import Formula, memory_plan

SOURCE = """
def attention(x, wq, wk, wv):
    q = torch.mm(x, wq)
    k = torch.mm(x, wk)
    v = torch.mm(x, wv)
    return torch.mm(torch.softmax(torch.mm(q, k.t()) * 0.125, -1), v)


def rolls(x):
    a = torch.roll(x, 1, 0)
    b = torch.softmax(torch.roll(a, 1, 1), 1)
    c = torch.roll(b, 1, 0)
    return torch.relu(torch.roll(torch.roll(c, 1, 0), 1, 1)) + x


def views(x):
    y = torch.mm(x, x)
    z = y.t()
    w = torch.neg(x)
    return z[0] + w[0]


def held(x, i: int):
    ys = [torch.mm(x, x), torch.mm(x, x)]
    z = torch.neg(x)
    return torch.mm(ys[i], z)


def branch(x, b: bool):
    y = torch.mm(x, x)
    if b:
        z = torch.relu(y)
    else:
        z = torch.mm(y, y)
    return z


def loop(x, n: int):
    y = torch.mm(x, x)
    for i in range(n):
        y = torch.mm(y, x)
    return y
"""
UNIT = weft.jit.CompilationUnit(SOURCE)
SQUARE = "Tensor(float32, [n, n])"


def text(formulas):
    return [str(each) for each in formulas]


def test_formulas_are_of_the_symbols_given():
    w = "Tensor(float32, [d, d])"
    plan = memory_plan(UNIT.attention, "Tensor(float32, [t, d])", w, w, w)
    assert text(plan.peak) == ["12*d*t + 4*t*t"]
    # The scores are there once: their softmax is made as the product behind it needs it.
    assert [str(b.nbytes) for b in plan.buffers].count("4*t*t") == 1


def test_a_plan_of_real_shapes_is_what_the_allocator_is_asked_for():
    x = weft.randn(256, 128)
    plan = memory_plan(UNIT.rolls, x)
    (peak,) = plan.peak
    whole = 256 * 128 * 4
    UNIT.rolls(x)  # the first call has no plan yet
    assert use_of(UNIT.rolls, x, least=whole) == (int(str(peak)), len(plan.buffers))
    assert int(str(peak)) == 2 * whole


def test_products_do_not_lie_on_their_operands():
    unit = weft.jit.CompilationUnit(
        "def f(x):\n    y = torch.roll(x, 1, 0)\n    return torch.relu(torch.mm(y, y))\n"
    )
    plan = memory_plan(unit.f, SQUARE)
    assert text(plan.peak) == ["8*n*n"] and len(plan.buffers) == 2


def test_a_view_keeps_what_it_shows():
    plan = memory_plan(UNIT.views, SQUARE)
    spans = {b.tensors[0]: (b.first, b.last) for b in plan.buffers}
    adds = plan.steps.index("aten::add.Tensor")
    assert [last for _, last in spans.values()].count(adds) >= 2
    assert text(plan.peak) == ["8*n*n + 4*n"]


def test_a_list_keeps_its_items():
    plan = memory_plan(UNIT.held, SQUARE)
    (peak,) = text(plan.peak)
    assert peak.startswith("12*n*n + |%")  # the shape of an item is not known


def test_branches_and_loops():
    assert text(memory_plan(UNIT.branch, SQUARE).peak) == ["8*n*n"]
    assert text(memory_plan(UNIT.loop, SQUARE).peak) == ["8*n*n"]


def test_what_is_not_known_has_a_name():
    plan = memory_plan(UNIT.loop)
    assert all(str(b.nbytes).startswith("|%") for b in plan.buffers)
    assert plan.slots == len(plan.buffers)


def test_slots_are_used_again():
    graph = read(
        """
        graph(%x : Tensor(float32, [n, n])):
          %1 : Tensor = aten::mm(%x, %x)
          %2 : Tensor = aten::mm(%1, %1)
          %3 : Tensor = aten::mm(%2, %2)
          %4 : Tensor = aten::mm(%3, %3)
          return (%4)
        """
    )
    plan = memory_plan(graph)
    assert [b.slot for b in plan.buffers] == [0, 1, 0, 1]
    assert text(plan.peak) == ["8*n*n"]
    assert str(plan).splitlines()[0] == "peak 8*n*n bytes, 4 blocks in 2 slots"


def test_too_many_inputs():
    with pytest.raises(ValueError, match=r"memory_plan: expected at most 1 inputs, got 2"):
        memory_plan(UNIT.views, SQUARE, SQUARE)


def test_formulas():
    n, m = Formula({("n",): 4}), Formula({("m",): 4})
    assert str(n + m + n) == "4*m + 8*n"
    assert not n.is_at_least(m) and (n + m).is_at_least(m)
    assert str(Formula({(): 5, ("n",): 0})) == "5" and str(Formula()) == "0"
    assert n + m == m + n and len({n + m, m + n}) == 1
