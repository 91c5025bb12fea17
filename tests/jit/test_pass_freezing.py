"""Freezing, and folding of batch_norm, on graphs of modules."""

from types import SimpleNamespace

import pytest

import weft
from jit.evaluate import evaluate
from jit.passes import read
from weft.jit import ir, pipeline, schemas
from weft.jit.passes import conv_bn, dce, freezing

LAYER = ir.ClassType(
    "Layer",
    {
        "weight": ir.Attribute(ir.TENSOR, "parameter"),
        "bias": ir.Attribute(ir.optional_of(ir.TENSOR), "parameter"),
    },
    is_module=True,
)
NET = ir.ClassType(
    "Net",
    {
        "layer": ir.Attribute(LAYER, "module"),
        "count": ir.Attribute(ir.INT),
        "sizes": ir.Attribute(ir.ListType(ir.INT)),
        "state": ir.Attribute(ir.TENSOR, "buffer"),
        "training": ir.Attribute(ir.BOOL),
    },
    is_module=True,
)
CLASSES = {"Layer": LAYER, "Net": NET}


def net():
    weft.manual_seed(0)
    layer = SimpleNamespace(weight=weft.randn(4, 3, requires_grad=True), bias=None)
    return SimpleNamespace(layer=layer, count=2, sizes=[1, 2], state=weft.zeros(4), training=False)


GET = """graph(%self : Net, %x : Tensor):
  %one : int = prim::Constant[value=1]()
  %layer : Layer = prim::GetAttr[name="layer"](%self)
  %w : Tensor = prim::GetAttr[name="weight"](%layer)
  %b : Tensor? = prim::GetAttr[name="bias"](%layer)
  %n : int = prim::GetAttr[name="count"](%self)
  %y : Tensor = aten::linear(%x, %w, %b)
  %z : Tensor = aten::add.Scalar(%y, %n, %one)
{}  return (%z)
"""


def test_attributes_become_constants():
    graph, module = read(GET.format(""), CLASSES), net()
    x = weft.randn(5, 3)
    expected = evaluate(graph, module, x)
    assert freezing.run(graph, module)
    ir.verify(graph, schemas.of)
    dce.run(graph)
    assert "GetAttr" not in str(graph) and not graph.inputs[0].has_uses
    result = evaluate(graph, None, x)
    assert bool((result == expected).all()) and not result.requires_grad
    assert not freezing.run(graph, module)


@pytest.mark.parametrize(
    ("lines", "stays"),
    [
        ('  prim::SetAttr[name="count"](%self, %one)\n', "count"),
        (
            '  %s : Tensor = prim::GetAttr[name="state"](%self)\n  %t : Tensor = aten::add_.Scalar(%s, %one, %one)\n',
            "state",
        ),
        (
            '  %s : int[] = prim::GetAttr[name="sizes"](%self)\n  %t : int[] = aten::append.t(%s, %one)\n',
            "sizes",
        ),
        (
            '  %s : int[] = prim::GetAttr[name="sizes"](%self)\n  %t : int[][] = prim::ListConstruct(%s)\n',
            "sizes",
        ),
    ],
)
def test_what_is_changed_stays(lines, stays):
    graph = read(GET.format(lines), CLASSES)
    freezing.run(graph, net())
    ir.verify(graph, schemas.of)
    assert f'name="{stays}"' in str(graph)


def test_preserved_attributes_stay():
    graph = read(GET.format(""), CLASSES)
    freezing.run(graph, net(), preserved=["layer.weight"])
    kept = [node.attrs["name"] for node in graph.walk() if node.kind == "prim::GetAttr"]
    assert kept == ["layer", "weight"]


