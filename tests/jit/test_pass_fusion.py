"""Tile fusion: which operators become a group, and which stay apart."""

from __future__ import annotations

import pytest

import weft
from jit.passes import check, read
from weft.jit import ir, schemas
from weft.jit.passes import fusion
from weft.jit.passes.options import Options


def test_operators_that_feed_each_other_become_a_group():
    check(
        fusion.run,
        """
        graph(%x : Tensor, %y : Tensor):
          %1 : Tensor = aten::mul.Tensor(%x, %y)
          %2 : Tensor = aten::sigmoid(%1)
          %3 : str = prim::Constant[value="none"]()
          %4 : Tensor = aten::gelu(%2, %3)
          return (%4)
        """,
        """
        graph(%x : Tensor, %y : Tensor):
          %5 : Tensor = weft::Fused(%x, %y)
            block0(%a : Tensor, %b : Tensor):
              %6 : Tensor = aten::mul.Tensor(%a, %b)
              %7 : Tensor = aten::sigmoid(%6)
              %8 : str = prim::Constant[value="none"]()
              %9 : Tensor = aten::gelu(%7, %8)
              -> (%9)
          return (%5)
        """,
    )


def test_numbers_of_the_call_come_in_and_several_results_go_out():
    check(
        fusion.run,
        """
        graph(%x : Tensor, %n : int):
          %1 : Tensor = aten::mul.Scalar(%x, %n)
          %2 : Tensor = aten::exp(%1)
          %3 : Tensor = aten::mm(%2, %1)
          return (%3)
        """,
        """
        graph(%x : Tensor, %n : int):
          %4 : Tensor, %5 : Tensor = weft::Fused(%x, %n)
            block0(%a : Tensor, %m : int):
              %6 : Tensor = aten::mul.Scalar(%a, %m)
              %7 : Tensor = aten::exp(%6)
              -> (%6, %7)
          %3 : Tensor = aten::mm(%5, %4)
          return (%3)
        """,
    )


def test_groups_do_not_move_over_writes():
    check(
        fusion.run,
        """
        graph(%x : Tensor, %y : Tensor):
          %1 : Tensor = aten::exp(%x)
          %2 : Tensor = aten::neg_(%y)
          %3 : Tensor = aten::neg(%1)
          return (%3, %2)
        """,
        None,
    )


INTERLEAVED = """
graph(%x : Tensor, %w : Tensor):
  %1 : Tensor = aten::exp(%x)
  %2 : Tensor = aten::mm(%x, %w)
  %3 : Tensor = aten::mul.Tensor(%1, %x)
  return (%3, %2)
"""


@pytest.mark.parametrize("gradients", [False, True])
def test_groups_move_over_other_readers_of_their_inputs(gradients):
    check(
        fusion.run,
        INTERLEAVED,
        """
        graph(%x : Tensor, %w : Tensor):
          %2 : Tensor = aten::mm(%x, %w)
          %4 : Tensor = weft::Fused(%x)
            block0(%a : Tensor):
              %5 : Tensor = aten::exp(%a)
              %6 : Tensor = aten::mul.Tensor(%5, %a)
              -> (%6)
          return (%4, %2)
        """,
        options=Options(gradients=gradients),
    )


def test_a_gated_cell_is_one_group():
    """What reads the same state in between comes along."""
    from weft.jit.ir import parse_ir

    graph = parse_ir(
        """graph(%x : Tensor, %s : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::mul.Scalar(%s, %1)
  %keep : Tensor = aten::sigmoid(%2)
  %3 : Tensor = aten::sub.Tensor(%x, %s, %1)
  %new : Tensor = aten::tanh(%3)
  %4 : Tensor = aten::mul.Tensor(%keep, %s)
  %5 : Tensor = aten::rsub.Scalar(%keep, %1, %1)
  %6 : Tensor = aten::mul.Tensor(%5, %new)
  %7 : Tensor = aten::add.Tensor(%4, %6, %1)
  return (%7)
"""
    )
    assert fusion.run(graph)
    (group,) = graph.block.nodes
    assert group.kind == "weft::Fused"


