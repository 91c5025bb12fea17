"""The verifier: each rule is broken once, and the message names the node."""

from types import SimpleNamespace

import pytest

from weft.jit import ir
from weft.jit.ir import FLOAT, INT, TENSOR, Graph, Use

POINT = ir.ClassType("Point", {"x": ir.Attribute(INT)})
TWICE = ir.Function("twice", ir.parse_ir("graph(%x : int):\n  return (%x)\n"), ["x"])
POINT.methods["twice"] = ir.Function(
    "Point.twice",
    ir.parse_ir("graph(%self : Point, %x : int):\n  return (%x)\n", {"Point": POINT}),
    ["self", "x"],
)
COLOR = ir.EnumType("Color", INT, (("RED", 1),))
CLASSES = {"Point": POINT, "Color": COLOR}

HEADER = "graph(%x : Tensor, %n : int, %c : bool, %f : float, %l : int[], %t : (int, Tensor), %p : Point, %s : str, %o : int?, %u : Future(int), %e : Color):\n"
# What stands between the header and `return ()`; the message, or "" where nothing is wrong.
NODES = [
    ("%1 : int = prim::Constant[value=1]()", ""),
    ("%1 : int? = prim::Constant[value=None]()", ""),
    ("%1 : (int[], str) = prim::Constant[value=([1], \"a\")]()", ""),
    ("%1 : float[] = prim::Constant[value=[]]()", ""),
    ("%1 : int = prim::Constant[value=1.5]()", "expected a value of type int, got 1.5"),
    ("%1 : int[] = prim::Constant[value=[1, 2.0]]()", r"expected a value of type int\[\]"),
    ("%1 : int = prim::Constant()", "expected an attribute value, got None"),
    ("%1 : int = prim::Constant[value=1](%n)", "expected 0 inputs, got 1"),
    ("%1 : int, %2 : int = prim::Constant[value=1]()", "expected 1 outputs, got 2"),
    ("%1 : Tensor = prim::If(%c)\n block0():\n -> (%x)\n block1():\n -> (%x)", ""),
    ("%1 : int? = prim::If(%c)\n block0():\n -> (%n)\n block1():\n -> (%o)", ""),
    ("%1 : Tensor = prim::If(%n)\n block0():\n -> (%x)\n block1():\n -> (%x)", "expected bool among the conditions"),
    ("%1 : Tensor = prim::If(%c)\n block0():\n -> (%x)", "expected 2 blocks, got 1"),
    ("%1 : Tensor = prim::If(%c)\n block0():\n -> (%x)\n block1():\n -> (%n)", "expected Tensor among the returns of block1"),
    ("%1 : Tensor = prim::If(%c)\n block0():\n -> (%x)\n block1():\n -> ()", "expected 1 returns of block1, got 0"),
    ("%1 : Tensor = prim::If(%c)\n block0(%i : int):\n -> (%x)\n block1():\n -> (%x)", "expected block0 without parameters"),
    ("%1 : int = prim::Loop(%n, %c, %n)\n block0(%i : int, %k : int):\n -> (%c, %i)", ""),
    ("%1 : int = prim::Loop(%n, %c, %f)\n block0(%i : int, %k : int):\n -> (%c, %i)", "expected int among the inputs, got %f"),
    ("%1 : int = prim::Loop(%n, %c, %n)\n block0(%i : int, %k : float):\n -> (%c, %i)", r"expected parameters \[int, int\]"),
    ("%1 : int = prim::Loop(%n, %c, %n)\n block0(%i : int, %k : int):\n -> (%n, %i)", "expected bool among the returns"),
    ("%1 : int = prim::Loop(%n)\n block0(%i : int):\n -> (%c)", "expected a trip count and a condition"),
    ("%1 : (int, Tensor) = prim::TupleConstruct(%n, %x)", ""),
    ("%1 : (int, Tensor) = prim::TupleConstruct(%x, %n)", "expected int among the inputs, got %x : Tensor"),
    ("%1 : int[] = prim::TupleConstruct(%n)", "expected a tuple as output"),
    ("%1 : int, %2 : Tensor = prim::TupleUnpack(%t)", ""),
    ("%1 : int = prim::TupleUnpack(%t)", "expected 2 outputs, got 1"),
    ("%1 : int, %2 : Tensor = prim::TupleUnpack(%l)", "expected a tuple, got %l"),
    ("%1 : Tensor = prim::TupleIndex[index=1](%t)", ""),
    ("%1 : Tensor = prim::TupleIndex[index=-1](%t)", ""),
    ("%1 : Tensor = prim::TupleIndex[index=2](%t)", "expected an index below 2, got 2"),
    ("%1 : Tensor = prim::TupleIndex[index=0](%t)", "can hold int, got %1 : Tensor"),
    ("%1 : int[] = prim::ListConstruct(%n, %n)", ""),
    ("%1 : int?[] = prim::ListConstruct(%n, %o)", ""),
    ("%1 : int[] = prim::ListConstruct(%f)", "expected int among the inputs"),
    ("%1 : int, %2 : int = prim::ListUnpack(%l)", ""),
    ("%1 : int, %2 : float = prim::ListUnpack(%l)", "can hold int, got %2"),
    ("%1 : Dict(str, int) = prim::DictConstruct(%s, %n)", ""),
    ("%1 : Dict(str, int) = prim::DictConstruct(%s)", "expected pairs"),
    ("%1 : Dict(str, int) = prim::DictConstruct(%n, %s)", "expected str among"),
    ("%1 : Point = prim::CreateObject()", ""),
    ("%1 : int = prim::CreateObject()", "expected an object of a class"),
    ("%1 : int = prim::GetAttr[name=\"x\"](%p)", ""),
    ("%1 : int = prim::GetAttr[name=\"y\"](%p)", "expected an attribute of Point, got 'y'"),
    ("%1 : str = prim::GetAttr[name=\"x\"](%p)", "can hold int"),
    ("prim::SetAttr[name=\"x\"](%p, %n)", ""),
    ("prim::SetAttr[name=\"x\"](%p, %f)", "expected int among the values"),
    ("%1 : int = prim::CallFunction[function=@twice](%n)", ""),
    ("%1 : int = prim::CallFunction[function=@twice](%f)", "expected int among the arguments"),
    ("%1 : int = prim::CallFunction[function=@twice]()", "expected 1 arguments, got 0"),
    ("%1 : Future(int) = prim::fork[function=@twice](%n)", ""),
    ("%1 : int = prim::fork[function=@twice](%n)", r"can hold Future\(int\)"),
    ("%1 : int = aten::wait(%u)", ""),
    ("%1 : int = aten::wait(%n)", "expected a future, got %n"),
    ("%1 : int = prim::CallMethod[name=\"twice\"](%p, %n)", ""),
    ("%1 : int = prim::CallMethod[name=\"thrice\"](%p, %n)", "expected a method of Point, got 'thrice'"),
    ("%1 : int = prim::CallMethod[name=\"twice\"](%p)", "expected 1 arguments, got 0"),
    ("%1 : int = prim::CallMethod[name=\"twice\"](%n, %n)", "expected an object to call twice of, got int"),
    ("prim::RaiseException[exception=\"ValueError\"](%s)", ""),
    ("prim::RaiseException[exception=\"ValueError\"](%n)", "expected str among the messages"),
    ("prim::Print(%n, %s)", ""),
    ("%1 : int = prim::Print(%n)", "expected 0 outputs"),
    ("%1 : Tensor = prim::Uninitialized()", ""),
    ("%1 : int = prim::unchecked_cast(%o)", ""),
    ("%1 : bool = prim::isinstance[types=[type(int)]](%o)", ""),
    ("%1 : bool = prim::isinstance[types=[1]](%o)", "expected types, got"),
    ("%1 : str = prim::EnumName(%e)", ""),
    ("%1 : int = prim::EnumValue(%e)", ""),
    ("%1 : str = prim::EnumName(%n)", "expected a member of an enum"),
]  # fmt: skip


