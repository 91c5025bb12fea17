"""Scheduling: what moves down to its first use, and what stays."""

from __future__ import annotations

import pytest

import weft
from jit.allocations import use_of
from jit.passes import check
from jit.test_pass_memory import compiled
from weft.jit.passes import scheduling
from weft.jit.passes.options import INFERENCE, Options

TWO = """
graph(%x : Tensor, %v : Tensor, %w : Tensor):
  %none : NoneType = prim::Constant[value=None]()
  {0}%a : Tensor = aten::mm(%x, %v)
  {1}%b : Tensor = aten::mm(%x, %w)
  {2}%c : Tensor = aten::sum(%a, %none)
  {3}%d : Tensor = aten::sum(%b, %none)
  return (%c, %d)
"""


def two(order: str) -> str:
    lines = TWO.splitlines()
    named = {line.strip()[1:2]: line[3:] for line in lines if line.startswith("  {")}
    named = {line.split("%")[1][0]: "  " + line.split("}")[1] for line in lines if "{" in line}
    head, tail = lines[1:3], lines[-1:]
    return "\n".join([*head, *(named[name] for name in order), *tail]) + "\n"


def test_a_tensor_is_made_where_it_is_needed():
    check(scheduling.run, two("abcd"), two("acbd"), options=INFERENCE)
    check(scheduling.run, two("acbd"), None, options=INFERENCE)


def test_with_gradients_the_order_stays():
    check(scheduling.run, two("abcd"), None, options=Options())


@pytest.mark.parametrize(
    "lines",
    [
        # %t dies where %b is made: below, both would be there.
        "%t : Tensor = aten::mm(%x, %w)\n%b : Tensor = aten::mm(%t, %t)\n%a : Tensor = aten::neg(%x)\n%r : Tensor = aten::mm(%a, %b)",
        # Somebody writes, or prints, in between.
        "%b : Tensor = aten::mm(%x, %w)\n%a : Tensor = aten::neg_(%w)\n%r : Tensor = aten::mm(%a, %b)",
        "%b : Tensor = aten::mm(%x, %w)\nprim::Print(%x)\n%r : Tensor = aten::neg(%b)",
    ],
)
def test_what_stays(lines):
    body = "\n".join(f"  {line}" for line in lines.splitlines())
    text = f"graph(%x : Tensor, %w : Tensor):\n{body}\n  return (%r)\n"
    check(scheduling.run, text, None, options=INFERENCE)


def test_a_view_goes_along_and_keeps_nothing_alive():
    check(
        scheduling.run,
        """
        graph(%x : Tensor, %w : Tensor):
          %t : Tensor = aten::t(%w)
          %b : Tensor = aten::mm(%x, %t)
          %v : Tensor = aten::t(%b)
          %a : Tensor = aten::neg(%x)
          %c : Tensor = aten::mm(%a, %a)
          %r : Tensor = aten::mm(%c, %v)
          return (%r)
        """,
        """
        graph(%x : Tensor, %w : Tensor):
          %a : Tensor = aten::neg(%x)
          %c : Tensor = aten::mm(%a, %a)
          %t : Tensor = aten::t(%w)
          %b : Tensor = aten::mm(%x, %t)
          %v : Tensor = aten::t(%b)
          %r : Tensor = aten::mm(%c, %v)
          return (%r)
        """,
        options=INFERENCE,
    )


def test_not_into_loops_and_branches():
    check(
        scheduling.run,
        """
        graph(%x : Tensor, %n : int):
          %yes : bool = prim::Constant[value=True]()
          %b : Tensor = aten::mm(%x, %x)
          %a : Tensor = aten::neg(%x)
          %e : Tensor = aten::mm(%a, %a)
          %r : Tensor = prim::Loop(%n, %yes, %e)
            block0(%i : int, %c : Tensor):
              %d : Tensor = aten::mm(%c, %b)
              -> (%yes, %d)
          return (%r)
        """,
        """
        graph(%x : Tensor, %n : int):
          %yes : bool = prim::Constant[value=True]()
          %a : Tensor = aten::neg(%x)
          %e : Tensor = aten::mm(%a, %a)
          %b : Tensor = aten::mm(%x, %x)
          %r : Tensor = prim::Loop(%n, %yes, %e)
            block0(%i : int, %c : Tensor):
              %d : Tensor = aten::mm(%c, %b)
              -> (%yes, %d)
          return (%r)
        """,
        options=INFERENCE,
    )


def test_the_peak_of_two_branches_halves():
    source = """
def branches(x, v, w):
    a = torch.mm(x, v)
    b = torch.mm(x, w)
    c = torch.mm(v, a)
    d = torch.mm(v, b)
    return c, d
"""
    x, v = weft.randn(512, 4), weft.randn(4, 512)
    run = compiled(source)
    whole = 512 * 512 * 4
    y = weft.mm(x, v)
    assert all(weft.equal(got, weft.mm(v, y)) for got in run(x, v, v))
    assert use_of(run, x, v, v, least=whole).peak == whole
    recorded = compiled(source, options=Options())
    assert use_of(recorded, x, v, v, least=whole).peak == 2 * whole
