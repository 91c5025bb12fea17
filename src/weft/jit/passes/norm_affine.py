"""batch_norm of fixed statistics that no layer before it took in (conv_bn) goes into convolutions
behind it, or becomes arithmetic that fusion knows.

    conv(batch_norm(x, g, h, mean, var), w, b)  =  conv(x, w * s, b + sum(w * t))    without padding
    batch_norm(x, g, h, mean, var)  =  addcmul(t, x, s)                              of known rank
    s = g / sqrt(var + eps),  t = h - mean * s

Padding stands behind batch_norm, so that a convolution with padding does not take it in; what is
computed from it is then the prologue of the convolution. The first changes last bits; the second
does not, but where x is of another dtype than the statistics. Both run in freezing, on constants.
"""

from __future__ import annotations

from typing import Any

import weft
from weft.jit.ir import BOOL, INT, STR, TENSOR, Node, Value, optional_of
from weft.jit.ir.graph import Graph
from weft.jit.passes.constants import constant_of
from weft.jit.passes.conv_bn import asks_shape, has_fixed_statistics
from weft.jit.passes.operators import has_tag
from weft.jit.passes.options import DEFAULT, Options

_MESSAGE = "batch_norm: expected vectors of shape ({},), got ({},)"


def run(graph: Graph, options: Options = DEFAULT) -> bool:
    """True if anything was changed."""
    changed = False
    for node in list(graph.walk()):
        if node.kind != "aten::batch_norm" or not has_fixed_statistics(node):
            continue
        users = [use.user for use in node.output.uses if not asks_shape(use.user)]
        if users and all(_takes_in(user, node) for user in users):
            _fold(users, node)
        elif (rank := _rank(node)) is not None:
            _write_out(node, rank)
        else:
            continue
        changed = True
    return changed


def _affine(norm: Node) -> tuple[Any, Any]:
    """Factor and summand of each channel, computed as the operator does."""
    gamma, beta, mean, variance = (value.constant for value in norm.inputs[1:5])
    with weft.no_grad():
        scale = (variance + norm.inputs[7].constant).rsqrt()
        scale = scale if gamma is None else scale * gamma
        shift = -(mean * scale)
        return scale, shift if beta is None else shift + beta


def _takes_in(user: object, norm: Node) -> bool:
    """Whether a convolution reads nothing but the channels of the norm."""
    if (
        not isinstance(user, Node)
        or not has_tag(user, "convolution")
        or user.owner is not norm.owner
    ):
        return False
    weight, bias, groups = user.inputs[1], user.inputs[2], user.inputs[6]
    if not (weight.is_constant and bias.is_constant and groups.is_constant):
        return False
    padding, variance = constant_of(user.inputs[4]), norm.inputs[4].constant
    padding = [padding] if isinstance(padding, int) else padding
    channels = weight.constant.shape[1] * groups.constant
    plain = padding == "valid" or (isinstance(padding, list) and not any(padding))
    return plain and channels == len(variance) and weight.constant.dtype == variance.dtype


def _fold(convolutions: list[Any], norm: Node) -> None:
    scale, shift = _affine(norm)
    for conv in convolutions:
        weight, bias = conv.inputs[1].constant, conv.inputs[2].constant
        with weft.no_grad():
            weight, bias = folded(weight, bias, scale, shift, conv.inputs[6].constant)
        with norm.graph.inserting(before=conv):
            conv.set_input(1, norm.graph.constant(weight))
            conv.set_input(2, norm.graph.constant(bias, optional_of(TENSOR)))
    norm.output.replace_all_uses_with(norm.inputs[0])
    norm.destroy()


def folded(weight: Any, bias: Any, scale: Any, shift: Any, groups: int) -> tuple[Any, Any]:
    """Weight and bias of a convolution that reads x instead of x * scale + shift."""
    by_group = weight.reshape(groups, -1, *weight.shape[1:])
    ones = [1] * (weight.dim() - 2)
    scale, shift = (each.reshape(groups, 1, -1, *ones) for each in (scale, shift))
    more = (by_group * shift).flatten(2).sum(-1).flatten()
    return (by_group * scale).reshape(weight.shape), more if bias is None else bias + more


def _rank(norm: Node) -> int | None:
    """The number of dimensions of what is normalised, if it is known; a program that raises for
    every other one, as the modules do, says it."""
    image = norm.inputs[0]
    if image.shape is not None and image.shape.rank is not None:
        return image.shape.rank
    for use in image.uses:
        if isinstance(use.user, Node) and use.user.kind == "aten::dim":
            for test in use.user.output.uses:
                rank = _required(test.user, norm)
                if rank is not None:
                    return rank
    return None


def _required(test: object, norm: Node) -> int | None:
    """The number that a test asks for, if the norm is behind `if dim != number: raise`."""
    if not isinstance(test, Node) or test.kind != "aten::ne.int":
        return None
    known = [value.constant for value in test.inputs if value.is_constant]
    guarded = any(_guards(use.user, norm) for use in test.output.uses)
    return int(known[0]) if known and guarded else None


def _guards(test: object, norm: Node) -> bool:
    """Whether a node raises before the norm is reached, if what it tests is true."""
    if not isinstance(test, Node) or test.kind != "prim::If":
        return False
    raises = any(node.kind == "prim::RaiseException" for node in test.blocks[0].nodes)
    return raises and norm.is_within(test.owner) and test.is_before(norm)


def _write_out(norm: Node, rank: int) -> None:
    """addcmul, behind a check of the channels: it would broadcast others."""
    graph, image = norm.graph, norm.inputs[0]
    scale, shift = _affine(norm)
    channels = len(scale)
    with graph.inserting(before=norm):
        _check_channels(graph, image, channels)
        of_channels = []
        for each in (shift, scale):
            known = graph.constant(each.reshape(channels, *[1] * (rank - 2)))
            of_channels.append(graph.emit("aten::type_as", [known, image], [TENSOR]).output)
        inputs = [of_channels[0], image, of_channels[1], graph.constant(1)]
        made = graph.emit("aten::addcmul", inputs, [TENSOR], range=norm.range)
    made.output.name = norm.output.name
    norm.output.replace_all_uses_with(made.output)
    norm.destroy()


def _check_channels(graph: Graph, image: Value, channels: int) -> None:
    one, wanted = graph.constant(1), graph.constant(channels)
    found = graph.emit("aten::size.int", [image, one], [INT]).output
    test = graph.emit("aten::ne.int", [found, wanted], [BOOL]).output
    guard = graph.emit("prim::If", [test])
    raising = guard.add_block()
    guard.add_block().set_returns([])
    with graph.inserting(at_end=raising):
        text = graph.emit("aten::format", [graph.constant(_MESSAGE), found, wanted], [STR]).output
        graph.emit("prim::RaiseException", [text], attrs={"exception": "RuntimeError"})
    raising.set_returns([])
