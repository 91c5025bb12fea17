"""Graphs: exact uses, order, names, copies; random edits keep them true."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.jit import ir
from weft.jit.ir import BOOL, INT, TENSOR, Graph, Source, SourceRange, Use


def chain(count):
    """x, then `count` negations in a row."""
    graph = Graph()
    value = graph.add_input(TENSOR, "x")
    for _ in range(count):
        value = graph.emit("aten::neg", [value], [TENSOR]).output
    graph.block.set_returns([value])
    return graph


def test_uses_follow_edits():
    graph = chain(3)
    a, b, c = graph.block
    assert a.output.uses == [Use(b, 0)]
    b.set_input(0, graph.inputs[0])
    assert a.output.uses == [] and graph.inputs[0].uses == [Use(a, 0), Use(b, 0)]
    b.add_input(a.output)
    b.set_inputs((a.output, *b.inputs))
    assert a.output.uses == [Use(b, 0), Use(b, 2)]
    b.replace_input(a.output, graph.inputs[0])
    assert len(b.inputs) == 3 and not a.output.has_uses
    b.remove_input(0)
    b.remove_input(-1)
    a.destroy()
    assert c.output.uses == [Use(graph.block, 0)]
    c.output.replace_all_uses_with(b.output)
    assert graph.returns == (b.output,)
    ir.verify(graph)


def test_destroying_a_used_node_is_refused():
    graph = chain(2)
    with pytest.raises(ValueError, match="destroy: expected no uses of aten::neg, got %1 used"):
        graph.block.first.destroy()


def test_iteration_while_the_block_changes():
    graph = chain(5)
    seen = []
    for node in graph.block:
        seen.append(node)
        node.output.replace_all_uses_with(node.inputs[0])
        following = node.next
        node.destroy()
        if following is not None and following.next is not None:
            following.output.replace_all_uses_with(following.inputs[0])
            following.destroy()
    assert len(seen) == 3 and len(graph.block) == 0
    assert graph.returns == (graph.inputs[0],)


def test_order_within_and_across_blocks():
    graph = ir.parse_ir(
        """graph(%c : bool, %x : Tensor):
  %a : Tensor = aten::neg(%x)
  %z : Tensor = prim::If(%c)
    block0():
      %b : Tensor = aten::neg(%a)
      -> (%b)
    block1():
      -> (%x)
  return (%z)
