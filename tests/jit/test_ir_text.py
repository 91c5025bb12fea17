"""Printing and reading graphs: a fixed point, and errors that name the line."""

import doctest
import importlib
import math
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
import weft.jit.literals
from weft.jit import ir
from weft.jit.ir import Graph, ShapeInfo
from weft.jit.ir.dot import to_dot
from weft.jit.ir.html import to_html

COLOR = ir.EnumType("__torch__.Color", ir.INT, (("RED", 1), ("BLUE", 2)))
MODULE = ir.ClassType(
    "__torch__.M", {"weight": ir.Attribute(ir.TENSOR, "parameter")}, is_module=True
)
CLASSES = {"__torch__.Color": COLOR, "__torch__.M": MODULE}
TWICE = ir.Function("__torch__.twice", ir.parse_ir("graph(%x : int):\n  return (%x)\n"), ["x"])

TEXT = """graph(%self : __torch__.M, %x.1 : Tensor(float32, [2, n, *]), %n : int?):
  %1 : int = prim::Constant[value=1]()  # net.py:3:4
  %2 : dtype = prim::Constant[value=torch.float32]()
  %3 : Device = prim::Constant[value=device("cpu")]()
  %4 : __torch__.Color = prim::Constant[value=__torch__.Color.BLUE]()
  %5 : (int, float, str) = prim::Constant[value=(1, -inf, "a\\"b")]()
  %6 : int = prim::CallFunction[function=@__torch__.twice](%1)  # dir with spaces/a:b.py:12:0
  %7 : bool = prim::isinstance[types=[type(int), type(Dict(str, int[]))]](%n)
  %w : Tensor = prim::GetAttr[name="weight"](%self)
  %y : Tensor(*), %k : int[] = prim::Loop(%1, %7, %w, %5)
    block0(%i : int, %w.2 : Tensor, %k.1 : int[]):
      prim::Print(%i)
      %z : Tensor = prim::If(%7)
        block0():
          -> (%w.2)
        block1():
          -> (%x.1)
      -> (%7, %z, %k.1)
  return (%y)
"""


def test_fixed_point():
    graph = ir.parse_ir(TEXT, CLASSES, {TWICE.name: TWICE})
    assert str(graph) == TEXT
    assert str(graph.copy()) == TEXT
    assert graph.inputs[1].shape == ShapeInfo(weft.float32, (2, "n", None))
    assert graph.block.first.range.file_line_col() == ("net.py", 3, 4)


def same(a, b):
    """Equal, bit for bit where floats are concerned (any NaN is the same)."""
    if isinstance(a, float) and isinstance(b, float):
        return struct.pack("d", a) == struct.pack("d", b) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, complex) and isinstance(b, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.complex_numbers(), st.text(),
    st.sampled_from([weft.float32, weft.int64, weft.device("cpu"), weft.channels_last, weft.strided]),
    st.sampled_from([ir.EnumValue(COLOR, "RED"), ir.parse_type("Dict(str, int)"), TWICE]),
)  # fmt: skip


@given(
    st.recursive(
        SCALARS, lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner), max_leaves=5
    )
)
def test_every_value_reads_back(value):
    graph = Graph()
    graph.emit("prim::Constant", [], [ir.ANY], {"value": value})
    graph.block.set_returns([])
    text = str(graph)
    assert text.count("\n") == 3
    read = ir.parse_ir(text, CLASSES, {TWICE.name: TWICE})
    assert same(read.block.first.attrs["value"], value)
    assert str(read) == text


def test_dicts_read_back():
    graph = Graph()
    graph.emit("prim::Constant", [], [ir.ANY], {"value": {"a": 1, 2: [1.5]}})
    text = str(graph)
    assert ir.parse_ir(text).block.first.attrs["value"] == {"a": 1, 2: [1.5]}


def test_constants_know_their_type():
    graph = Graph()
    cases = [
        (weft.float32, ir.DTYPE),
        (weft.ones(2), ir.TENSOR),
        ([1, 2], ir.parse_type("int[]")),
        (True, ir.BOOL),
    ]
    cases += [
        ((1, "a"), ir.parse_type("(int, str)")),
        (weft.Generator(), ir.GENERATOR),
        (None, ir.NONE),
    ]
    for value, type_ in cases:
        assert graph.constant(value).type == type_
    for bad in (object(), [], [1, "a"]):
        with pytest.raises(TypeError, match="expected a value the program can hold"):
            graph.constant(bad)


def test_tensor_constants_are_refused():
    graph = Graph()
    graph.block.set_returns([graph.constant(weft.ones(2))])
    text = str(graph)
    assert "%1 : Tensor = prim::Constant[value=<Tensor>]()" in text
    with pytest.raises(
        ir.IRSyntaxError, match=r"line 2, column \d+: expected a value that has a text \(tensors"
    ):
        ir.parse_ir(text)


