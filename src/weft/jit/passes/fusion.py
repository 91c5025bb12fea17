"""Tile fusion: pointwise operators that feed each other become one `weft::Fused` group.

    %1 : Tensor = aten::mul.Tensor(%x, %y)         %2 : Tensor = weft::Fused(%x, %y)
    %2 : Tensor = aten::sigmoid(%1)          =>      block0(%a : Tensor, %b : Tensor):
                                                       ...
                                                       -> (%d)

The block keeps the operators: the runtime falls back to them where a group does not apply (dtypes
that differ, results of several shapes). So the pass needs no types and no shapes, and a program is
never compiled again for new ones.

A group moves down to its last operator. What stands between must neither use its results nor write
to memory. Nor may it read a tensor that the group reads both before and behind it: the gradients of
such a tensor would be added in another order than operator by operator, which changes their last
bits.

A product or a convolution is the head of a group that goes on with its result: the runtime
computes the rest on each part of it as soon as it is there. In programs that record no gradients,
what only makes an operand of the head stands before it in the group: the runtime computes it a part
at a time, just before the part is multiplied. A group has one head at most.

Row operators (softmax, layer norm, sums over the last dimension or all) join too, unless a group
would be made of them alone. Where such a group does not apply its pointwise parts still may: they
are groups of their own within it.
"""

from __future__ import annotations

import itertools

from weft.jit.codegen import heads, tiles
from weft.jit.ir.graph import Block, Graph, Node, Value
from weft.jit.ir.types import TENSOR
from weft.jit.passes.aliasing import AliasAnalysis
from weft.jit.passes.effects import has_effects
from weft.jit.passes.gradient_paths import GradientPaths
from weft.jit.passes.options import DEFAULT, Options

MOST_OUTPUTS = 6


def run(graph: Graph, options: Options = DEFAULT) -> bool:
    """Fuses in every block; True if a group was made."""
    gradients = _Gradients(graph) if options.gradients else None
    groups = [group for group in _find(graph.block, gradients) if group.is_worth_it()]
    parts = [group.parts() for group in groups]
    # Not before all are found: they are asked about the graph as it was.
    for group, own in zip(groups, parts):
        _build(group, own)
    return bool(groups)


class _Gradients:
    """What groups must heed where gradients may be recorded."""

    def __init__(self, graph: Graph) -> None:
        self.consumers = GradientPaths(graph).consumers
        self._aliases = AliasAnalysis(graph)

    def allow_head(self, node: Node) -> bool:
        """Whether a node may be a head whose result is kept beside what is computed from it. For
        convolutions that takes longer: their parts are short pieces of many planes."""
        return not heads.is_convolution(node) and self.allow(node)

    def allow(self, node: Node) -> bool:
        """Whether a group may save what the node reads and gives, to compute with it when gradients
        are asked for: not what is written to, which operator by operator might not be saved."""
        tensors = [v for v in (*node.inputs, node.output) if v.type == TENSOR]
        return not any(map(self._aliases.is_written, tensors))


class _Group:
    """Operators to be fused, in program order; `head` is the product or convolution among them."""

    def __init__(
        self, nodes: list[Node], gradients: _Gradients | None, head: Node | None = None
    ) -> None:
        self.nodes, self.head = nodes, head
        self._gradients = gradients
        self._results = {node.output for node in nodes}

    def results(self) -> set[Value]:
        return self._results

    def led(self) -> list[Node]:
        """The head, behind the nodes that make its operand; nothing where there is no head."""
        return [] if self.head is None else self.nodes[: self.nodes.index(self.head) + 1]

    def outputs(self) -> list[Value]:
        inside = set(self.nodes)
        values = [node.output for node in self.nodes]
        return [value for value in values if value.is_used_outside(inside)]

    def is_worth_it(self) -> bool:
        if len(self.nodes) < 2 or all(map(tiles.row_operator, self.nodes)):
            return False
        if self.head is None or self.nodes[-1] is self.head:
            return True
        # What stands behind a head may be read by nobody, and run because it may raise.
        return any(value is not self.head.output for value in self.outputs())

    def parts(self) -> list[_Group]:
        """If row operators or a head stand among the nodes: the groups there would be without
        them."""
        if self.head is None and not any(map(tiles.row_operator, self.nodes)):
            return []
        open_groups: list[_Group] = []
        done: list[_Group] = []
        for node in self.nodes:
            if tiles.row_of(node) is not None:
                _join(node, open_groups, done, self._gradients)
            else:
                open_groups = _closed(open_groups, node, done)
        return [group for group in done + open_groups if len(group.nodes) > 1]

    def fits(self) -> bool:
        most = len(self.nodes)  # saves looking for those that leave, while there is room for all
        if most <= MOST_OUTPUTS and tiles.fits(self.nodes, most):
            return True
        outputs = len(self.outputs())
        return outputs <= MOST_OUTPUTS and tiles.fits(self.nodes, outputs)

    def between(self) -> set[Node]:
        """Others that send gradients to an input of the group, between its first and its last
        operator."""
        if len(self.nodes) < 2 or self._gradients is None:
            return set()
        inside, results = set(self.nodes), self.results()
        first, last = self.nodes[0], self.nodes[-1]
        if self.head is not None:  # it goes first, wherever it stood
            first = min(self.nodes, key=first.owner.position)
        inputs = {v for n in self.nodes for v in n.inputs if v.type == TENSOR} - results
        return {
            consumer
            for value in inputs
            for consumer in self._gradients.consumers(value)
            if consumer not in inside and _is_between(first, consumer, last)
        }


