"""Text in, text out: inlining, constants, control flow, loops, dead code."""

import pytest

from jit.evaluate import evaluate
from jit.passes import body, check, read
from weft import jit, ones
from weft.jit import ir, pipeline
from weft.jit.passes import (
    constant_pooling,
    constant_propagation,
    control_flow,
    dce,
    inlining,
    loop_unrolling,
)
from weft.jit.passes.options import Options

INPUTS = "%x : Tensor, %n : int, %b : bool, %f : float, %o : int?"


def case(run, before, result, after, **more):
    """Lines between header and return, and what is returned, before and after (None: no change)."""
    changed = None if after is None else body(after[0], INPUTS, after[1])
    return check(run, body(before, INPUTS, result), changed, **more)


# ---- inlining ----

HALF = ir.Function(
    "half",
    read(
        "graph(%n : int):\n  %two : int = prim::Constant[value=2]()\n  %h : int = aten::floordiv.int(%n, %two)  # half.py:2:4\n  return (%h)\n"
    ),
    ["n"],
)
QUARTER = ir.Function(
    "quarter",
    read(
        "graph(%n : int):\n  %a : int = prim::CallFunction[function=@half](%n)  # q.py:5:0\n  %b : int = prim::CallFunction[function=@half](%a)\n  return (%b)\n",
        None,
        {"half": HALF},
    ),
    ["n"],
)
FUNCTIONS = {"half": HALF, "quarter": QUARTER}


def test_inlining():
    graph = case(
        inlining.run,
        "%q : int = prim::CallFunction[function=@quarter](%n)  # main.py:9:1",
        "%q",
        ("%two : int = prim::Constant[value=2]()\n%h : int = aten::floordiv.int(%n, %two)\n"
         "%two.1 : int = prim::Constant[value=2]()\n%q : int = aten::floordiv.int(%h, %two.1)", "%q"),
        functions=FUNCTIONS,
    )  # fmt: skip
    (first,) = [node for node in graph.walk() if node.kind == "aten::floordiv.int"][:1]
    assert [str(place) for place in first.range.chain()] == [
        "half.py:2:4",
        "q.py:5:0",
        "main.py:9:1",
    ]
    assert len(list(QUARTER.graph.walk())) == 2  # the callee itself stays as it is


def test_inlining_into_blocks_and_limits():
    inside = "%q : int = prim::If(%b)\n  block0():\n    %h : int = prim::CallFunction[function=@half](%n)\n    -> (%h)\n  block1():\n    -> (%n)"
    graph = case(
        inlining.run,
        inside,
        "%q",
        (
            inside.replace(
                "prim::CallFunction[function=@half](%n)", "aten::floordiv.int(%n, %two)"
            ).replace("    %h", "    %two : int = prim::Constant[value=2]()\n    %h"),
            "%q",
        ),
        functions=FUNCTIONS,
    )
    assert evaluate(graph, None, 7, True, 0.0, None) == 3
    case(inlining.run, inside, "%q", None, functions=FUNCTIONS, options=Options(inline_limit=1))


def test_a_large_function_that_is_called_often_is_compiled_once():
    text = "graph(%n : int):\n  %a : int = prim::CallFunction[function=@half](%n)\n  %b : int = prim::CallFunction[function=@half](%a)\n  return (%b)\n"
    graph = read(text, None, FUNCTIONS)
    assert pipeline.optimize_graph(graph, 2, Options(call_size=1))
    called = [node.attrs["function"] for node in graph.walk()]
    assert len(called) == 2 and called[0] is called[1] is not HALF
    assert evaluate(graph, 9) == 2
    graph = read(text, None, FUNCTIONS)
    pipeline.optimize_graph(graph, 2, Options(call_size=2))
    assert "CallFunction" not in str(graph)


