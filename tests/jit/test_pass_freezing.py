"""Freezing, and folding of batch_norm, on graphs of modules."""

from types import SimpleNamespace

import pytest

import weft
import weft.nn.functional as F
from jit.evaluate import ScriptError, evaluate
from jit.passes import read
from weft.jit import ir, pipeline, schemas
from weft.jit.passes import conv_bn, dce, freezing, norm_affine

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


# ---- batch_norm before a convolution ----


NORM_CONV = """
graph(%x : Tensor, %w : Tensor, %b : Tensor?, %g : Tensor?, %h : Tensor?, %m : Tensor, %v : Tensor):
  %no : bool = prim::Constant[value=False]()
  %eps : float = prim::Constant[value=1e-05]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %four : int = prim::Constant[value=4]()
  %zero : int = prim::Constant[value=0]()
  %ones : int[] = prim::ListConstruct(%one, %one)
  %padding : int[] = prim::ListConstruct(%zero, %{padding})
  %rank : int = aten::dim(%x)
  %other : bool = aten::ne.int(%rank, %four)
  prim::If(%other)
    block0():
      %text : str = prim::Constant[value="expected 4D input"]()
      prim::RaiseException[exception="ValueError"](%text)
      -> ()
    block1():
      -> ()
  %n : Tensor = aten::batch_norm(%x, %g, %h, %m, %v, %no, %eps, %eps, %no)
  %d : int = aten::dim(%n)
  %y : Tensor = aten::conv2d(%n, %w, %b, %ones, %padding, %ones, %two)
  return (%y, %d)
"""


def norm_conv(padding="zero", affine=True, bias=True):
    """With all tensors but the image known."""
    weft.manual_seed(1)
    graph = read(NORM_CONV.replace("{padding}", padding))
    known = [
        weft.randn(6, 2, 3, 3),
        weft.randn(6) if bias else None,
        *([weft.randn(4), weft.randn(4)] if affine else [None, None]),
        weft.randn(4),
        weft.rand(4) + 0.5,
    ]
    for value, tensor in zip(graph.inputs[1:], known):
        with graph.inserting(at_start=graph.block):
            value.replace_all_uses_with(graph.constant(tensor, value.type))
    return graph, known


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_goes_into_convolutions_behind_it(bias, affine):
    graph, known = norm_conv("zero", affine, bias)
    x = weft.randn(2, 4, 9, 8)
    expected = evaluate(graph, x, *known)
    assert norm_affine.run(graph)
    ir.verify(graph, schemas.of)
    assert "batch_norm" not in str(graph) and "addcmul" not in str(graph)
    got = evaluate(graph, x, *known)
    assert weft.allclose(got[0], expected[0], rtol=1e-4, atol=1e-4) and got[1] == expected[1] == 4
    assert not norm_affine.run(graph)


@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_before_padding_is_written_out(affine):
    """To the last bit, and with the errors of batch_norm."""
    graph, known = norm_conv("one", affine)
    assert norm_affine.run(graph)
    ir.verify(graph, schemas.of)
    assert "batch_norm(" not in str(graph) and "addcmul" in str(graph)
    plain, _ = norm_conv("one", affine)
    for one in (graph, plain):
        (conv,) = (node for node in one.walk() if node.kind == "aten::conv2d")
        one.block.set_returns([conv.inputs[0]])
        conv.destroy()
    for dtype in (weft.float32, weft.float64):
        x = weft.randn(2, 4, 9, 8).to(dtype)
        assert weft.equal(evaluate(graph, x, *known), evaluate(plain, x, *known))
    half = weft.randn(2, 4, 9, 8).bfloat16()
    assert evaluate(graph, half, *known).dtype == weft.bfloat16
    for channels in (1, 5):
        errors = []
        for one in (graph, plain):
            with pytest.raises((RuntimeError, ScriptError), match="expected vectors") as raised:
                evaluate(one, weft.randn(2, channels, 9, 8), *known)
            errors.append(str(raised.value).splitlines()[0])
        assert errors[0] == errors[1]


def raise_otherwise(guard):
    raising, other = guard.blocks
    for node in raising.nodes:
        node.move_to_end(other)


def ask_behind_equality(guard):
    test = guard.inputs[0].node
    with guard.graph.inserting(before=guard):
        guard.set_input(0, guard.graph.emit("aten::eq.int", test.inputs, [ir.BOOL]).output)


UNTOLD_RANKS = {
    "no guard": lambda guard: guard.destroy(),
    "nothing raised": lambda guard: guard.blocks[0].last.destroy(),
    "behind the norm": lambda guard: guard.move_to_end(guard.graph.block),
    "raises otherwise": raise_otherwise,
    "raises for that rank": ask_behind_equality,
}


@pytest.mark.parametrize("name", UNTOLD_RANKS)
def test_batch_norm_whose_rank_is_not_told_before_it_stays(name):
    graph, _ = norm_conv("one")
    (guard,) = (node for node in graph.walk() if node.kind == "prim::If")
    UNTOLD_RANKS[name](guard)
    ir.verify(graph, schemas.of)
    assert not norm_affine.run(graph)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_folding_into_a_convolution_is_that_of_channels(groups):
    weft.manual_seed(0)
    x, w = weft.randn(2, 4, 5, 5).double(), weft.randn(8, 4 // groups, 2, 2).double()
    s, t, b = (weft.randn(n).double() for n in (4, 4, 8))
    normed = x * s.reshape(-1, 1, 1) + t.reshape(-1, 1, 1)
    for bias in (b, None):
        expected = F.conv2d(normed, w, bias, groups=groups)
        weight, more = norm_affine.folded(w, bias, s, t, groups)
        assert weft.allclose(F.conv2d(x, weight, more, groups=groups), expected)


def test_freezing_a_method():
    function = ir.Function("forward", read(GET.format(""), CLASSES), ["self", "x"])
    text = str(function.graph)
    frozen = pipeline.freeze(function, net())
    assert str(function.graph) == text
    assert [node.kind for node in frozen.graph.walk() if node.kind != "prim::Constant"] == [
        "weft::Fused",
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