def _is_between(first: Node, node: Node, last: Node) -> bool:
    """Whether a node runs between two of one block; it may be nested in something there."""
    if not node.is_within(first.owner):
        return False
    return first.is_before(node) and not last.is_before(node)


def _find(block: Block, gradients: _Gradients | None) -> list[_Group]:
    """The groups of a block and of those nested in it, groups of one operator among them."""
    found: list[_Group] = []
    open_groups: list[_Group] = []
    done: list[_Group] = []
    for node in block.nodes:
        fusible = tiles.row_of(node) is not None or tiles.row_operator(node)
        if fusible and (gradients is None or gradients.allow(node)):
            _join(node, open_groups, done, gradients)
            continue
        if tiles.is_head(node) and (gradients is None or gradients.allow_head(node)):
            led = _Group([node], gradients, node) if gradients else _led_by(node, open_groups, done)
            open_groups = [*_closed(open_groups, node, done), led]
            continue
        for inner in node.blocks:
            found += _find(inner, gradients)
        if node.kind != "prim::Constant":
            open_groups = _closed(open_groups, node, done)
    return found + done + open_groups


def _led_by(head: Node, open_groups: list[_Group], done: list[_Group]) -> _Group:
    """A group that ends with a head, and takes over from an open one what makes its operand and
    nothing else. What stands behind another head stays there, unless row operators are among it:
    their results are then not written at all."""
    for operand, group in itertools.product(heads.operands_of(head), open_groups):
        led = group.led()
        rest = _Group(group.nodes[len(led) :], None)
        if rest.outputs() != [operand] or len(operand.uses) != 1:
            continue
        if led and not any(map(tiles.row_operator, rest.nodes)):
            continue
        merged = _Group([*rest.nodes, head], None, head)
        if merged.fits():
            open_groups.remove(group)
            if led:
                done.append(_Group(led, None, group.head))
            return merged
    return _Group([head], None, head)


def _closed(open_groups: list[_Group], node: Node, done: list[_Group]) -> list[_Group]:
    """The groups that stay open behind a node that is in none; the others are done."""
    used = _values_used(node)
    closing = [g for g in open_groups if has_effects(node) or g.results() & used]
    done += closing
    return [g for g in open_groups if g not in closing]


def _join(
    node: Node, open_groups: list[_Group], done: list[_Group], gradients: _Gradients | None
) -> None:
    """Adds a node to the groups that feed it, which become one; or to a new group."""
    used = set(node.inputs)
    feeding = [g for g in open_groups if not g.results().isdisjoint(used)]
    if not feeding:
        open_groups.append(_Group([node], gradients))
        return
    merged = _merged(feeding, node, gradients)
    # Open groups that read the same inputs in between may come along.
    between = merged.between()
    beside = [g for g in open_groups if between and g not in feeding and between & set(g.nodes)]
    if beside:
        feeding += beside
        merged = _merged(feeding, node, gradients)
        between = merged.between()
    if between or not merged.fits():
        done += feeding
        merged = _Group([node], gradients)
    else:  # a head that does not stay leads what makes its operand
        moved = [g for g in feeding if g.head is not None and g.head is not merged.head]
        done += [_Group(g.led(), None, g.head) for g in moved]
    for group in feeding:
        open_groups.remove(group)
    open_groups.append(merged)


