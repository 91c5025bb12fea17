"""Tile fusion of products and convolutions with what stands behind them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import weft
import weft.nn.functional as F
from jit.evaluate import evaluate
from jit.passes import canonical, check, read
from weft import jit, nn
from weft.jit import ir, pipeline, schemas
from weft.jit.codegen import tiles
from weft.jit.passes import fusion
from weft.jit.passes.options import DEFAULT, INFERENCE

LINEAR = """
graph(%x : Tensor, %w : Tensor, %b : Tensor?):
  %1 : Tensor = aten::linear(%x, %w, %b)
  %2 : str = prim::Constant[value="none"]()
  %3 : Tensor = aten::gelu(%1, %2)
  return (%3)
"""


def test_a_product_is_the_head_of_what_stands_behind_it():
    check(
        fusion.run,
        LINEAR,
        """
        graph(%x : Tensor, %w : Tensor, %b : Tensor?):
          %4 : Tensor = weft::Fused(%x, %w, %b)
            block0(%a : Tensor, %c : Tensor, %d : Tensor?):
              %5 : Tensor = aten::linear(%a, %c, %d)
              %6 : str = prim::Constant[value="none"]()
              %7 : Tensor = aten::gelu(%5, %6)
              -> (%7)
          return (%4)
        """,
        options=INFERENCE,
    )


def test_heads_where_gradients_may_be_recorded():
    """They make no operand there: it is saved. And convolutions are none."""
    graph = read(LINEAR)
    assert fusion.run(graph, DEFAULT)
    check(
        fusion.run,
        """
        graph(%x : Tensor, %w : Tensor):
          %1 : Tensor = aten::relu(%x)
          %2 : Tensor = aten::mm(%1, %w)
          return (%2)
        """,
        None,
        options=DEFAULT,
    )
    check(
        fusion.run,
        """
        graph(%x : Tensor, %w : Tensor):
          %none : Tensor? = prim::Constant[value=None]()
          %one : int = prim::Constant[value=1]()
          %zero : int = prim::Constant[value=0]()
          %ones : int[] = prim::ListConstruct(%one, %one)
          %zeros : int[] = prim::ListConstruct(%zero, %zero)
          %1 : Tensor = aten::conv2d(%x, %w, %none, %ones, %zeros, %ones, %one)
          %2 : Tensor = aten::relu(%1)
          return (%2)
        """,
        None,
        options=DEFAULT,
    )


def test_heads_stay_where_gradients_add_up_in_their_order():
    """x is read before the product, by it, and behind it: a group would record the product first."""
    text = """
    graph(%x : Tensor, %w : Tensor):
      %one : int = prim::Constant[value=1]()
      %1 : Tensor = aten::relu(%x)
      %2 : Tensor = aten::mm(%x, %w)
      %3 : Tensor = aten::add.Tensor(%1, %2, %one)
      %4 : Tensor = aten::mul.Tensor(%3, %x)
      return (%4)
    """
    graph = read(text)
    fusion.run(graph, DEFAULT)
    kinds = [node.kind for node in graph.block.nodes if node.kind != "prim::Constant"]
    assert "aten::mm" in kinds
    graph = read(text)
    fusion.run(graph, INFERENCE)
    assert [n.kind for n in graph.block.nodes] == [tiles.FUSED]


def test_a_product_alone_stays_alone():
    check(
        fusion.run,
        """
        graph(%x : Tensor, %w : Tensor):
          %1 : Tensor = aten::t(%x)
          %2 : Tensor = aten::mm(%1, %w)
          %3 : Tensor = aten::mm(%2, %w)
          return (%3)
        """,
        None,
        options=INFERENCE,
    )


def test_what_makes_the_operand_of_a_product_stands_before_it():
    """A group of its own within, as what stands behind."""
    check(
        fusion.run,
        """
        graph(%x : Tensor, %s : Tensor, %w : Tensor):
          %1 : Tensor = aten::relu(%x)
          %2 : Tensor = aten::mul.Tensor(%1, %s)
          %3 : Tensor = aten::mm(%2, %w)
          %4 : Tensor = aten::tanh(%3)
          return (%4)
        """,
        """
        graph(%x : Tensor, %s : Tensor, %w : Tensor):
          %1 : Tensor = weft::Fused(%x, %s, %w)
            block0(%a : Tensor, %b : Tensor, %c : Tensor):
              %2 : Tensor = weft::Fused(%a, %b)
                block0(%d : Tensor, %e : Tensor):
                  %3 : Tensor = aten::relu(%d)
                  %4 : Tensor = aten::mul.Tensor(%3, %e)
                  -> (%4)
              %5 : Tensor = aten::mm(%2, %c)
              %6 : Tensor = aten::tanh(%5)
              -> (%6)
          return (%1)
        """,
        options=INFERENCE,
    )


def test_what_makes_the_right_operand_of_a_product_stands_before_it():
    check(
        fusion.run,
        """
        graph(%x : Tensor, %y : Tensor):
          %1 : Tensor = aten::exp(%y)
          %2 : Tensor = aten::mm(%x, %1)
          return (%2)
        """,
        """
        graph(%x : Tensor, %y : Tensor):
          %2 : Tensor = weft::Fused(%y, %x)
            block0(%a : Tensor, %b : Tensor):
              %3 : Tensor = aten::exp(%a)
              %4 : Tensor = aten::mm(%b, %3)
              -> (%4)
          return (%2)
        """,
        options=INFERENCE,
    )


def test_of_two_operands_the_left_one_is_made_in_the_group():
    check(
        fusion.run,
        """
        graph(%x : Tensor, %y : Tensor):
          %1 : Tensor = aten::exp(%y)
          %2 : Tensor = aten::tanh(%x)
          %3 : Tensor = aten::mm(%2, %1)
          return (%3)
        """,
        """
        graph(%x : Tensor, %y : Tensor):
          %1 : Tensor = aten::exp(%y)
          %2 : Tensor = weft::Fused(%x, %1)
            block0(%a : Tensor, %b : Tensor):
              %3 : Tensor = aten::tanh(%a)
              %4 : Tensor = aten::mm(%3, %b)
              -> (%4)
          return (%2)
        """,
        options=INFERENCE,
    )


def test_row_operators_may_make_an_operand():
    assert _groups("""
    graph(%x : Tensor, %w : Tensor):
      %size : int = prim::Constant[value=64]()
      %sizes : int[] = prim::ListConstruct(%size)
      %none : Tensor? = prim::Constant[value=None]()
      %eps : float = prim::Constant[value=1e-05]()
      %yes : bool = prim::Constant[value=True]()
      %1 : Tensor = aten::layer_norm(%x, %sizes, %none, %none, %eps, %yes)
      %2 : Tensor = aten::linear(%1, %w, %none)
      return (%2)
    """) == [["aten::layer_norm", "aten::linear"]]


@pytest.mark.parametrize(
    "lines",
    [
        "%2 : Tensor = aten::mm(%1, %w)\n%3 : Tensor = aten::t(%1)",  # somebody else reads it
        "%2 : Tensor = aten::mm(%1, %1)\n%3 : Tensor = aten::t(%2)",  # it is the other operand too
        "%2 : Tensor = aten::linear(%w, %w, %1)\n%3 : Tensor = aten::t(%2)",  # it is no factor
        "%3 : Tensor = aten::neg_(%x)\n%2 : Tensor = aten::mm(%1, %w)",  # a write in between
    ],
)
def test_what_others_read_stands_before_no_product(lines):
    check(
        fusion.run,
        f"""
        graph(%x : Tensor, %w : Tensor):
          %1 : Tensor = aten::relu(%x)
          {lines}
          return (%2, %3)
        """,
        None,
        options=INFERENCE,
    )


def test_a_head_that_does_not_stay_keeps_what_makes_its_operand():
    inner = _groups("""
    graph(%x : Tensor, %h : Tensor, %w : Tensor):
      %one : int = prim::Constant[value=1]()
      %1 : Tensor = aten::relu(%x)
      %2 : Tensor = aten::mm(%1, %w)
      %3 : Tensor = aten::tanh(%h)
      %4 : Tensor = aten::mm(%3, %w)
      %5 : Tensor = aten::add.Tensor(%2, %4, %one)
      return (%5)
    """)
    assert inner == [["aten::relu", "aten::mm"], ["aten::tanh", "aten::mm", "aten::add.Tensor"]]


def test_the_rest_is_a_group_of_its_own_within():
    """It serves where the head's group does not apply. The product may leave the group too."""
    check(
        fusion.run,
        """
        graph(%x : Tensor, %w : Tensor, %r : Tensor):
          %one : int = prim::Constant[value=1]()
          %1 : Tensor = aten::mm(%x, %w)
          %2 : Tensor = aten::add.Tensor(%1, %r, %one)
          %3 : Tensor = aten::relu(%2)
          return (%1, %3)
        """,
        """
        graph(%x : Tensor, %w : Tensor, %r : Tensor):
          %1 : Tensor, %2 : Tensor = weft::Fused(%x, %w, %r)
            block0(%a : Tensor, %b : Tensor, %c : Tensor):
              %3 : Tensor = aten::mm(%a, %b)
              %4 : Tensor = weft::Fused(%3, %c)
                block0(%d : Tensor, %e : Tensor):
                  %one : int = prim::Constant[value=1]()
                  %5 : Tensor = aten::add.Tensor(%d, %e, %one)
                  %6 : Tensor = aten::relu(%5)
                  -> (%6)
              -> (%3, %4)
          return (%1, %2)
        """,
        options=INFERENCE,
    )


