"""Folds batch_norm of fixed statistics into the convolution or linear layer before it.

    batch_norm(conv(x, w, b), g, h, mean, var)  =  conv(x, w * s, (b - mean) * s + h),
    s = g / sqrt(var + eps)

The sum is the same, its last bits are not: this runs in freezing, on constants only.
"""

from __future__ import annotations

from typing import Any

from weft.autograd.grad_mode import no_grad
from weft.jit.ir import Graph, Node, optional_of
from weft.jit.ir.types import TENSOR
from weft.jit.passes.operators import has_tag
from weft.jit.passes.options import DEFAULT, Options


def run(graph: Graph, options: Options = DEFAULT) -> bool:
    """Folds where every tensor but the input is a constant; True if anything was folded."""
    changed = False
    for node in list(graph.walk()):
        if node.is_inserted and node.kind == "aten::batch_norm":
            layer = node.inputs[0].node
            if layer is not None and _can_fold(layer, node):
                _fold(layer, node)
                changed = True
    return changed


def _can_fold(layer: Node, norm: Node) -> bool:
    if not has_tag(layer, "layer") or layer.owner is not norm.owner:
        return False
    if not all(use.user is norm or asks_shape(use.user) for use in layer.output.uses):
        return False
    known = all(value.is_constant for value in layer.inputs[1:3])
    return known and has_fixed_statistics(norm) and _is_channel_first(layer)


def has_fixed_statistics(norm: Node) -> bool:
    """Whether a batch_norm multiplies and adds constants."""
    if not all(value.is_constant for value in (*norm.inputs[1:6], norm.inputs[7])):
        return False
    return norm.inputs[3].constant is not None and not norm.inputs[5].constant


def asks_shape(user: object) -> bool:
    """Whether a use cannot tell the layer's output from the folded one."""
    return isinstance(user, Node) and has_tag(user, "metadata")


def _is_channel_first(layer: Node) -> bool:
    """batch_norm goes over dimension 1: of a linear layer, that of its outputs only for a batch of
    rows."""
    if layer.name != "aten::linear":
        return True
    shape = layer.output.shape
    return shape is not None and shape.rank == 2


def _fold(layer: Node, norm: Node) -> None:
    weight, bias = (value.constant for value in layer.inputs[1:3])
    gamma, beta, mean, variance = (value.constant for value in norm.inputs[1:5])
    with no_grad():
        weight, bias = folded(weight, bias, gamma, beta, mean, variance, norm.inputs[7].constant)
    graph = norm.graph
    with graph.inserting(before=layer):
        layer.set_input(1, graph.constant(weight))
        layer.set_input(2, graph.constant(bias, optional_of(TENSOR)))
    norm.output.replace_all_uses_with(layer.output)
    norm.destroy()


def folded(
    weight: Any, bias: Any, gamma: Any, beta: Any, mean: Any, variance: Any, eps: float
) -> tuple[Any, Any]:
    """Weight and bias of a layer with batch_norm folded in.

    `weight` is of shape [channels, ...], the rest of shape [channels]; `bias`, `gamma` and `beta`
    may be None.
    """
    scale = (variance + eps).rsqrt()
    if gamma is not None:
        scale = scale * gamma
    shift = -mean if bias is None else bias - mean
    shift = shift * scale
    if beta is not None:
        shift = shift + beta
    return weight * scale.reshape([-1, *[1] * (weight.dim() - 1)]), shift