def _merged(groups: list[_Group], node: Node, gradients: _Gradients | None) -> _Group:
    rest = [n for g in groups for n in g.nodes[len(g.led()) :]]
    if len(groups) > 1:  # one alone is in order
        rest.sort(key=node.owner.position)
    rest.append(node)
    # Of several heads the last one stays: what the others give is then there. It goes first; none
    # of the other groups' nodes can be among its operands, or it would not be in an open group.
    led = [g.led() for g in groups if g.head is not None]
    led.sort(key=lambda nodes: node.owner.position(nodes[-1]))
    kept = led[-1] if led else []
    if kept and gradients is not None and rest[0].is_before(kept[-1]):
        kept = []  # gradients of what both read would be added in another order
    return _Group([*kept, *rest], gradients, kept[-1] if kept else None)


def _values_used(node: Node) -> set[Value]:
    used = set(node.inputs)
    for inner in node.walk():
        used |= set(inner.inputs)
        for block in inner.blocks:
            used |= set(block.returns)
    for block in node.blocks:
        used |= set(block.returns)
    return used


def _build(group: _Group, parts: list[_Group]) -> None:
    """Puts the group's node in the place of its last operator, and the operators into it; those of
    a part into a group of its own there."""
    inputs, outputs, nodes = _inputs(group), group.outputs(), group.nodes
    if parts:
        nodes, outputs = _with_parts(nodes, outputs, parts)
    _wrap(nodes, inputs, outputs)


def _with_parts(
    nodes: list[Node], outputs: list[Value], parts: list[_Group]
) -> tuple[list[Node], list[Value]]:
    """The nodes and what they give, each part being one node at its end."""
    ends = {part.nodes[-1]: part for part in parts}
    within = {node for part in parts for node in part.nodes}
    members: list[Node] = []
    instead: dict[Value, Value] = {}
    for node in nodes:
        if node in ends:
            given = ends[node].outputs()
            members.append(_wrap(ends[node].nodes, _inputs(ends[node]), given))
            instead.update(zip(given, members[-1].outputs))
        elif node not in within:
            members.append(node)
    return members, [instead.get(value, value) for value in outputs]


def _wrap(nodes: list[Node], inputs: list[Value], outputs: list[Value]) -> Node:
    """A group's node in the place of the last one, with the nodes as its block."""
    last, inside = nodes[-1], set(nodes)
    graph = last.graph
    fused = graph.create(tiles.FUSED, inputs, [v.type for v in outputs], range=last.range)
    fused.insert_after(last)
    for old, new in zip(outputs, fused.outputs):
        new.shape = old.shape
        for user, index in old.uses:
            if user not in inside:
                user.replace_use(index, new)
    block = fused.add_block()
    mapping = {value: block.add_param(value.type, value.name) for value in inputs}
    known: list[Value] = []
    with graph.inserting(at_end=block):
        for node in nodes:
            for value in node.inputs:
                if value not in mapping and tiles.is_known(value):
                    known.append(value)
                    mapping[value] = _copy_known(graph, value)
            node.move_to_end(block)
            node.set_inputs([mapping.get(value, value) for value in node.inputs])
    block.set_returns(outputs)
    for value in known:
        _destroy_unused(value)
    return fused


def _inputs(group: _Group) -> list[Value]:
    results = group.results()
    inputs = [v for node in group.nodes for v in node.inputs if v not in results]
    return [v for v in dict.fromkeys(inputs) if not tiles.is_known(v)]


def _destroy_unused(value: Value) -> None:
    if value.node is None or value.has_uses:
        return
    inputs = value.node.inputs
    value.node.destroy()
    for inner in dict.fromkeys(inputs):
        _destroy_unused(inner)


def _copy_known(graph: Graph, value: Value) -> Value:
    if value.is_constant:
        return graph.constant(value.constant, value.type)
    assert value.node is not None
    items = [graph.constant(v.constant, v.type) for v in value.node.inputs]
    return graph.emit(value.node.kind, items, [value.type]).output
