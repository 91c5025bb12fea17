"""Memory planning: which results may lie where an operand lay, and that they do."""

from __future__ import annotations

import threading

import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
from jit.allocations import use_of
from jit.passes import check
from jit.programs import graphs, outcome
from jit.test_pass_interpreter import Compiled
from weft import _C
from weft.jit import ir, pipeline
from weft.jit.codegen import lower_program
from weft.jit.codegen.program import listing
from weft.jit.passes import memory_planning
from weft.jit.passes.options import INFERENCE, Options

KB256 = 256 * 256 * 4  # bytes of a float32 matrix of 256 x 256


def compiled(source: str, planned: bool = True, options: Options = INFERENCE):
    """The one function of a source, compiled with or without the pass."""
    unit = weft.jit.CompilationUnit(source)
    (name,) = (line[4 : line.index("(")] for line in source.splitlines() if line[:4] == "def ")
    function = getattr(unit, name).function
    graph = function.graph.copy()
    passes = [each for each in pipeline.PASSES if planned or each.name != "memory_planning"]
    before = pipeline.PASSES[:]
    pipeline.PASSES[:] = passes
    try:
        pipeline.optimize_graph(graph, 2, options)
    finally:
        pipeline.PASSES[:] = before
    lowered = ir.Function(name, graph, function.arg_names)
    data = lower_program([lowered], (), options.gradients)
    return _C.JitProgram(data.encode(), data.tables.inputs, data.callables, {}).function(name)


@pytest.fixture
def at_once():
    """Results of any size take over memory."""
    before = _C._reuse_from(0)
    yield
    _C._reuse_from(before)


# ---- the graph ----


def test_an_operand_that_dies_gives_its_memory():
    check(
        memory_planning.run,
        """
        graph(%x : Tensor, %w : Tensor):
          %1 : Tensor = aten::mm(%x, %w)
          %2 : Tensor = aten::relu(%1)
          %3 : Tensor = aten::mm(%2, %w)
          %one : int = prim::Constant[value=1]()
          %4 : Tensor = aten::add.Tensor(%2, %3, %one)
          return (%4)
        """,
        """
        graph(%x : Tensor, %w : Tensor):
          %1 : Tensor = aten::mm(%x, %w)
          %2 : Tensor = aten::relu[reuses=[0]](%1)
          %3 : Tensor = aten::mm(%2, %w)
          %one : int = prim::Constant[value=1]()
          %4 : Tensor = aten::add.Tensor[reuses=[0, 1]](%2, %3, %one)
          return (%4)
        """,
    )


def test_rows_composed_operators_and_norms():
    check(
        memory_planning.run,
        """
        graph(%x : Tensor, %w : Tensor, %m : Tensor, %yes : bool):
          %none : NoneType = prim::Constant[value=None]()
          %dim : int = prim::Constant[value=1]()
          %name : str = prim::Constant[value="none"]()
          %eps : float = prim::Constant[value=0.1]()
          %1 : Tensor = aten::mm(%x, %w)
          %2 : Tensor = aten::softmax.int(%1, %dim, %none)
          %3 : Tensor = aten::mm(%2, %w)
          %4 : Tensor = aten::gelu(%3, %name)
          %5 : Tensor = aten::mm(%4, %w)
          %6 : Tensor = aten::batch_norm(%5, %m, %m, %m, %m, %yes, %eps, %eps, %yes)
          return (%6)
        """,
        """
        graph(%x : Tensor, %w : Tensor, %m : Tensor, %yes : bool):
          %none : NoneType = prim::Constant[value=None]()
          %dim : int = prim::Constant[value=1]()
          %name : str = prim::Constant[value="none"]()
          %eps : float = prim::Constant[value=0.1]()
          %1 : Tensor = aten::mm(%x, %w)
          %2 : Tensor = aten::softmax.int[reuses=[0]](%1, %dim, %none)
          %3 : Tensor = aten::mm(%2, %w)
          %4 : Tensor = aten::gelu[reuses=[0]](%3, %name)
          %5 : Tensor = aten::mm(%4, %w)
          %6 : Tensor = aten::batch_norm[reuses=[0]](%5, %m, %m, %m, %m, %yes, %eps, %eps, %yes)
          return (%6)
        """,
    )