"""
    )
    a, branch = graph.block
    (b,) = branch.blocks[0]
    assert a.is_before(branch) and a.is_before(b) and not branch.is_before(a)
    with pytest.raises(ValueError, match="not within the block"):
        b.is_before(a)
    b.move_before(branch)
    assert [n.output.name for n in graph.block] == ["a", "b", "z"]
    assert b.is_before(branch) and not b.is_before(a)
    assert b.owner is graph.block and len(branch.blocks[0]) == 0
    ir.verify(graph)


def test_names_are_unique_and_clean():
    graph = Graph()
    names = []
    for wanted in ["x", "x", "x.1", "a b", "x", "7", ""]:
        value = graph.add_input(INT)
        value.name = wanted
        names.append(value.name)
    assert len(set(names)) == len(names)
    assert names[:4] == ["x", "x.1", "x.2", "a_b"]


def test_copy_has_the_same_text_and_shares_nothing():
    graph = chain(2)
    branch = graph.emit("prim::If", [graph.constant(True)])
    for value in (graph.inputs[0], graph.returns[0]):
        branch.add_block().set_returns([value])
    graph.block.set_returns([branch.add_output(TENSOR, "z")])
    copy = graph.copy()
    assert str(copy) == str(graph)
    assert not set(copy.walk()) & set(graph.walk())
    ir.verify(copy)
    copy.block.last.blocks[0].set_returns([copy.returns[0].node.blocks[1].returns[0]])
    ir.verify(graph)
    assert str(copy) != str(graph)


def test_insertion_points_nest():
    graph = chain(2)
    first, second = graph.block
    with graph.inserting(before=second):
        one = graph.emit("a::one")
        with graph.inserting(after=first):
            graph.emit("a::two")
            graph.emit("a::three")
        graph.emit("a::four")
    with graph.inserting(at_start=graph.block):
        graph.emit("a::zero")
    graph.emit("a::end")
    kinds = [
        "a::zero",
        "aten::neg",
        "a::two",
        "a::three",
        "a::one",
        "a::four",
        "aten::neg",
        "a::end",
    ]
    assert [node.kind for node in graph.block] == kinds
    with pytest.raises(ValueError, match="is in a block already"):
        one.insert_before(second)
    with pytest.raises(ValueError, match="belongs to another graph"):
        Graph().block.append(graph.create("a::alien"))
    with pytest.raises(ValueError, match="expected one place, got 0"), graph.inserting():
        pass


def test_default_range():
    graph = Graph()
    here = SourceRange.at("f.py", 1, 2)
    with graph.at_range(here):
        assert graph.emit("a::one").range is here
    assert graph.emit("a::two").range is None


@given(st.data())
def test_random_edits_keep_the_graph_consistent(data):
    graph = chain(data.draw(st.integers(1, 5)))
    for _ in range(data.draw(st.integers(1, 15))):
        nodes = list(graph.walk())
        node = data.draw(st.sampled_from(nodes))
        action = data.draw(st.sampled_from(["nest", "bypass", "copy", "insert", "forward"]))
        if action == "nest" and node.kind == "aten::neg":
            with graph.inserting(before=node):
                branch = graph.emit("prim::If", [graph.constant(True)])
            inner, other = branch.add_block(), branch.add_block()
            other.set_returns([node.inputs[0]])
            node.output.replace_all_uses_with(branch.add_output(TENSOR))
            inner.set_returns([ir.clone_node(node, inner, {}).output])
            node.destroy()
        elif action == "bypass" and node.kind == "aten::neg":
            node.replace_outputs_with(node.inputs)
            node.destroy()
        elif action == "copy":
            graph = graph.copy()
        elif action == "insert" and node.outputs and node.output.type == TENSOR:
            with graph.inserting(after=node):
                graph.emit("aten::neg", [node.output], [TENSOR])
        elif (
            action == "forward"
            and node.prev is not None
            and not set(node.inputs) & set(node.prev.outputs)
        ):
            inside = {v for inner in node.walk() for v in inner.inputs}
            returned = {v for block in node.blocks for v in block.returns}
            if not (inside | returned) & set(node.prev.outputs):
                node.move_before(node.prev)
        ir.verify(graph)
        if not list(graph.walk()):
            break
    text = str(graph)
    assert str(ir.parse_ir(text)) == text


def test_values_know_where_they_are():
    graph = chain(1)
    x, y = graph.inputs[0], graph.returns[0]
    assert (x.is_param, x.index, x.owner) == (True, 0, graph.block)
    assert (y.is_param, y.index, y.owner) == (False, 0, graph.block)
    constant = graph.constant(3)
    assert constant.is_constant and constant.constant == 3 and constant.type == INT
    with pytest.raises(ValueError, match="expected a constant, got %x"):
        _ = x.constant
    with pytest.raises(ValueError, match="has 2 outputs"):
        _ = graph.create("a::b", [], [INT, BOOL]).output


def test_parameters_and_outputs_in_use_stay():
    graph = chain(1)
    with pytest.raises(ValueError, match="without uses, got %x"):
        graph.block.remove_param(0)
    with pytest.raises(ValueError, match="without uses"):
        graph.block.first.remove_output(0)


def test_source_ranges():
    source = Source("def f(x):\n    y = x +\\\n      1\n    return y\n", "f.py", 10, indent=4)
    place = SourceRange(source, 18, 30)
    assert place.file_line_col() == ("f.py", 11, 12)
    assert place.highlight() == (
        '  File "f.py", line 11\n'
        "    def f(x):\n"
        "        y = x +\\\n"
        "            ~~~~ <--- HERE\n"
        "          1"
    )
    end = SourceRange(source, len(source.text), len(source.text))
    assert end.file_line_col() == ("f.py", 14, 4) and "~ <--- HERE" in end.highlight()
