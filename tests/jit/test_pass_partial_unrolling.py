"""Partial unrolling: which loops make several trips at once, and that they do the same."""

from __future__ import annotations

import pytest

import weft
from jit.passes import check
from jit.test_pass_memory import compiled
from weft.jit.passes import partial_unrolling
from weft.jit.passes.options import INFERENCE, Options

LOOP = """
graph(%x : Tensor, %w : Tensor, %n : int, %b : bool):
  %yes : bool = prim::Constant[value=True]()
  %f : float = prim::Constant[value=0.5]()
  %r : Tensor = prim::Loop(%n, {start}, %x)
    block0(%i : int, %c : Tensor):
      {body}
      -> ({again}, %d)
  return (%r)
"""


def loop(body: str, start: str = "%yes", again: str = "%yes") -> str:
    return LOOP.format(body=body.replace("\n", "\n      "), start=start, again=again)


def test_eight_trips_and_what_is_left():
    trips = "\n".join(
        f"      %{k + 1} : Tensor = aten::mul.Tensor(%{k or 'c'}, %w)" for k in range(8)
    )
    check(
        partial_unrolling.run,
        loop("%d : Tensor = aten::mul.Tensor(%c, %w)"),
        f"""
graph(%x : Tensor, %w : Tensor, %n : int, %b : bool):
  %yes : bool = prim::Constant[value=True]()
  %f : float = prim::Constant[value=0.5]()
  %zero : int = prim::Constant[value=0]()
  %eight : int = prim::Constant[value=8]()
  %most : int = prim::max.int(%n, %zero)
  %whole : int = aten::floordiv.int(%most, %eight)
  %rest : int = aten::remainder.int(%most, %eight)
  %many : Tensor = prim::Loop[unrolled=8](%whole, %yes, %x)
    block0(%i : int, %c : Tensor):
{trips}
      -> (%yes, %8)
  %r : Tensor = prim::Loop[unrolled=1](%rest, %yes, %many)
    block0(%j : int, %e : Tensor):
      %g : Tensor = aten::mul.Tensor(%e, %w)
      -> (%yes, %g)
  return (%r)
""",
    )


def test_a_known_count_leaves_no_questions():
    text = loop("%d : Tensor = aten::mul.Tensor(%c, %w)").replace("%n, ", "%k, ", 1)
    text = text.replace("  %f :", "  %k : int = prim::Constant[value=16]()\n  %f :").replace(
        "%x : Tensor, %w : Tensor, %k, ", "%x : Tensor, %w : Tensor, "
    )
    text = text.replace("prim::Loop(%n,", "prim::Loop(%k,")
    graph = check_changes(text)
    kinds = [node.kind for node in graph.walk()]
    assert kinds.count("prim::Loop") == 1 and "aten::remainder.int" not in kinds


def check_changes(text):
    from jit.passes import read
    from weft.jit import ir, schemas

    graph = read(text)
    assert partial_unrolling.run(graph)
    ir.verify(graph, schemas.of)
    assert not partial_unrolling.run(graph)
    return graph


@pytest.mark.parametrize(
    ("body", "start", "again"),
    [
        ("%d : Tensor = aten::mul.Tensor(%c, %w)", "%b", "%yes"),  # a condition
        ("%d : Tensor = aten::mul.Tensor(%c, %w)", "%yes", "%b"),
        ("%d : Tensor = aten::mm(%c, %w)", "%yes", "%yes"),  # a product
        ("%d : Tensor = aten::tanh(%c)", "%yes", "%yes"),  # dear
        ("prim::Print(%i)\n%d : Tensor = aten::mul.Tensor(%c, %w)", "%yes", "%yes"),  # an effect
        ("%d : Tensor = aten::mul_.Tensor(%c, %w)", "%yes", "%yes"),  # a write
        ("%d : Tensor = aten::neg(%w)", "%yes", "%yes"),  # the same in each trip
    ],
)
def test_what_stays(body, start, again):
    check(partial_unrolling.run, loop(body, start, again), None)


def test_the_limit_of_nodes_holds():
    text = loop("%d : Tensor = aten::mul.Tensor(%c, %w)")
    check(partial_unrolling.run, text, None, options=Options(unroll_limit=1))


SOURCES = [
    "def f(x, w, n: int):\n    for i in range(n):\n        x = x * 0.5 + w[i % 3]\n    return x\n",
    "def f(x, w, n: int):\n    for i in range(n):\n        x = x * (i * 0.1) - w[0]\n    return x\n",
    "def f(x, w, n: int):\n    y = x\n    for i in range(n):\n        x, y = y * 0.5, x + w[1]\n    return x - y\n",
    "def f(x, w, n: int):\n    ys = [(w[0], w[1])] * (n if n > 0 else 0)\n    for a, b in ys:\n        x = x * a - b\n    return x\n",
    "def f(x, w, n: int):\n    for i in range(2, n, 3):\n        x = torch.relu(x * 1.5 - i)\n    return x\n",
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("options", [INFERENCE, Options()], ids=["inference", "gradients"])
def test_every_count_gives_the_same(source, options):
    names = {"torch": weft}
    exec(source, names)
    run = compiled(source, options=options)
    assert "unrolled" in str(optimized(source, options))
    for n in (-3, 0, 1, 2, 7, 8, 9, 15, 16, 17, 31):
        x, w = weft.randn(5), weft.randn(3, 5)
        if not options.gradients:
            assert weft.equal(run(x, w, n), names["f"](x, w, n))
            continue
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        c, d = w.clone().requires_grad_(), w.clone().requires_grad_()
        run(a, c, n).tanh().sum().backward()
        names["f"](b, d, n).tanh().sum().backward()
        assert weft.equal(a.grad, b.grad)
        assert (c.grad is None) == (d.grad is None)
        assert c.grad is None or weft.equal(c.grad, d.grad)


def optimized(source, options):
    from weft.jit import pipeline

    graph = weft.jit.CompilationUnit(source).f.graph.copy()
    pipeline.optimize_graph(graph, 2, options)
    return graph


def test_errors_come_from_the_trip_that_made_them():
    source = SOURCES[0].replace("w[i % 3]", "w[i]")
    run = compiled(source)
    with pytest.raises(IndexError, match="got 3"):
        run(weft.randn(5), weft.randn(3, 5), 9)
    assert run(weft.randn(5), weft.randn(3, 5), 3).shape == (5,)


def test_shapes_that_grow_in_the_first_trip():
    source = "def f(x, w, n: int):\n    for _ in range(n):\n        x = x * w + 1.0\n    return x\n"
    run = compiled(source)
    x, w = weft.randn(1), weft.randn(3, 4)
    expected = x
    for _ in range(19):
        expected = expected * w + 1.0
    assert weft.equal(run(x, w, 19), expected)