def test_nested_blocks_fuse_on_their_own():
    check(
        fusion.run,
        """
        graph(%x : Tensor, %c : bool):
          %0 : Tensor = aten::sin(%x)
          %1 : Tensor = prim::If(%c)
            block0():
              %2 : Tensor = aten::exp(%0)
              %3 : Tensor = aten::neg(%2)
              -> (%3)
            block1():
              -> (%x)
          return (%1)
        """,
        """
        graph(%x : Tensor, %c : bool):
          %0 : Tensor = aten::sin(%x)
          %1 : Tensor = prim::If(%c)
            block0():
              %4 : Tensor = weft::Fused(%0)
                block0(%a : Tensor):
                  %5 : Tensor = aten::exp(%a)
                  %6 : Tensor = aten::neg(%5)
                  -> (%6)
              -> (%4)
            block1():
              -> (%x)
          return (%1)
        """,
    )


def test_a_long_chain_is_cut_where_a_group_ends():
    lines = ["graph(%v0 : Tensor):"]
    lines += [f"  %v{i + 1} : Tensor = aten::sin(%v{i})" for i in range(100)]
    from weft.jit.ir import parse_ir

    graph = parse_ir("\n".join([*lines, "  return (%v100)", ""]))
    assert fusion.run(graph)
    sizes = [len(node.blocks[0].nodes) for node in graph.block.nodes]
    assert sum(sizes) == 100
    assert max(sizes) <= 48
    assert len(sizes) == 3


def test_scripted_training_takes_one_node_for_a_group():
    @weft.jit.script
    def f(x, y):
        return weft.sigmoid(x * y + 1) * weft.tanh(x - y) + x * 0.5

    x, y = weft.randn(50, requires_grad=True), weft.randn(50, requires_grad=True)
    f(x, y)  # the very first call is not optimised
    out = f(x, y)
    assert out.grad_fn.name() == "FusedBackward"
    assert out.grad_fn.next_functions[0][0].name() == "torch::autograd::AccumulateGrad"


# ---- row operators ----


def test_a_row_operator_joins_what_feeds_it_and_what_it_feeds():
    """Where the whole does not apply, its pointwise parts are groups still."""
    check(
        fusion.run,
        """
        graph(%x : Tensor, %s : float, %m : Tensor):
          %one : int = prim::Constant[value=1]()
          %last : int = prim::Constant[value=-1]()
          %none : NoneType = prim::Constant[value=None]()
          %a : Tensor = aten::mul.Scalar(%x, %s)
          %b : Tensor = aten::add.Tensor(%a, %m, %one)
          %c : Tensor = aten::softmax.int(%b, %last, %none)
          %d : Tensor = aten::neg(%c)
          return (%d)
        """,
        """
        graph(%x : Tensor, %s : float, %m : Tensor):
          %r : Tensor = weft::Fused(%x, %s, %m)
            block0(%x.1 : Tensor, %s.1 : float, %m.1 : Tensor):
              %b : Tensor = weft::Fused(%x.1, %s.1, %m.1)
                block0(%x.2 : Tensor, %s.2 : float, %m.2 : Tensor):
                  %a : Tensor = aten::mul.Scalar(%x.2, %s.2)
                  %one : int = prim::Constant[value=1]()
                  %b.2 : Tensor = aten::add.Tensor(%a, %m.2, %one)
                  -> (%b.2)
              %last : int = prim::Constant[value=-1]()
              %none : NoneType = prim::Constant[value=None]()
              %c : Tensor = aten::softmax.int(%b, %last, %none)
              %d : Tensor = aten::neg(%c)
              -> (%d)
          return (%r)
        """,
    )