def test_of_two_products_the_last_is_the_head():
    check(
        fusion.run,
        """
        graph(%x : Tensor, %h : Tensor, %w : Tensor):
          %one : int = prim::Constant[value=1]()
          %1 : Tensor = aten::mm(%x, %w)
          %2 : Tensor = aten::mm(%h, %w)
          %3 : Tensor = aten::add.Tensor(%1, %2, %one)
          return (%3)
        """,
        """
        graph(%x : Tensor, %h : Tensor, %w : Tensor):
          %1 : Tensor = aten::mm(%x, %w)
          %2 : Tensor = weft::Fused(%h, %w, %1)
            block0(%a : Tensor, %b : Tensor, %c : Tensor):
              %3 : Tensor = aten::mm(%a, %b)
              %one : int = prim::Constant[value=1]()
              %4 : Tensor = aten::add.Tensor(%c, %3, %one)
              -> (%4)
          return (%2)
        """,
        options=INFERENCE,
    )


ATTENTION = """
graph(%q : Tensor, %k : Tensor, %v : Tensor):
  %scale : float = prim::Constant[value=0.125]()
  %dim : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant[value=None]()
  %1 : Tensor = aten::matmul(%q, %k)
  %2 : Tensor = aten::mul.Scalar(%1, %scale)
  %3 : Tensor = aten::softmax.int(%2, %dim, %none)
  LAST
"""