def test_inlining_methods_and_recursion():
    point = ir.ClassType("Point", {"x": ir.Attribute(ir.INT)})
    classes = {"Point": point}
    point.methods["get"] = ir.Function(
        "Point.get",
        read(
            'graph(%self : Point):\n  %x : int = prim::GetAttr[name="x"](%self)\n  return (%x)\n',
            classes,
        ),
        ["self"],
    )
    check(
        inlining.run,
        'graph(%p : Point):\n  %x : int = prim::CallMethod[name="get"](%p)\n  return (%x)\n',
        'graph(%p : Point):\n  %x : int = prim::GetAttr[name="x"](%p)\n  return (%x)\n',
        classes,
    )
    interface = ir.InterfaceType("I", {"get": ir.FunctionSchema("get", (), ir.INT)})
    check(
        inlining.run,
        'graph(%p : I):\n  %x : int = prim::CallMethod[name="get"](%p)\n  return (%x)\n',
        None,
        {"I": interface},
    )
    again = ir.Function("again", ir.Graph(), ["n"])
    n = again.graph.add_input(ir.INT, "n")
    again.graph.block.set_returns(
        [again.graph.emit("prim::CallFunction", [n], [ir.INT], {"function": again}).output]
    )
    text = "graph(%n : int):\n  %y : int = prim::CallFunction[function=@again](%n)\n  return (%y)\n"
    graph = read(text, None, {"again": again})
    assert inlining.run(graph)
    assert [node.kind for node in graph.walk()] == ["prim::CallFunction"]  # once, not for ever
    ir.verify(graph)


# ---- constant propagation ----


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ("%r : int = aten::add.int(%two, %three)", "int = prim::Constant[value=5]"),
        ("%r : int = aten::floordiv.int(%three, %two)", "int = prim::Constant[value=1]"),
        ("%r : bool = aten::lt.int(%two, %three)", "bool = prim::Constant[value=True]"),
        ("%r : float = aten::div.int(%three, %two)", "float = prim::Constant[value=1.5]"),
        (
            "%h : float = aten::Float.int(%two)\n%r : float = aten::neg.float(%h)",
            "float = prim::Constant[value=-2.0]",
        ),
        (
            "%r : (int, int) = prim::TupleConstruct(%two, %three)",
            "(int, int) = prim::Constant[value=(2, 3)]",
        ),
        (
            "%t : (int, int) = prim::TupleConstruct(%two, %three)\n%r : int = prim::TupleIndex[index=1](%t)",
            "int = prim::Constant[value=3]",
        ),
        (
            "%r : bool = prim::isinstance[types=[type(int)]](%two)",
            "bool = prim::Constant[value=True]",
        ),
        ("%r : bool = prim::is_nested(%x)", "bool = prim::Constant[value=False]"),
        (
            "%r : bool = prim::isinstance[types=[type(int)]](%x)",
            "bool = prim::Constant[value=False]",
        ),
        (
            "%r : bool = prim::isinstance[types=[type(int), type(AnyList)]](%xs)",
            "bool = prim::Constant[value=True]",
        ),
        (
            "%t : (int, int) = prim::Constant[value=(2, 3)]()\n%r : bool = prim::isinstance[types=[type(AnyTuple)]](%t)",
            "bool = prim::Constant[value=True]",
        ),
    ],
)
def test_folding(lines, value):
    constants = "%two : int = prim::Constant[value=2]()\n%three : int = prim::Constant[value=3]()\n"
    graph = read(body(constants + lines, "%x : Tensor, %xs : int[]", "%r"))
    assert constant_propagation.run(graph)
    assert f"%r : {value}()" in str(graph)
    dce.run(graph)
    assert len(graph.block) == 1


@pytest.mark.parametrize(
    "lines",
    [
        "%zero : int = prim::Constant[value=0]()\n%r : int = aten::floordiv.int(%zero, %zero)",  # raises, then
        "%big : int = prim::Constant[value=9223372036854775807]()\n%r : int = aten::add.int(%big, %big)",  # overflows
        "%one : int = prim::Constant[value=1]()\n%r : int[] = prim::ListConstruct(%one)",  # somebody may write to it
        "%none : Tensor? = prim::Constant[value=None]()\n%l : Tensor?[] = prim::ListConstruct(%none)\n%r : bool = prim::isinstance[types=[type(Tensor[])]](%l)",
        "%one : float = prim::Constant[value=1.0]()\n%none : dtype? = prim::Constant[value=None]()\n%dev : Device? = prim::Constant[value=None]()\n%no : bool = prim::Constant[value=False]()\n%r : Tensor = aten::tensor.float(%one, %none, %dev, %no)",
    ],
)
def test_not_folded(lines):
    check(constant_propagation.run, body(lines, "", "%r"), None)


