"""Graphs under PyTorch's names, as scripts that walk them use."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft import Tensor

SOURCE = """
def f(x, n: int):
    y = x.relu()
    for i in range(n):
        y = y + x * i
        if i > 2:
            y = y.sigmoid()
    return y, [y, x]
"""


def graph_of(library: Any) -> Any:
    return library.jit.CompilationUnit(SOURCE).f.graph


def test_nodes_inputs_and_outputs() -> None:
    graph = graph_of(weft)
    assert [value.debugName() for value in graph.inputs()] == ["x", "n"]
    assert [str(value.type()) for value in graph.inputs()] == ["Tensor", "int"]
    relu = graph.findNode("aten::relu")
    assert relu.input().debugName() == "x" and relu.output().debugName() == "y"
    assert relu.output().node() == relu and relu.inputsSize() == relu.outputsSize() == 1
    assert relu.output().uses()[0].user.kind() == "prim::Loop"
    assert ":3:8" in relu.sourceRange() and relu.schema() == "relu(Tensor self) -> Tensor"
    (result,) = graph.outputs()
    assert result.node().kind() == "prim::TupleConstruct"
    constant = graph.findNode("prim::Constant")
    assert constant.output().toIValue() is constant.ival("value")
    assert constant.hasAttribute("value") and constant.attributeNames() == ["value"]
    with pytest.raises(RuntimeError, match=r"expected an attribute of prim::Constant, one of"):
        constant.i("other")
    with pytest.raises(RuntimeError, match=r"Node.input: expected one input, got 0"):
        constant.input()


def test_find_looks_into_blocks() -> None:
    graph = graph_of(weft)
    assert graph.findNode("aten::sigmoid") is not None
    assert graph.findNode("aten::sigmoid", recurse=False) is None
    assert len(graph.findAllNodes("aten::add")) == 1 and graph.findAllNodes("aten::div") == []
    (body,) = graph.findNode("prim::Loop").blocks()
    assert next(body.inputs()).debugName() == "i" and body.findNode("prim::If") is not None


def test_what_the_ir_has_is_there_too() -> None:
    graph = graph_of(weft)
    assert str(graph) == str(graph.ir) and "aten::relu" in graph.to_dot()
    assert [value.name for value in graph.inputs] == ["x", "n"]
    assert any(node.kind == "aten::relu" for node in graph.walk())
    with pytest.raises(AttributeError):
        graph.no_such_name  # noqa: B018


@pytest.mark.parity
def test_pytorch_finds_the_same() -> None:
    torch = pytest.importorskip("torch")
    mine, theirs = graph_of(weft), graph_of(torch)
    for kind in ("aten::relu", "aten::add", "aten::mul", "aten::sigmoid", "prim::Loop", "prim::If"):
        found = [len(graph.findAllNodes(kind)) for graph in (mine, theirs)]
        assert found[0] == found[1] == 1, kind
    assert [[v.debugName() for v in g.inputs()][-1].split(".")[0] for g in (mine, theirs)] == [
        "n"
    ] * 2
    named = [next(g.findNode("aten::relu").outputs()).debugName() for g in (mine, theirs)]
    assert [each.partition(".")[0] for each in named] == ["y", "y"]


def test_code_with_constants() -> None:
    weights = weft.tensor([1.0, 2.0])

    def scaled(x: Tensor) -> Tensor:
        return x * weights + weights

    text, constants = weft.jit.script(scaled).code_with_constants
    assert "CONSTANTS.c0" in text and "c1" not in text
    assert constants.c0 is weights and constants.const_mapping == {"c0": weights}

    class Holder(weft.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1

    text, constants = weft.jit.script(Holder()).code_with_constants
    assert "def forward(self,\n    x: Tensor) -> Tensor:" in text and constants.const_mapping == {}