def _groups(text):
    graph = read(text)
    assert fusion.run(graph, INFERENCE)
    made = [node for node in graph.block.nodes if node.kind == tiles.FUSED]
    return [[n.kind for n in fused.walk() if "aten" in n.kind] for fused in made]


def test_row_operators_stand_behind_a_head():
    kinds = ["aten::matmul", "aten::mul.Scalar", "aten::softmax.int"]
    assert _groups(ATTENTION.replace("LAST", "return (%3)")) == [kinds]


def test_of_two_heads_the_one_that_reads_rows_has_them():
    last = "%4 : Tensor = aten::matmul(%3, %v)\n  return (%4)"
    kinds = ["aten::mul.Scalar", "aten::softmax.int", "aten::matmul"]
    assert _groups(ATTENTION.replace("LAST", last)) == [kinds]
    pointwise = ATTENTION.replace("LAST", last).replace("softmax.int(%2, %dim, %none)", "tanh(%2)")
    assert _groups(pointwise) == [["aten::matmul", "aten::mul.Scalar", "aten::tanh"]]


@pytest.mark.parametrize(
    "line",
    [
        "%2 : Tensor = aten::neg_(%x)",  # a write
        "%2 : Tensor = aten::t(%1)",  # reads the product
    ],
)
def test_heads_do_not_move_over_what_ends_a_group(line):
    check(
        fusion.run,
        f"""
        graph(%x : Tensor, %w : Tensor):
          %1 : Tensor = aten::mm(%x, %w)
          {line}
          %3 : Tensor = aten::relu(%1)
          return (%3, %2)
        """,
        None,
        options=INFERENCE,
    )


CONV = ir.ClassType(
    "Conv",
    {
        "weight": ir.Attribute(ir.TENSOR, "parameter"),
        "bias": ir.Attribute(ir.optional_of(ir.TENSOR), "parameter"),
    },
    is_module=True,
)
NORM = ir.ClassType(
    "Norm",
    {name: ir.Attribute(ir.TENSOR, "buffer") for name in ("scale", "shift", "mean", "var")},
    is_module=True,
)
BLOCK = ir.ClassType(
    "Block",
    {"conv": ir.Attribute(CONV, "module"), "norm": ir.Attribute(NORM, "module")},
    is_module=True,
)
FROZEN = """
graph(%self : Block, %x : Tensor):
  %conv : Conv = prim::GetAttr[name="conv"](%self)
  %w : Tensor = prim::GetAttr[name="weight"](%conv)
  %b : Tensor? = prim::GetAttr[name="bias"](%conv)
  %norm : Norm = prim::GetAttr[name="norm"](%self)
  %scale : Tensor = prim::GetAttr[name="scale"](%norm)
  %shift : Tensor = prim::GetAttr[name="shift"](%norm)
  %mean : Tensor = prim::GetAttr[name="mean"](%norm)
  %var : Tensor = prim::GetAttr[name="var"](%norm)
  %one : int = prim::Constant[value=1]()
  %no : bool = prim::Constant[value=False]()
  %rate : float = prim::Constant[value=0.1]()
  %eps : float = prim::Constant[value=1e-05]()
  %pair : int[] = prim::ListConstruct(%one, %one)
  %1 : Tensor = aten::conv2d(%x, %w, %b, %pair, %pair, %pair, %one)
  %2 : Tensor = aten::batch_norm(%1, %scale, %shift, %mean, %var, %no, %rate, %eps, %no)
  %3 : Tensor = aten::add.Tensor(%2, %x, %one)
  %4 : Tensor = aten::relu(%3)
  return (%4)
"""


