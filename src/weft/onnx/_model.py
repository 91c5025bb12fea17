"""The ONNX model of a graph that was written: only what its outputs need, with the names that were
asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import onnx
from onnx import AttributeProto, ModelProto, NodeProto, helper

from weft._runtime.public import weft
from weft.onnx._symbols import Symbol, element, proto_of, type_of

LIMIT = (1 << 31) - (1 << 24)  # bytes of weights in one file


def model_of(
    exporter: Any, output_axes: Mapping[str, Mapping[int, str]], options: Mapping[str, Any]
) -> ModelProto:
    """A model, checked by ONNX's own checker."""
    graph, inputs, parameters = exporter.graph, exporter.inputs, set(exporter.names.values())
    export_params, custom_opsets = options["export_params"], options["custom_opsets"] or {}
    nodes = graph.blocks[0].nodes
    given = {each.name for each in inputs}
    outputs = _separate(graph, exporter.outputs, given)
    renamed = dict(zip((each.name for each in outputs), options["output_names"] or ()))
    nodes = _needed(nodes, {each.name for each in outputs})
    _rename(nodes, renamed)
    used = _used(nodes) | {renamed.get(each.name, each.name) for each in outputs}
    held = {name: tensor for name, tensor in graph.initializers.items() if name in used}
    infos = [helper.make_value_info(each.name, type_of(each)) for each in inputs]
    for name, tensor in held.items():
        if options["keep_initializers_as_inputs"] or (not export_params and name in parameters):
            infos.append(
                helper.make_tensor_value_info(name, element(tensor.dtype), list(tensor.shape))
            )
    kept = {n: t for n, t in held.items() if export_params or n not in parameters}
    results = [_result(each, renamed.get(each.name, each.name), output_axes) for each in outputs]
    proto = helper.make_graph(
        nodes, "main_graph", infos, results, [proto_of(t, n) for n, t in kept.items()]
    )
    domains = {each.domain for each in _walk(nodes)} - {""}
    imports = [helper.make_opsetid("", graph.opset)]
    imports += [helper.make_opsetid(each, custom_opsets.get(each, 1)) for each in sorted(domains)]
    made = helper.make_model(
        proto,
        opset_imports=imports,
        producer_name="weft",
        producer_version=weft.__version__,
        ir_version=helper.find_min_ir_version_for([imports[0]]),
    )
    size = sum(each.numel() * each.element_size() for each in kept.values())
    if size < LIMIT and all(each.sizes is not None for each in outputs):  # as the checker asks
        onnx.checker.check_model(made, full_check=not domains)
    return made


def _separate(graph: Any, outputs: list[Symbol], taken: set[str]) -> list[Symbol]:
    """Outputs that are results of nodes, and of different ones."""
    made, seen = [], set(taken) | set(graph.initializers)
    for each in outputs:
        if each.name in seen:
            copy = graph.op("Identity", each)
            each = copy.setType(each)
        seen.add(each.name)
        made.append(each)
    return made


def _result(symbol: Symbol, name: str, axes: Mapping[str, Mapping[int, str]]) -> Any:
    if symbol.dtype is None:
        raise ValueError(f"export: expected a result of a known dtype, got {name}; use setType")
    sizes = None if symbol.sizes is None else list(symbol.sizes)
    for dim, text in axes.get(name, {}).items():
        if sizes is not None and not isinstance(sizes[dim], int):
            sizes[dim] = text
    held = Symbol(symbol.graph, name, symbol.dtype, sizes, is_sequence=symbol.is_sequence)
    return helper.make_value_info(name, type_of(held))


def _graphs(node: NodeProto) -> Iterable[Any]:
    return (a.g for a in node.attribute if a.type == AttributeProto.GRAPH)


def _walk(nodes: Iterable[NodeProto]) -> Iterable[NodeProto]:
    for node in nodes:
        yield node
        for graph in _graphs(node):
            yield from _walk(graph.node)


def _used(nodes: Iterable[NodeProto]) -> set[str]:
    """The names that nodes and the graphs in them take."""
    found: set[str] = set()
    for node in nodes:
        found.update(node.input)
        for graph in _graphs(node):
            found |= _used(graph.node) | {each.name for each in graph.output}
    return found


def _needed(nodes: list[NodeProto], wanted: set[str]) -> list[NodeProto]:
    """The nodes that something wanted depends on."""
    kept = []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            for attribute in node.attribute:
                if attribute.type == AttributeProto.GRAPH:
                    inner = attribute.g
                    left = _needed(list(inner.node), {each.name for each in inner.output})
                    del inner.node[:]
                    inner.node.extend(left)
            wanted = wanted | _used([node])
            kept.append(node)
    return kept[::-1]


def _rename(nodes: Iterable[NodeProto], names: Mapping[str, str]) -> None:
    for node in nodes:
        for held in (node.input, node.output):
            for place, name in enumerate(held):
                if name in names:
                    held[place] = names[name]
        for graph in _graphs(node):
            _rename(graph.node, names)
            for each in graph.output:
                each.name = names.get(each.name, each.name)


def is_large(model: ModelProto) -> bool:
    """Whether its weights are too large for one file."""
    return sum(len(each.raw_data) for each in model.graph.initializer) > LIMIT


def save(model: ModelProto, path: str, weights: str | None) -> None:
    """Writes a model; `weights` is the name of the file beside it that takes them."""
    if weights is None:
        onnx.save_model(model, path)
        return
    copy = ModelProto()
    copy.CopyFrom(model)
    onnx.save_model(copy, path, save_as_external_data=True, location=weights, size_threshold=0)


def text_of(model: ModelProto) -> str:
    """The model in ONNX's text format."""
    return str(onnx.printer.to_text(model))