def test_branches_and_loops():
    text = """
        graph(%x : Tensor, %b : bool, %n : int):
          %true : bool = prim::Constant[value=True]()
          %y : Tensor = aten::mm(%x, %x)
          %z : Tensor = prim::If(%b)
            block0():
              %1 : Tensor = aten::relu{0}(%y)
              -> (%1)
            block1():
              %2 : Tensor = aten::mm(%y, %x)
              -> (%2)
          %r : Tensor = prim::Loop(%n, %true, %z)
            block0(%i : int, %c : Tensor):
              %3 : Tensor = aten::relu{0}(%c)
              -> (%true, %3)
          return (%r)
        """
    check(memory_planning.run, text.replace("{0}", ""), text.replace("{0}", "[reuses=[0]]"))


@pytest.mark.parametrize(
    "lines",
    [
        "%2 : Tensor = aten::relu(%x)",  # the caller's
        "%1 : Tensor = aten::mm(%x, %x)\n%2 : Tensor = aten::mm(%1, %1)",  # reads all of it
        # Sizes or dtypes are known to differ.
        "%1 : Tensor(float64) = aten::mm(%x, %x)\n%2 : Tensor(float32) = aten::relu(%1)",
        "%1 : Tensor(*, [2]) = aten::mm(%x, %x)\n%2 : Tensor(*, [3]) = aten::relu(%1)",
        "%1 : Tensor(*, [*]) = aten::mm(%x, %x)\n%2 : Tensor(*, [*, *]) = aten::relu(%1)",
        # Read again.
        "%1 : Tensor = aten::mm(%x, %x)\n%3 : Tensor = aten::relu(%1)\n%2 : Tensor = aten::mm(%3, %1)",
    ],
)
def test_nothing_to_take_over(lines):
    body = "\n".join(f"          {line}" for line in lines.splitlines())
    check(
        memory_planning.run,
        f"\n        graph(%x : Tensor):\n{body}\n          return (%2)\n",
        None,
    )


def test_symbols_that_may_be_the_same_are_asked_when_it_runs():
    graph = check(
        memory_planning.run,
        """
        graph(%x : Tensor):
          %1 : Tensor(float32, [n, 3]) = aten::mm(%x, %x)
          %2 : Tensor(float32, [m, 3]) = aten::relu(%1)
          return (%2)
        """,
        """
        graph(%x : Tensor):
          %1 : Tensor(float32, [n, 3]) = aten::mm(%x, %x)
          %2 : Tensor(float32, [m, 3]) = aten::relu[reuses=[0]](%1)
          return (%2)
        """,
    )
    function = ir.Function("f", graph, ["x"])
    assert "call_reusing" in listing(lower_program([function]))


# ---- what it saves ----

# What gives the operands: an operator that is part of no group and takes no scratch.
CHAIN = """
def chain(x, w):
    for _ in range(4):
        x = torch.relu(torch.cumsum(x, 0))
    return x
"""
RESIDUAL = """
def residual(x, w):
    y = torch.cumsum(x, 0)
    return torch.cumsum(w, 0) + y
"""
SOFTMAX = """
def softmax(x, w):
    return torch.softmax(torch.cumsum(x, 0), 1)
"""
SCALED = """
def scaled(x, w):
    y = torch.cumsum(x, 0).view(1, x.size(0), x.size(1))
    return torch.softmax(y * 0.125 + 1.0, -1)
"""
NORM = """
def norm(x, w):
    return torch.layer_norm(torch.cumsum(x, 0), [256], None, None, 1e-5)
"""
GELU = """
def gelu(x, w):
    return torch.nn.functional.gelu(torch.cumsum(x, 0))
"""
MASKED = """
def masked(x, w):
    return torch.cumsum(x, 0).masked_fill(w.bool(), -1.0)
"""
BATCH = """
def batch(x, w):
    m = x[0].abs()
    return torch.batch_norm(torch.cumsum(x, 0), None, None, m, m, False, 0.1, 1e-5, False)
"""


