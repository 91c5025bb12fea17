"""Modules as the graphs that TensorBoard draws."""

from __future__ import annotations

from typing import Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.versions_pb2 import VersionDef

from weft.jit import trace


def graph_of(model: Any, example: Any) -> GraphDef:
    """The operators of a model's trace. Those of one kind have their attributes' names and values,
    parameters the path in the model."""
    program = trace(model, example, check_trace=False, strict=False)
    graph = program.inlined_graph.ir
    names: dict[Any, str] = {}
    nodes = []
    for value in graph.inputs:
        names[value] = f"input/{value.name}"
        nodes.append(_node(names[value], "IO Node", [], {"type": str(value.type)}))
    for node in graph.block:
        kind = node.kind.replace("::", "_")
        if node.kind == "prim::GetAttr":  # by the path: weights stand under their layer
            named = f"{names.get(node.inputs[0], 'model')}/{node.attrs['name']}"
        else:
            named = f"{kind}/{node.outputs[0].name if node.outputs else len(nodes)}"
        names.update((value, named) for value in node.outputs)
        attrs = {key: str(each) for key, each in node.attrs.items()}
        inputs = [names[value] for value in node.inputs]
        nodes.append(_node(named, node.kind, inputs, attrs))
    for index, value in enumerate(graph.returns):
        nodes.append(_node(f"output/output.{index + 1}", "IO Node", [names[value]], {}))
    return GraphDef(node=nodes, versions=VersionDef(producer=22))


def _node(name: str, kind: str, inputs: list[str], attrs: dict[str, str]) -> NodeDef:
    texts = {key: AttrValue(s=value.encode()) for key, value in attrs.items()}
    return NodeDef(name=name, op=kind, input=inputs, attr=texts)
