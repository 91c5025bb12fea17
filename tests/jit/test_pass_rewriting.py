"""Passes of rules: what they visit again, and what graphs note of changes."""

from collections import Counter

from jit.passes import read
from weft.jit import ir
from weft.jit.passes.options import DEFAULT
from weft.jit.passes.rewriting import Rewriter, alone

CHAIN = """
graph(%x : int, %b : bool):
  %a : int = aten::neg.int(%x)
  %c : int = aten::neg.int(%a)
  %d : int = aten::neg.int(%c)
  %e : int = aten::neg.int(%d)
  %f : int = prim::If(%b)
    block0():
      %g : int = aten::neg.int(%e)
      -> (%g)
    block1():
      -> (%e)
  return (%f)
"""


def names(graph: ir.Graph) -> dict[str, ir.Node]:
    return {node.output.name: node for node in graph.walk()}


def test_every_node_is_visited_once_inner_ones_first():
    graph, seen = read(CHAIN), []
    assert not alone(lambda kind: lambda node, work: bool(seen.append(node.output.name)))(graph)
    assert seen == ["a", "c", "d", "e", "g", "f"]
    assert graph.touched is None


def test_what_changed_is_visited_again_with_what_looks_at_it():
    graph, seen = read(CHAIN), Counter()

    def rule(node, work):
        seen[node.output.name] += 1
        return False

    work = Rewriter(graph, DEFAULT)
    rule_of = {"aten::neg.int": rule, "prim::If": rule}.get
    work.visit(rule_of)
    seen.clear()
    work.visit(rule_of)
    assert not seen
    # Its users, theirs, and who made what it does not use any more with those.
    names(graph)["c"].set_input(0, graph.inputs[0])
    work.visit(rule_of)
    assert set(seen) == {"a", "c", "d", "e"}
    seen.clear()
    names(graph)["g"].set_input(0, graph.inputs[0])  # in a block: the node around it
    work.visit(rule_of)
    assert {"g", "f", "e"} <= set(seen)
    work.close()


def test_a_pass_that_comes_later_sees_everything():
    graph, seen = read(CHAIN), []
    work = Rewriter(graph, DEFAULT)
    work.visit({"prim::If": lambda node, work: False}.get)
    names(graph)["a"].set_input(0, graph.inputs[0])
    work.visit({"aten::neg.int": lambda node, work: bool(seen.append(node))}.get)
    assert len(seen) == 5


def test_analyses_are_kept_until_the_graph_changes():
    graph, made = read(CHAIN), []

    def analysis(graph):
        made.append(graph.version)
        return len(made)

    assert graph.cached(analysis) == graph.cached(analysis) == 1
    names(graph)["c"].set_input(0, graph.inputs[0])
    assert graph.cached(analysis) == 2
    names(graph)["c"].output.shape = None  # tells nothing of the graph
    assert graph.cached(analysis) == 2
    names(graph)["a"].destroy()
    assert graph.cached(analysis) == 3


def test_what_a_rule_destroys_is_not_visited():
    graph, seen = read(CHAIN), []

    def rule(node, work):
        seen.append(node.output.name)
        later = names(graph).get("c")
        if later is not None:
            later.output.replace_all_uses_with(graph.inputs[0])
            later.destroy()
            return True
        return False

    assert alone({"aten::neg.int": rule}.get)(graph)
    assert seen[:2] == ["a", "d"] and "c" not in seen