def graph_of(body):
    lines = "\n".join("  " + line.strip() for line in body.split("\n"))
    return ir.parse_ir(f"{HEADER}{lines}\n  return ()\n", CLASSES, {"twice": TWICE})


@pytest.mark.parametrize(("body", "message"), NODES)
def test_rules_of_nodes(body, message):
    graph = graph_of(body)
    if not message:
        ir.verify(graph)
        return
    with pytest.raises(ir.VerifyError, match=message) as caught:
        ir.verify(graph)
    assert str(next(iter(graph.block))) in str(caught.value)  # the message shows the node


def argument(name, text):
    return SimpleNamespace(name=name, type=ir.parse_type(text))


ADD = SimpleNamespace(
    schema=SimpleNamespace(
        args=[argument("self", "Tensor"), argument("other", "Tensor"), argument("alpha", "Scalar")],
        returns=[argument("", "Tensor")],
    )
)
APPEND = SimpleNamespace(
    schema=SimpleNamespace(
        args=[argument("self", "t[]"), argument("el", "t")], returns=[argument("", "t[]")]
    )
)
OPERATORS = {"aten::add.Tensor": ADD, "aten::append.t": APPEND}.__getitem__
SCHEMAS = [
    ("%1 : Tensor = aten::add.Tensor(%x, %x, %n)", ""),
    ("%1 : Tensor = aten::add.Tensor(%x, %x)", "expected 3 inputs, got 2"),
    (
        "%1 : Tensor = aten::add.Tensor(%x, %n, %n)",
        "expected Tensor for argument other, got %n : int",
    ),
    ("%1 : int = aten::add.Tensor(%x, %x, %n)", "expected an output of type Tensor, got %1 : int"),
    ("aten::add.Tensor(%x, %x, %n)", "expected 1 outputs, got 0"),
    ("%1 : int[] = aten::append.t(%l, %n)", ""),
    ("%1 : int[] = aten::append.t(%l, %f)", "expected int for argument el, got %f : float"),
    ("%1 : Tensor = aten::wat(%x)", "unknown operator aten::wat"),
]


