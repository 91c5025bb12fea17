"""Images between convolutions with their channels together in memory.

    %y = aten::conv2d(%x, <weight>, ...)   =>  %y = aten::conv2d(%x, <weight, channels_last>, ...)
    %z = aten::flatten(%y, 1, -1)              %1 = aten::contiguous(%y, 0)
                                               %z = aten::flatten(%1, 1, -1)

A convolution gives its result in the layout of its weight; pointwise operators and poolings keep
it. What asks for another one, or shows it outside, gets a copy in the usual order. The sums are the
same, their order is not: this runs in freezing.
"""

from __future__ import annotations

from collections.abc import Container

from weft._C import Tensor, channels_last, contiguous_format
from weft.jit.ir import MEMORY_FORMAT, TENSOR, Block, Graph, Node, Use, Value
from weft.jit.passes.conv_bn import asks_shape
from weft.jit.passes.operators import has_tag, operator_of, written_tensors
from weft.jit.passes.options import DEFAULT, Options


def run(graph: Graph, options: Options = DEFAULT) -> bool:
    """Changes the layout where few results need a copy; True if it did."""
    layers = [node for node in graph.walk() if has_tag(node, "convolution")]
    if not all(_can_change(layer) for layer in layers) or _writes(graph):
        return False
    if all(_lies_both_ways(layer.inputs[1].constant) for layer in layers):
        return False
    images = _images(graph, layers)
    leaving = {value: _others(value, images) for value in images}
    if 4 * sum(1 for uses in leaving.values() if uses) > len(layers):
        return False
    for layer in layers:
        with graph.inserting(before=layer):
            weight = layer.inputs[1].constant.contiguous(memory_format=channels_last)
            layer.set_input(1, graph.constant(weight))
    for value, uses in leaving.items():
        for user, index in uses:
            _copy_for(graph, value, user, index)
    return True


def _lies_both_ways(weight: Tensor) -> bool:
    """Whether a weight, of 1x1 or of single channels, tells a convolution nothing of a layout."""
    return weight.contiguous(memory_format=channels_last).is_contiguous()


def _can_change(layer: Node) -> bool:
    """Whether channels are multiplied with all others, or each for itself."""
    operator, weight = operator_of(layer), layer.inputs[1]
    given = {arg.name: value for arg, value in zip(operator.schema.args, layer.inputs)}
    groups = given.get("groups")
    if layer.name != "aten::conv2d" or not weight.is_constant or groups is None:
        return False
    sizes = tuple(weight.constant.shape)
    if not groups.is_constant or len(sizes) != 4:
        return False
    return groups.constant == 1 or (groups.constant == sizes[0] and sizes[1] == 1)


def _writes(graph: Graph) -> bool:
    """Whether a tensor is written in place that others may see. A list that grows, of sizes as a
    pool makes one, changes none."""
    return any(
        len(value.uses) > 1 or not _keeps_layout(node) or not _is_new(value)
        for node in graph.walk()
        for value in written_tensors(node)
    )


def _is_new(value: Value) -> bool:
    node = value.node
    return node is not None and (_keeps_layout(node) or has_tag(node, "convolution"))


def _keeps_layout(node: Node) -> bool:
    operator = operator_of(node)
    if operator is None or operator.row is None:
        return False
    return operator.row.kind == "pointwise" or has_tag(node, "by_channels")


def _images(graph: Graph, layers: list[Node]) -> dict[Value, None]:
    """Results of the layers, and of what keeps their layout; lists of those for what does."""
    found: dict[Value, None] = {}
    for node in graph.walk():
        if _is_list_of(node, found):
            is_image = not any(_uses_otherwise(use) for use in node.output.uses)
        else:
            is_image = _keeps_layout(node) and any(value in found for value in node.inputs)
        if is_image or node in layers:
            found.update(dict.fromkeys(node.outputs))
    return found


def _is_list_of(node: Node, images: Container[Value]) -> bool:
    if node.kind != "prim::ListConstruct" or not node.inputs:
        return False
    return all(value in images for value in node.inputs)


def _others(value: Value, images: Container[Value]) -> list[tuple[Node | Block, int]]:
    """The uses of a value by what does not keep its layout."""
    return [
        (use.user, use.index)
        for use in value.uses
        if _uses_otherwise(use) and not _is_listed(use.user, images)
    ]


def _uses_otherwise(use: Use) -> bool:
    user = use.user
    if not isinstance(user, Node):
        return True
    is_image = has_tag(user, "convolution") and use.index == 0
    return not (_keeps_layout(user) or is_image or asks_shape(user))


def _is_listed(user: Node | Block, images: Container[Value]) -> bool:
    return isinstance(user, Node) and _is_list_of(user, images) and user.output in images


def _copy_for(graph: Graph, value: Value, user: Node | Block, index: int) -> None:
    """Puts a copy in the usual order, which is the value itself where it lies so, before a use."""
    place = {"before": user} if isinstance(user, Node) else {"at_end": user}
    with graph.inserting(**place):
        order = graph.constant(contiguous_format, MEMORY_FORMAT)
        copy = graph.emit("aten::contiguous", [value, order], [TENSOR]).output
    if isinstance(user, Node):
        user.set_input(index, copy)
    else:
        user.set_return(index, copy)