def test_lists_of_constants_come_along():
    check(
        fusion.run,
        """
        graph(%x : Tensor, %y : Tensor):
          %last : int = prim::Constant[value=-1]()
          %keep : bool = prim::Constant[value=True]()
          %none : NoneType = prim::Constant[value=None]()
          %dims : int[] = prim::ListConstruct(%last)
          %a : Tensor = aten::mul.Tensor(%x, %y)
          %b : Tensor = aten::mean.dim(%a, %dims, %keep, %none)
          return (%b)
        """,
        """
        graph(%x : Tensor, %y : Tensor):
          %r : Tensor = weft::Fused(%x, %y)
            block0(%x.1 : Tensor, %y.1 : Tensor):
              %a : Tensor = aten::mul.Tensor(%x.1, %y.1)
              %last : int = prim::Constant[value=-1]()
              %dims : int[] = prim::ListConstruct(%last)
              %keep : bool = prim::Constant[value=True]()
              %none : NoneType = prim::Constant[value=None]()
              %b : Tensor = aten::mean.dim(%a, %dims, %keep, %none)
              -> (%b)
          return (%r)
        """,
    )


UNFUSED_ROWS = {
    "row operators alone": """
          %b : Tensor = aten::softmax.int(%x, %last, %none)
          %r : Tensor = aten::log_softmax.int(%b, %last, %none)""",
    "a dimension that the call knows": """
          %a : Tensor = aten::neg(%x)
          %r : Tensor = aten::softmax.int(%a, %n, %none)""",
    "a dtype": """
          %a : Tensor = aten::neg(%x)
          %r : Tensor = aten::softmax.int(%a, %last, %double)""",
    "dimension -2": """
          %two : int = prim::Constant[value=-2]()
          %a : Tensor = aten::neg(%x)
          %r : Tensor = aten::softmax.int(%a, %two, %none)""",
    "a list that is written to": """
          %dims : int[] = prim::ListConstruct(%last)
          %w : int[] = aten::append.t(%dims, %n)
          %a : Tensor = aten::neg(%x)
          %r : Tensor = aten::sum.dim_IntList(%a, %dims, %keep, %none)""",
    "two dimensions": """
          %dims : int[] = prim::ListConstruct(%last, %last)
          %a : Tensor = aten::neg(%x)
          %r : Tensor = aten::sum.dim_IntList(%a, %dims, %keep, %none)""",
    "what comes behind a sum over all": """
          %a : Tensor = aten::sum(%x, %none)
          %r : Tensor = aten::neg(%a)""",
}


@pytest.mark.parametrize("lines", UNFUSED_ROWS.values(), ids=UNFUSED_ROWS)
def test_row_operators_that_do_not_join(lines):
    header = """
        graph(%x : Tensor, %n : int):
          %last : int = prim::Constant[value=-1]()
          %keep : bool = prim::Constant[value=False]()
          %none : NoneType = prim::Constant[value=None]()
          %double : dtype = prim::Constant[value=torch.float64]()"""
    check(fusion.run, header + lines + "\n          return (%r)\n", None)


def test_a_row_without_its_dimension_meets_no_elements():
    """x * y summed over rows, and added to z: the sum is in the group, the addition is not."""
    graph = check_groups(
        """
        graph(%x : Tensor, %y : Tensor, %z : Tensor):
          %one : int = prim::Constant[value=1]()
          %last : int = prim::Constant[value=-1]()
          %keep : bool = prim::Constant[value=False]()
          %none : NoneType = prim::Constant[value=None]()
          %dims : int[] = prim::ListConstruct(%last)
          %a : Tensor = aten::mul.Tensor(%x, %y)
          %b : Tensor = aten::sum.dim_IntList(%a, %dims, %keep, %none)
          %c : Tensor = aten::sqrt(%b)
          %d : Tensor = aten::add.Tensor(%c, %z, %one)
          return (%d)
        """
    )
    assert [node.kind for node in graph.block.nodes] == [
        "prim::Constant",
        "weft::Fused",
        "aten::add.Tensor",
    ]


def check_groups(text):
    graph = read(text)
    assert fusion.run(graph)
    ir.verify(graph, schemas.of)
    return graph