def test_huge_strings_are_not_kept():
    lines = '%a : str = prim::Constant[value="aaaaaaaaaa"]()\n%n : int = prim::Constant[value=100000]()\n%r : str = aten::mul.str(%a, %n)'
    check(constant_propagation.run, body(lines, "", "%r"), None)


def test_printing_is_not_folded():
    check(
        constant_propagation.run,
        body("%a : int = prim::Constant[value=1]()\nprim::Print(%a)", "", ""),
        None,
    )


# ---- pooling ----


def test_pooling():
    check(
        constant_pooling.run,
        body("%a : int = prim::Constant[value=1]()\n%s : int = aten::add.int(%n, %a)\n%r : int = prim::If(%b)\n  block0():\n    %c : int = prim::Constant[value=1]()\n    %t : int = aten::add.int(%s, %c)\n    -> (%t)\n  block1():\n    %d : int = prim::Constant[value=2]()\n    -> (%d)", INPUTS, "%r"),
        body("%a : int = prim::Constant[value=1]()\n%d : int = prim::Constant[value=2]()\n%s : int = aten::add.int(%n, %a)\n%r : int = prim::If(%b)\n  block0():\n    %t : int = aten::add.int(%s, %a)\n    -> (%t)\n  block1():\n    -> (%d)", INPUTS, "%r"),
    )  # fmt: skip


def test_pooling_tells_types_and_bits_apart():
    lines = "%a : float = prim::Constant[value=0.0]()\n%b : float = prim::Constant[value=-0.0]()\n%c : int = prim::Constant[value=0]()\n%d : bool = prim::Constant[value=False]()\n%e : int? = prim::Constant[value=None]()\n%f : float? = prim::Constant[value=None]()\n%g : float = prim::Constant[value=nan]()"
    check(constant_pooling.run, body(lines, "", "%a, %b, %c, %d, %e, %f, %g"), None)


def test_pooling_of_tensors_goes_by_identity():
    import weft

    graph, one = ir.Graph(), weft.ones(2)
    graph.block.set_returns(
        [graph.constant(one), graph.constant(weft.ones(2)), graph.constant(one)]
    )
    assert constant_pooling.run(graph)
    first, second, third = graph.returns
    assert first is third and first is not second


# ---- control flow ----

IF = "{c} : bool = prim::Constant[value={v}]()\n%r : int = prim::If({c})\n  block0():\n    %s : int = aten::neg.int(%n)\n    -> (%s)\n  block1():\n    -> (%n)"


def test_constant_condition():
    case(
        control_flow.run,
        IF.format(c="%c", v=True),
        "%r",
        ("%c : bool = prim::Constant[value=True]()\n%s : int = aten::neg.int(%n)", "%s"),
    )
    case(
        control_flow.run,
        IF.format(c="%c", v=False),
        "%r",
        ("%c : bool = prim::Constant[value=False]()", "%n"),
    )


def test_the_same_on_both_branches():
    two = "%two : int = prim::Constant[value=2]()"
    before = "%r : int, %s : int, %t : bool = prim::If(%b)\n  block0():\n    prim::Print(%n)\n    {two}\n    %yes : bool = prim::Constant[value=True]()\n    -> (%n, %two, %yes)\n  block1():\n    {two1}\n    %no : bool = prim::Constant[value=False]()\n    -> (%n, %two.1, %no)"
    two1 = two.replace("%two", "%two.1")
    after = "%k : int = prim::Constant[value=2]()\nprim::If(%b)\n  block0():\n    prim::Print(%n)\n    {two}\n    %yes : bool = prim::Constant[value=True]()\n    -> ()\n  block1():\n    {two1}\n    %no : bool = prim::Constant[value=False]()\n    -> ()"
    case(
        control_flow.run,
        before.format(two=two, two1=two1),
        "%r, %s, %t",
        (after.format(two=two, two1=two1), "%n, %k, %b"),
    )


