"""Batch normalisation folded into the layers before it."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from weft import nn
from weft.fx._symbolic_trace import symbolic_trace
from weft.fx.graph_module import GraphModule, _owner
from weft.fx.node import Node
from weft.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

_PATTERNS = (
    (nn.Conv1d, nn.BatchNorm1d, fuse_conv_bn_eval),
    (nn.Conv2d, nn.BatchNorm2d, fuse_conv_bn_eval),
    (nn.Conv3d, nn.BatchNorm3d, fuse_conv_bn_eval),
    (nn.Linear, nn.BatchNorm1d, fuse_linear_bn_eval),
)


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Whether a node calls a module of the second class on the result of one of the first."""
    if not node.args or not isinstance(node.args[0], Node):
        return False
    for expected, each in zip(pattern, (node.args[0], node)):
        if each.op != "call_module" or type(modules.get(str(each.target))) is not expected:
            return False
    return True


def replace_node_module(node: Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Lets a node call another module, under the same name."""
    owner, name = _owner(modules[""], str(node.target))
    modules[str(node.target)] = new_module
    setattr(owner, name, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """The model, for inference, with batch normalisation folded into convolutions and linear layers
    whose result nobody else uses.

    The model must be in eval mode (ValueError), and traceable; no_trace: it is a GraphModule. A
    copy unless inplace.

    >>> model = weft.nn.Sequential(weft.nn.Conv2d(1, 2, 3), weft.nn.BatchNorm2d(2)).eval()
    >>> fused = weft.fx.experimental.optimization.fuse(model)
    >>> [node.op for node in fused.graph.nodes]
    ['placeholder', 'call_module', 'output']
    """
    if not inplace:
        model = copy.deepcopy(model)
    if no_trace and not isinstance(model, GraphModule):
        raise ValueError(f"fuse: expected a GraphModule with no_trace, got {type(model).__name__}")
    traced = model if isinstance(model, GraphModule) else symbolic_trace(model)
    graph = copy.deepcopy(traced.graph)
    modules = {**dict(model.named_modules()), "": model}
    for first, second, fold in _PATTERNS:
        for node in graph.nodes:
            if not matches_module_pattern((first, second), node, modules):
                continue
            layer: Any = node.args[0]
            norm = modules[str(node.target)]
            if len(layer.users) > 1 or not norm.track_running_stats:
                continue
            replace_node_module(layer, modules, fold(modules[str(layer.target)], norm))
            node.replace_all_uses_with(layer)
            graph.erase_node(node)
    return GraphModule(model, graph)


__all__ = ["fuse", "matches_module_pattern", "replace_node_module"]