MALFORMED = [
    ("", "expected graph"),
    ("graph(%x : int):\n", "line 1, .*expected a node or 'return'"),
    ("graph(%x : int)\n  return (%x)", "line 1, .*expected ':'"),
    (
        "graph(%x : wat):\n  return (%x)",
        "line 1, column 12: expected the name of a known type, got 'wat",
    ),
    ("graph(%x : int, %x : int):\n  return (%x)", "made once, not %x again"),
    ("graph():\n  return (%x)", "line 2, column 11: expected a value that has been made, got '%x"),
    ("graph():\n  %x : int = neg(%x)\n  return ()", "expected the kind of a node"),
    ("graph():\n  %x : int = a::b(%x)\n  return ()", "line 2, .*a value that has been made"),
    ("graph():\n  %x : int = a::b[v=wat]()\n  return ()", "expected a value, got 'wat"),
    (
        "graph():\n  %x : int = a::b[v=@f]()\n  return ()",
        "expected the name of a known function, got '@f",
    ),
    ("graph():\n  %x : int = a::b[v=huh(1)]()\n  return ()", "not huh"),
    (
        'graph():\n  %x : Device = a::b[v=device("huh")]()\n  return ()',
        "line 2, .*before this device of other arguments",
    ),
    ("graph():\n  %x : int = a::b() %y\n  return ()", "expected the end of the line"),
    ("graph():\n  return ()\n  a::b()", "line 3, .*expected the end of the graph"),
    ("graph():\n  a::b()\n    block1():\n      -> ()\n  return ()", "line 3, .*expected the kind"),
    ("graph(%x : Tensor(float32, [2)):\n  return ()", "expected ']'"),
]


@pytest.mark.parametrize(("text", "message"), MALFORMED)
def test_malformed(text, message):
    with pytest.raises(
        ir.IRSyntaxError, match=message if text else "line 1, column 1: expected graph"
    ):
        ir.parse_ir(text)


def test_unknown_dtype_is_an_error_of_the_reader():
    with pytest.raises(
        ValueError, match=r"expected a dtype, layout or memory format, got torch\.float33"
    ):
        ir.parse_ir("graph():\n  %1 : dtype = prim::Constant[value=torch.float33]()\n  return ()")


@given(st.data())
def test_mutilated_text_never_crashes(data):
    text = TEXT
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 20)))
        text = (
            text[:start]
            + data.draw(st.sampled_from(["", "%", "(", "]", "int", '"', "\n", "->"]))
            + text[stop:]
        )
    try:
        graph = ir.parse_ir(text, CLASSES, {TWICE.name: TWICE})
    except ValueError:
        return
    assert str(ir.parse_ir(str(graph), CLASSES, {TWICE.name: TWICE})) == str(graph)


def test_empty_lines_and_comments_are_skipped():
    graph = ir.parse_ir(
        "# a graph\n\ngraph(%x : int):  # takes x\n\n  return (%x)  # and gives it\n"
    )
    assert str(graph) == "graph(%x : int):\n  return (%x)\n"


def test_files_with_odd_names_stay_on_one_line():
    graph = Graph()
    graph.emit("a::b", range=ir.SourceRange.at("a\nb: 1.py", 1, 2))
    graph.block.set_returns([])
    assert (
        str(ir.parse_ir(str(graph)))
        == str(graph)
        == "graph():\n  a::b()  # a b: 1.py:1:2\n  return ()\n"
    )


def test_dot_names_every_node_and_edge():
    graph = ir.parse_ir(TEXT, CLASSES, {TWICE.name: TWICE})
    text = to_dot(graph)
    assert text.count("{") == text.count("}") == 1 + 3
    edges = sum(len(n.inputs) + sum(len(b.returns) for b in n.blocks) for n in graph.walk())
    assert text.count("->") == edges + len(graph.returns)
    assert 'label="prim::GetAttr\\nname=\\"weight\\""' in text


def test_html_links_nodes_and_lines():
    source = ir.Source("def f(x):\n    return x < 1\n", "f.py", 7, indent=4)
    graph = Graph()
    x = graph.add_input(ir.TENSOR, "x")
    node = graph.emit(
        "aten::lt.Scalar", [x, graph.constant(1)], [ir.TENSOR], range=ir.SourceRange(source, 21, 26)
    )
    graph.block.set_returns(node.outputs)
    page = to_html(graph, "a <title>")
    assert "<title>a &lt;title&gt;</title>" in page
    assert page.count('data-line="0-1"') == 2 and 'title="f.py:8:15"' in page
    assert '<span class="n">   8  </span>        return x &lt; 1' in page
    assert page.count('data-value="x"') == 2 and "http" not in page
    assert "source of this graph is not known" in to_html(ir.parse_ir(str(graph)))


def test_the_example_of_the_document_is_a_graph():
    text = (Path(__file__).parents[2] / "docs" / "jit_ir.md").read_text()
    block = re.search(r"\n\n((?:    .*\n|\n)*?    graph\((?:.*\n)*?)\n##", text)
    example = "\n".join(line[4:] for line in block.group(1).split("\n"))
    graph = ir.parse_ir(example)
    ir.verify(graph)
    assert str(graph) == example


MODULES = [
    f"weft.jit.ir.{name}"
    for name in ("source", "type_classes", "relations", "type_text", "value", "literals")
]


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0 and results.failed == 0