def test_the_opposite_of_the_condition():
    before = "%r : bool = prim::If(%b)\n  block0():\n    prim::Print(%n)\n    %no : bool = prim::Constant[value=False]()\n    -> (%no)\n  block1():\n    %yes : bool = prim::Constant[value=True]()\n    -> (%yes)"
    after = "%k : bool = aten::__not__(%b)\nprim::If(%b)\n  block0():\n    prim::Print(%n)\n    %no : bool = prim::Constant[value=False]()\n    -> ()\n  block1():\n    %yes : bool = prim::Constant[value=True]()\n    -> ()"
    case(control_flow.run, before, "%r", (after, "%k"))


def test_condition_is_known_inside():
    case(
        control_flow.run,
        "%r : bool = prim::If(%b)\n  block0():\n    %s : bool = aten::__not__(%b)\n    -> (%s)\n  block1():\n    prim::Print(%b)\n    -> (%b)",
        "%r",
        ("%r : bool = prim::If(%b)\n  block0():\n    %k : bool = prim::Constant[value=True]()\n    %s : bool = aten::__not__(%k)\n    -> (%s)\n  block1():\n    %k.1 : bool = prim::Constant[value=False]()\n    prim::Print(%k.1)\n    -> (%k.1)", "%r"),
    )  # fmt: skip


LOOP = "%trips : int = prim::Constant[value={trips}]()\n%yes : bool = prim::Constant[value={start}]()\n%r : int, %s : int = prim::Loop(%trips, %yes, %n, %n)\n  block0(%i : int, %r.1 : int, %s.1 : int):\n    %t : int = aten::add.int(%r.1, %s.1)\n    -> ({again}, %t, %s.1)"


def test_loops_that_never_run():
    for trips, start in ((0, True), (-3, True), (5, False)):
        text = LOOP.format(trips=trips, start=start, again="%yes")
        case(control_flow.run, text, "%r, %s", ("\n".join(text.split("\n")[:2]), "%n, %n"))


def test_carried_values_that_do_not_change():
    text = LOOP.format(trips=5, start=True, again="%yes")
    after = "%trips : int = prim::Constant[value=5]()\n%yes : bool = prim::Constant[value=True]()\n%r : int = prim::Loop(%trips, %yes, %n)\n  block0(%i : int, %r.1 : int):\n    %t : int = aten::add.int(%r.1, %n)\n    -> (%yes, %t)"
    case(control_flow.run, text, "%r, %s", (after, "%r, %n"))


def test_casts_that_say_nothing():
    case(control_flow.run, "%r : int = prim::unchecked_cast(%n)", "%r", ("", "%n"))
    case(control_flow.run, "%r : int? = prim::unchecked_cast(%n)", "%r", ("", "%n"))
    case(control_flow.run, "%r : int = prim::unchecked_cast(%o)", "%r", None)


# ---- unrolling ----


def test_unrolling():
    text = "%trips : int = prim::Constant[value=2]()\n%yes : bool = prim::Constant[value=True]()\n%r : int = prim::Loop(%trips, %yes, %n)\n  block0(%i : int, %r.1 : int):\n    %t : int = aten::add.int(%r.1, %i)\n    -> (%yes, %t)"
    after = "%trips : int = prim::Constant[value=2]()\n%yes : bool = prim::Constant[value=True]()\n%i0 : int = prim::Constant[value=0]()\n%t0 : int = aten::add.int(%n, %i0)\n%i1 : int = prim::Constant[value=1]()\n%t1 : int = aten::add.int(%t0, %i1)"
    case(loop_unrolling.run, text, "%r", (after, "%t1"))
    case(loop_unrolling.run, text, "%r", None, options=Options(unroll_trips=1))
    case(loop_unrolling.run, text, "%r", None, options=Options(unroll_limit=1))