@pytest.mark.parametrize(
    ("source", "blocks"),
    [(CHAIN, 4), (RESIDUAL, 1), (SOFTMAX, 1), (NORM, 1), (GELU, 1), (MASKED, 1), (BATCH, 1)],
    ids=lambda value: value.split("(")[0].split()[-1] if isinstance(value, str) else "",
)
def test_fewer_blocks_and_the_same_bits(source, blocks):
    x, w = weft.randn(256, 256), weft.randn(256, 256) * 0.06
    plain, planned = compiled(source, planned=False), compiled(source)
    assert weft.equal(planned(x, w), plain(x, w))
    before, after = use_of(plain, x, w, least=KB256), use_of(planned, x, w, least=KB256)
    assert before.blocks - after.blocks == blocks
    assert after.peak <= before.peak


def test_the_peak_of_a_softmax_halves():
    x = weft.randn(256, 256)
    plain, planned = compiled(SOFTMAX, planned=False), compiled(SOFTMAX)
    assert use_of(plain, x, x, least=KB256) == (2 * KB256, 2)
    assert use_of(planned, x, x, least=KB256) == (KB256, 1)


def test_groups_with_rows_take_over_too():
    # From a view whose base is the program's alone, as a product of several batches gives it.
    x = weft.randn(256, 256)
    run = compiled(SCALED)
    expected = weft.softmax(weft.cumsum(x, 0).unsqueeze(0) * 0.125 + 1.0, -1)
    for _ in range(4):
        assert weft.equal(run(x, x), expected)
        assert use_of(run, x, x, least=KB256) == (KB256, 1)


@pytest.mark.parametrize(
    "result",
    [
        "torch.softmax(y, -1) - 0.5",
        "(torch.relu(y) - y.mean(-1, True)) * 2.0",
        "torch.softmax(y, -1) + y",
    ],
)
def test_the_last_stage_of_rows_takes_over(result):
    source = f"def rows(x):\n    y = torch.roll(x, 1, 0)\n    return {result}\n"
    x = weft.randn(256, 256)
    run = compiled(source)
    expected = eval(result, {"torch": weft, "y": weft.roll(x, 1, 0)})
    assert weft.equal(run(x), expected)
    assert use_of(run, x, least=KB256) == (KB256, 1)


def test_small_results_have_memory_of_their_own():
    x, w = weft.randn(8, 8), weft.randn(8, 8)
    run = compiled(CHAIN)
    assert use_of(run, x, w, least=256).blocks == 8


# ---- what it must not do ----


def test_what_others_hold_stays(at_once):
    source = """
def held(x, xs: list[Tensor]):
    a = torch.mm(x, x)
    xs.append(a)
    b = torch.relu(a)
    c = torch.mm(x, x)
    d = c[0]
    e = torch.neg(c)
    f = torch.mm(x, x)
    p = (f, 1)
    g = torch.neg(f)
    return b, xs[0], d, e, p, g
"""
    x = weft.randn(4, 4)
    b, first, d, e, (f, _), g = compiled(source)(x, [])
    y = weft.mm(x, x)
    assert weft.equal(b, y.relu()) and weft.equal(first, y) and weft.equal(d, y[0])
    assert weft.equal(e, -y) and weft.equal(f, y) and weft.equal(g, -y)


def test_arguments_stay(at_once):
    x, w = weft.randn(4, 4), weft.randn(4, 4)
    copy = x.clone()
    compiled("def own(x, w):\n    return torch.relu(x)\n")(x, w)
    compiled(CHAIN)(x, w)
    assert weft.equal(x, copy)


def test_gradients_keep_what_they_saved(at_once):
    source = "def grads(x, w):\n    return torch.relu(torch.exp(torch.mm(x, w)).sum(0))\n"
    x, w = weft.randn(4, 4).requires_grad_(), weft.randn(4, 4)
    run = compiled(source, options=Options())
    run(x, w).sum().backward()
    y = x.detach().clone().requires_grad_()
    weft.relu(weft.exp(weft.mm(y, w)).sum(0)).sum().backward()
    assert weft.equal(x.grad, y.grad)


@pytest.mark.parametrize("dtype", [weft.float64, weft.float16, weft.int64, weft.complex64])
def test_dtypes(at_once, dtype):
    x = (weft.randn(6, 6) * 4).to(dtype)
    source = "def f(x, y):\n    a = torch.mm(x, y)\n    return torch.add(a, 0.5), a.sum()\n"
    got = compiled(source)(x, x)
    a = weft.mm(x, x)
    assert weft.equal(got[0], a + 0.5) and got[0].dtype == (a + 0.5).dtype
    result = compiled("def f(x, y):\n    return torch.add(torch.mm(x, y), 0.5)\n")(x, x)
    assert weft.equal(result, a + 0.5) and result.dtype == (a + 0.5).dtype