@pytest.mark.parametrize(("body", "message"), SCHEMAS)
def test_operators_are_checked_against_schemas(body, message):
    graph = graph_of(body)
    ir.verify(graph)
    if not message:
        ir.verify(graph, OPERATORS)
        return
    with pytest.raises(ir.VerifyError, match=message):
        ir.verify(graph, OPERATORS)


def small():
    graph = Graph()
    x = graph.add_input(TENSOR, "x")
    a = graph.emit("aten::neg", [x], [TENSOR]).output
    b = graph.emit("aten::neg", [a], [TENSOR]).output
    graph.block.set_returns([b])
    return graph, x, a.node, b.node


def use_before_definition():
    graph, _, a, b = small()
    b.move_before(a)
    return graph, "expected %1 to be made before its use|expected %1 to be of this graph"


def use_across_branches():
    graph, _x, _, _ = small()
    branch = graph.emit("prim::If", [graph.constant(True)])
    first, second = branch.add_block(), branch.add_block()
    inner = ir.clone_node(graph.block.first, first, {}).output
    first.set_returns([inner])
    second.set_returns([inner])
    branch.add_output(TENSOR)
    return graph, "made before its use"


def value_of_another_graph():
    graph, _, a, _ = small()
    a.set_input(0, Graph().add_input(TENSOR, "y"))
    return graph, "expected %y to be of this graph"


def stale_use():
    graph, x, _a, b = small()
    x._uses[Use(b, 0)] = None
    return graph, "list of uses"


def lost_use():
    graph, x, a, _ = small()
    del x._uses[Use(a, 0)]
    return graph, "list of uses"


def broken_chain():
    graph, _, a, _b = small()
    a._next = None
    return graph, "chain of nodes is broken"


def doubled_name():
    graph, _, a, b = small()
    b.output._name = a.output.name
    return graph, "name %1 is given twice"


def wrong_range():
    graph, _, a, _ = small()
    a.range = ir.SourceRange(ir.Source("short"), 2, 9)
    return graph, "expected a range within the source, got 2 to 9 of 5 characters"


def open_type():
    graph, _, a, _ = small()
    a.output.type = ir.parse_type("t[]")
    return graph, "expected a type without variables"


@pytest.mark.parametrize(
    "breaks",
    [use_before_definition, use_across_branches, value_of_another_graph, stale_use, lost_use]
    + [broken_chain, doubled_name, wrong_range, open_type],
)
def test_rules_of_structure(breaks):
    graph, message = breaks()
    with pytest.raises(ir.VerifyError, match=message):
        ir.verify(graph)


def test_fused_group():
    text = "graph(%x : Tensor):\n  %y : Tensor = weft::Fused[group=0](%x)\n    block0(%a : Tensor):\n      %b : Tensor = aten::neg(%a)\n      -> (%b)\n  return (%y)\n"
    graph = ir.parse_ir(text)
    ir.verify(graph)
    graph.block.first.blocks[0].params[0].type = FLOAT
    with pytest.raises(ir.VerifyError, match="expected float among the inputs"):
        ir.verify(graph)