def test_not_unrolled():
    header = (
        "%trips : int = prim::Constant[value=2]()\n%yes : bool = prim::Constant[value=True]()\n"
    )
    loop = "%r : int = prim::Loop({}, {}, %n)\n  block0(%i : int, %r.1 : int):\n    -> ({}, %i)"
    for trips, start, again in (
        ("%n", "%yes", "%yes"),
        ("%trips", "%b", "%yes"),
        ("%trips", "%yes", "%b"),
    ):
        case(loop_unrolling.run, header + loop.format(trips, start, again), "%r", None)


@pytest.mark.parametrize(
    "trips",
    [
        "%n : int = aten::size.int(%x, %zero)",
        "%rows : Tensor[] = aten::unbind.int(%x, %zero)\n  %n : int = aten::len.t(%rows)",
        "%m : int = aten::size.int(%x, %zero)\n  %n : int = aten::mul.int(%m, %two)",
    ],
)
def test_trips_that_follow_from_shapes(trips):
    graph = read(
        f"""
graph(%x : Tensor(float32, [3, 4])):
  %true : bool = prim::Constant[value=True]()
  %zero : int = prim::Constant[value=0]()
  %two : int = prim::Constant[value=2]()
  {trips}
  %r : Tensor = prim::Loop(%n, %true, %x)
    block0(%i : int, %c : Tensor):
      %d : Tensor = aten::mm(%c, %x)
      -> (%true, %d)
  return (%r)
"""
    )
    pipeline.optimize_graph(graph)
    kinds = [node.kind for node in graph.walk()]
    assert "prim::Loop" not in kinds
    assert kinds.count("aten::mm") == (6 if "%two)" in trips else 3)


# ---- dead code ----


def test_dead_code():
    case(
        dce.run,
        "%a : float = aten::add.float(%f, %f)\n%c : bool = aten::lt.float(%a, %f)",
        "%n",
        ("", "%n"),
    )


@pytest.mark.parametrize(
    "lines",
    [
        "%a : Tensor = aten::neg(%x)",  # of a bool tensor it raises
        "%a : int = aten::add.int(%n, %n)",  # overflow
        "%a : int = aten::floordiv.int(%n, %n)",
        "%a : Tensor = aten::add_.Tensor(%x, %x, %n)",
        "prim::Print(%n)",
        "%m : MemoryFormat = prim::Constant[value=torch.channels_last]()\n%a : Tensor = aten::contiguous(%x, %m)",
        '%a : str = prim::Constant[value="m"]()\nprim::RaiseException[exception="ValueError"](%a)',
        "%a : int[] = aten::size(%x)\n%c : int, %d : int = prim::ListUnpack(%a)",
        "prim::If(%b)\n  block0():\n    prim::Print(%n)\n    -> ()\n  block1():\n    -> ()",
        "%m : int = prim::Constant[value=9223372036854775807]()\nprim::Loop(%m, %b)\n  block0(%i : int):\n    -> (%b)",
    ],
)
def test_not_dead(lines):
    case(dce.run, lines, "%n", None)


def test_dead_outputs_of_if_and_loop():
    before = "%r : float, %s : float = prim::If(%b)\n  block0():\n    %t : float = aten::neg.float(%f)\n    -> (%t, %f)\n  block1():\n    %u : float = aten::mul.float(%f, %f)\n    -> (%u, %u)"
    after = "%s : float = prim::If(%b)\n  block0():\n    -> (%f)\n  block1():\n    %u : float = aten::mul.float(%f, %f)\n    -> (%u)"
    case(dce.run, before, "%s", (after, "%s"))
    before = "%r : float, %s : float, %v : float = prim::Loop(%n, %b, %f, %f, %f)\n  block0(%i : int, %r.1 : float, %s.1 : float, %v.1 : float):\n    %t : float = aten::neg.float(%r.1)\n    %w : float = aten::neg.float(%v.1)\n    -> (%b, %t, %w, %w)"
    after = "%s : float, %v : float = prim::Loop(%n, %b, %f, %f)\n  block0(%i : int, %s.1 : float, %v.1 : float):\n    %w : float = aten::neg.float(%v.1)\n    -> (%b, %w, %w)"
    case(dce.run, before, "%s", (after, "%s"))