def test_what_calls_may_reach_stays():
    body = ir.parse_ir("graph(%l : Layer, %n : int):\n  return (%n)\n", CLASSES)
    function = ir.Function("f", body, ["l", "n"])
    graph = read(
        """graph(%self : Net):
  %n : int = prim::GetAttr[name="count"](%self)
  %layer : Layer = prim::GetAttr[name="layer"](%self)
  %w : Tensor = prim::GetAttr[name="weight"](%layer)
  %m : int = prim::CallFunction[function=@f](%layer, %n)
  return (%m, %w)
""",
        CLASSES,
        {"f": function},
    )
    assert freezing.run(graph, net())
    kept = [node.attrs["name"] for node in graph.walk() if node.kind == "prim::GetAttr"]
    assert kept == ["layer", "weight"]
    assert freezing.paths(graph, net()) == {"layer", "layer.weight"}


def conv_graph(bias=True, affine=True, training=False):
    weft.manual_seed(1)
    graph = ir.Graph()
    x = graph.add_input(ir.TENSOR, "x")
    optional = ir.optional_of(ir.TENSOR)

    def tensor(*shape, there=True, positive=False):
        value = weft.rand(*shape) + 0.5 if positive else weft.randn(*shape)
        return graph.constant(value if there else None, optional)

    pairs = [graph.constant([n, n]) for n in (1, 1, 1)]
    weight = graph.constant(weft.randn(4, 3, 3, 3))
    conv = graph.emit(
        "aten::conv2d", [x, weight, tensor(4, there=bias), *pairs, graph.constant(1)], [ir.TENSOR]
    )
    stats = [tensor(4, there=affine), tensor(4, there=affine), tensor(4), tensor(4, positive=True)]
    rest = [graph.constant(v) for v in (training, 0.1, 1e-5, True)]
    norm = graph.emit("aten::batch_norm", [conv.output, *stats, *rest], [ir.TENSOR])
    graph.block.set_returns(norm.outputs)
    return graph


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_is_folded(bias, affine):
    graph, x = conv_graph(bias, affine), weft.randn(2, 3, 5, 5)
    expected = evaluate(graph, x)
    assert conv_bn.run(graph)
    ir.verify(graph, schemas.of)
    assert "batch_norm" not in str(graph)
    assert weft.allclose(evaluate(graph, x), expected, rtol=1e-4, atol=1e-5)
    assert not conv_bn.run(graph)


def test_batch_norm_that_is_not_folded():
    assert not conv_bn.run(conv_graph(training=True))
    graph = conv_graph()
    conv = next(node for node in graph.walk() if node.kind == "aten::conv2d")
    graph.block.add_return(conv.output)  # somebody wants the convolution itself
    assert not conv_bn.run(graph)
    graph = conv_graph()
    conv = next(node for node in graph.walk() if node.kind == "aten::conv2d")
    graph.block.add_return(graph.emit("aten::dim", [conv.output], [ir.INT]).output)
    assert conv_bn.run(graph)  # but its rank is that of the folded one


def test_freezing_a_method():
    function = ir.Function("forward", read(GET.format(""), CLASSES), ["self", "x"])
    text = str(function.graph)
    frozen = pipeline.freeze(function, net())
    assert str(function.graph) == text
    assert [node.kind for node in frozen.graph.walk() if node.kind != "prim::Constant"] == [
        "aten::linear",
        "aten::add.Scalar",
    ]
    assert frozen.arg_names == ["self", "x"]


def test_freezing_a_scripted_module():
    weft.manual_seed(0)

    class Net(weft.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = weft.nn.Conv2d(3, 4, 3), weft.nn.BatchNorm2d(4)

        def forward(self, x):
            return weft.relu(self.norm(self.conv(x)))

    module = Net()
    module(weft.randn(8, 3, 6, 6))  # statistics that are not 0 and 1
    scripted = weft.jit.script(module.eval())
    frozen = pipeline.freeze(scripted._jit_info.type.methods["forward"], scripted)
    text = str(frozen.graph)
    assert "batch_norm" not in text and "GetAttr" not in text
    x = weft.randn(2, 3, 6, 6)
    assert weft.allclose(evaluate(frozen.graph, None, x), module(x), rtol=1e-4, atol=1e-5)
    training = pipeline.freeze(
        weft.jit.script(module.train())._jit_info.type.methods["forward"], module
    )
    assert "batch_norm" in str(training.graph) and 'name="running_mean"' in str(training.graph)