def test_layouts_are_those_of_operators(at_once):
    x4, w4 = weft.randn(4, 4), weft.randn(4, 4)
    source = "def f(x, w):\n    return w.t() + torch.mm(x, w)\n"
    got, expected = compiled(source)(x4, w4), w4.t() + weft.mm(x4, w4)
    assert weft.equal(got, expected) and got.stride() == expected.stride()
    broadcast = "def f(x, w):\n    return torch.mm(x, w) + w.unsqueeze(0)\n"
    got = compiled(broadcast)(x4, w4)
    assert weft.equal(got, weft.mm(x4, w4) + w4.unsqueeze(0)) and got.shape == (1, 4, 4)


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64, weft.bfloat16])
@pytest.mark.parametrize("shape", [(100, 300), (2, 70_000), (5_000, 9), (30, 20, 40)])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_rows_in_their_own_place(at_once, shape, dim, dtype):
    x = weft.randn(shape).to(dtype)
    for name in ("softmax", "log_softmax"):
        source = f"def f(x, dim: int):\n    return torch.{name}(torch.cat([x]), dim)\n"
        run, plain = compiled(source), compiled(source, planned=False)
        assert weft.equal(run(x, dim), getattr(weft, name)(x, dim))
        whole = x.numel() * x.itemsize
        before = use_of(plain, x, dim, least=whole, most=whole)
        after = use_of(run, x, dim, least=whole, most=whole)
        assert after.blocks == before.blocks - 1


@pytest.mark.parametrize("shape", [(100, 300), (2, 70_000), (30, 20, 40)])
def test_norms_in_their_own_place(at_once, shape):
    x, size = weft.randn(shape), shape[-1]
    w, b = weft.randn(size), weft.randn(size)
    run = compiled(
        "def f(x, w, b):\n    return torch.layer_norm(torch.cat([x]), [x.size(-1)], w, b, 1e-5)\n"
    )
    assert weft.equal(run(x, w, b), weft.layer_norm(x, [size], w, b, 1e-5))


def test_a_part_of_a_large_storage_is_not_kept(at_once):
    source = "def part(x, w):\n    return torch.relu(torch.mm(x, w)[0])\n"
    x = weft.randn(64, 64)
    assert compiled(source)(x, x).untyped_storage().nbytes() == 64 * 4


def test_errors_leave_what_there_was(at_once):
    source = "def bad(x, w):\n    return torch.mm(x, x) + w\n"
    run = compiled(source)
    x = weft.randn(4, 4)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="broadcastable"):
            run(x, weft.randn(3))
        # The donation of a call that failed is gone: nobody else's result lands there.
        assert weft.equal(run(x, x), weft.mm(x, x) + x)


def test_in_training_batch_norm_reads_its_input_twice(at_once):
    source = (
        "def f(x, m, v):\n"
        "    return torch.batch_norm(torch.mm(x, x), None, None, m, v, True, 0.1, 1e-5, False)\n"
    )
    x = weft.randn(8, 8)
    m, v = weft.zeros(8), weft.ones(8)
    expected = weft.batch_norm(
        weft.mm(x, x), None, None, m.clone(), v.clone(), True, 0.1, 1e-5, False
    )
    assert weft.equal(compiled(source)(x, m, v), expected)


def test_threads_do_not_meet(at_once):
    x, w = weft.randn(64, 64), weft.randn(64, 64) * 0.1
    run = compiled(CHAIN)
    expected = run(x, w)
    wrong = []

    def work():
        for _ in range(200):
            if not weft.equal(run(x, w), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@given(graph=graphs(prints=False), seed=st.integers(0, 11), gradients=st.booleans())
@examples(60)
def test_random_programs(graph, seed, gradients):
    try:
        expected = outcome(graph, seed, None, gradients, copies=True)
    except TimeoutError:
        return
    before = _C._reuse_from(0)
    try:
        best = outcome(graph, seed, Compiled(Options(gradients=gradients)), gradients, copies=True)
    finally:
        _C._reuse_from(before)
    assert best == expected