def test_dead_value_round_two_loops():
    """Each loop uses what the other one carries, and nobody else does."""
    case(
        dce.run,
        "%r : float = prim::Loop(%n, %b, %f)\n  block0(%i : int, %r.1 : float):\n    prim::Print(%i)\n    %s : float = prim::Loop(%n, %b, %r.1)\n      block0(%j : int, %s.1 : float):\n        prim::Print(%j)\n        %t : float = aten::neg.float(%s.1)\n        -> (%b, %t)\n    -> (%b, %s)",
        "%f",
        (
            "prim::Loop(%n, %b)\n  block0(%i : int):\n    prim::Print(%i)\n    prim::Loop(%n, %b)\n      block0(%j : int):\n        prim::Print(%j)\n        -> (%b)\n    -> (%b)",
            "%f",
        ),
    )


def test_dead_loop_with_trips():
    case(
        dce.run,
        "%r : float = prim::Loop(%n, %b, %f)\n  block0(%i : int, %r.1 : float):\n    %t : float = aten::neg.float(%r.1)\n    -> (%b, %t)",
        "%f",
        ("", "%f"),
    )


def test_shapes_prove_that_tensors_may_go():
    lines = "%a : Tensor(float32, [n, 3]) = aten::neg(%x)\n%c : Tensor = aten::mul.Tensor(%a, %x)\n%d : Tensor = aten::t(%x)"
    header = "%x : Tensor({}, [n, 3])"
    check(
        dce.run,
        body(lines, header.format("float32"), "%x"),
        body("", header.format("float32"), "%x"),
    )
    check(
        dce.run,
        body(lines, header.format("bool"), "%x"),
        body(lines.split("\n%d")[0], header.format("bool"), "%x"),
    )


# ---- the pipeline ----


def test_functions_that_are_called_often():
    """Passes run on them before they are inlined; each comes behind those that it calls."""
    module = jit.CompilationUnit(
        "def inner(x: Tensor) -> Tensor:\n    return x + 0\n"
        "def block(x: Tensor) -> Tensor:\n    return inner(inner(x)) * 2\n"
        "def once(x: Tensor) -> Tensor:\n    return block(x)\n"
        "def down(n: int) -> int:\n    return down(n - 1) + 1 if n > 0 else 0\n"
        "def f(x: Tensor) -> Tensor:\n    return block(once(x)) + down(5)\n"
    )
    graph = module.f.graph
    often = inlining.called_often(graph)
    assert [each.name.rpartition(".")[2] for each in often] == ["inner", "block", "down"]
    best = pipeline.optimize(module.f.function, 2)
    assert sum(node.kind == "prim::CallFunction" for node in best.graph.walk()) == 1
    x = ones(2)
    assert [module.f(x).tolist() for _ in range(3)] == [[9.0, 9.0]] * 3


def test_pipeline_leaves_the_function_alone():
    function = ir.Function(
        "f",
        read(
            body("%q : int = prim::CallFunction[function=@quarter](%n)", INPUTS, "%q"),
            None,
            FUNCTIONS,
        ),
        ["x", "n", "b", "f", "o"],
        {"n": 3},
    )
    text = str(function.graph)
    assert pipeline.optimize(function, 0).graph is not function.graph
    assert str(pipeline.optimize(function, 0).graph) == text
    seen = []
    best = pipeline.optimize(function, 2, observer=lambda each, _: seen.append(each.name))
    assert str(function.graph) == text and best.defaults == {"n": 3} and best.name == "f"
    assert "inlining" in seen and "CallFunction" not in str(best.graph)
    assert best.graph.inputs[0].type == ir.TENSOR
    names = [each.name for each in pipeline.PASSES]
    assert len(set(names)) == len(names)