def test_freezing_ends_in_a_convolution_with_all_behind_it():
    """Text in, text out: the norm is in the weights, addition and activation in the epilogue."""
    weft.manual_seed(0)
    norm = SimpleNamespace(
        scale=weft.rand(20), shift=weft.randn(20), mean=weft.randn(20), var=weft.rand(20)
    )
    module = SimpleNamespace(
        conv=SimpleNamespace(weight=weft.randn(20, 20, 3, 3), bias=None), norm=norm
    )
    graph = read(FROZEN, {"Conv": CONV, "Norm": NORM, "Block": BLOCK})
    frozen = pipeline.freeze(ir.Function("forward", graph, ["self", "x"]), module).graph
    ir.verify(frozen, schemas.of)
    (fused,) = (node for node in frozen.block.nodes if node.kind == tiles.FUSED)
    assert [v.is_constant for v in fused.inputs] == [False, True, True]
    expected = """
    graph(%self : Block, %x : Tensor, %w : Tensor, %b : Tensor?):
      %y : Tensor = weft::Fused(%x, %w, %b)
        block0(%a : Tensor, %c : Tensor, %d : Tensor?):
          %i : int = prim::Constant[value=1]()
          %j : int = prim::Constant[value=1]()
          %pair : int[] = prim::ListConstruct(%i, %j)
          %one : int = prim::Constant[value=1]()
          %1 : Tensor = aten::conv2d(%a, %c, %d, %pair, %pair, %pair, %one)
          %2 : Tensor = weft::Fused(%1, %a)
            block0(%e : Tensor, %f : Tensor):
              %unit : int = prim::Constant[value=1]()
              %3 : Tensor = aten::add.Tensor(%e, %f, %unit)
              %4 : Tensor = aten::relu(%3)
              -> (%4)
          -> (%2)
      return (%y)
    """
    plain = frozen.copy()
    (copy,) = (node for node in plain.block.nodes if node.kind == tiles.FUSED)
    for place, name in ((1, "w"), (2, "b")):
        constant = copy.inputs[place]
        copy.set_input(place, plain.add_input(constant.type, name))
        constant.node.destroy()
    assert canonical(plain) == canonical(
        read(expected, {"Block": BLOCK, "Conv": CONV, "Norm": NORM})
    )
    x = weft.randn(2, 20, 30, 30)
    wanted, got = (evaluate(g, module, x) for g in (graph, frozen))
    assert weft.allclose(got, wanted, atol=1e-4)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(20, 20, 3, padding=1)
        self.norm = nn.BatchNorm2d(20)
        self.head = nn.Linear(30, 150)

    def forward(self, x):
        return F.gelu(self.head(weft.relu(self.norm(self.conv(x)) + x)))


def test_modules_run_as_groups():
    weft.manual_seed(0)
    module = Block().eval()
    scripted = jit.script(module)
    x = weft.randn(2, 20, 40, 30)
    with weft.no_grad():
        expected = module(x)
        for _ in range(3):
            assert weft.equal(scripted(x), expected)
    assert weft.equal(scripted(x), expected)  # gradients are recorded


def test_specs_say_the_head_first():
    graph = read(LINEAR)
    fusion.run(graph, INFERENCE)
    (fused,) = (node for node in graph.block.nodes if node.kind == tiles.FUSED)
    spec = tiles.spec(fused)
    assert tiles.spec(fused, gradients=False).backward is None
    assert spec.backward is not None  # of the rest, to the product behind the inputs
    assert [edge[0] for edge in spec.backward.edges] == [3]
    op, tensors, numbers = spec.steps[0]
    assert (op.id, tensors) == ("linear", ())
    assert [tuple(one) for one in numbers] == [("input", 0), ("input", 1), ("input", 2)]
    assert spec.steps[1][1][0] == ("step", 0)
