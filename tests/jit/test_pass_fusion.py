"""Tile fusion: which operators become a group, and which stay apart."""

from __future__ import annotations

import weft
from jit.passes import check
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


def test_gradients_of_an_input_keep_their_order():
    check(fusion.run, INTERLEAVED, None)
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
        options=Options(gradients=False),
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
    out = f(x, y)
    assert out.grad_fn.name() == "FusedBackward"
    assert out.grad_fn.next_functions[0][0].name() == "AccumulateGrad"
