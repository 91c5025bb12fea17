"""What follows a convolution by channels, computed as its results are written.

    %y = aten::conv2d(%x, <weight>, %b, ...)
    %s = aten::add.Tensor(%y, %r, <1>)     =>  %z = aten::_conv2d_sum(%x, <weight>, %b, %r, ...)
    %z = aten::relu(%s)

Or relu6, or hardtanh from 0 on. Exact: each sum is rounded as by the operators in turn. Only in
programs that record no gradients.
"""

from __future__ import annotations

import math

from weft.jit.ir import TENSOR, Graph, Node, Value
from weft.jit.passes.operators import written_tensors
from weft.jit.passes.options import DEFAULT, Options


def run(graph: Graph, options: Options = DEFAULT) -> bool:
    """True if there was one, in a program where no tensor is written in place."""
    layers = [node for node in graph.walk() if node.kind == "aten::conv2d"]
    if options.gradients or not any(map(_is_by_channels, layers)):
        return False
    if any(True for node in graph.walk() for _ in written_tensors(node)):
        return False
    # From the last one on: the others are computed by then, and can be added.
    joined = [_join(layer) for layer in reversed(layers)]
    return any(joined)


def _is_by_channels(layer: Node) -> bool:
    weight = layer.inputs[1]
    return weight.is_constant and not weight.constant.is_contiguous()


def _join(layer: Node) -> bool:
    for reader in layer.output.users:
        if isinstance(reader, Node) and reader.kind == "aten::dim":
            reader.set_input(0, layer.inputs[0])  # of the same rank
    last, residual = layer, None
    added = _only_user(last.output)
    if added is not None and added.kind == "aten::add.Tensor" and _is_plain_sum(added):
        residual = added.inputs[1 if added.inputs[0] is last.output else 0]
        last = added
    user = _only_user(last.output)
    high = None if user is None else _highest(user)
    if user is not None and high is not None:
        last = user
    if last is layer:
        return False
    graph = layer.graph
    with graph.inserting(before=last), graph.at_range(layer.range):
        none = graph.constant(None, layer.inputs[2].type) if residual is None else residual
        kind, limit = "aten::_conv2d_sum", graph.constant(high is not None)
        if high is not None and high < math.inf:
            kind, limit = "aten::_conv2d_sum.high", graph.constant(high)
        inputs = [*layer.inputs[:3], none, limit, *layer.inputs[3:]]
        joined = graph.emit(kind, inputs, [TENSOR]).output
    last.output.replace_all_uses_with(joined)
    for node in dict.fromkeys((last, added, layer)):
        if node is not None and not any(output.uses for output in node.outputs):
            node.destroy()
    return True


def _highest(node: Node) -> float | None:
    """The greatest result of an operator that sets what is negative to 0, and nothing else but what
    is above that; None for another one."""
    if node.kind == "aten::relu":
        return math.inf
    if node.kind == "aten::relu6":
        return 6.0
    if node.kind != "aten::hardtanh" or not all(limit.is_constant for limit in node.inputs[1:]):
        return None
    low, high = (limit.constant for limit in node.inputs[1:])
    return float(high) if low == 0 and high >= 0 else None


def _only_user(value: Value) -> Node | None:
    """The node of the same block that alone uses a value."""
    uses = value.uses
    if len(uses) != 1:
        return None
    user, node = next(iter(uses)).user, value.node
    alone = isinstance(user, Node) and node is not None and user.owner is node.owner
    return user if isinstance(user, Node) and alone else None


def _is_plain_sum(node: Node) -> bool:
    first, second, alpha = node.inputs
    return first is not second and alpha.is_constant and alpha.constant == 1
