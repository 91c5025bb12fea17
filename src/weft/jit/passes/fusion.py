"""Tile fusion: pointwise operators that feed each other become one `weft::Fused` group.

    %1 : Tensor = aten::mul.Tensor(%x, %y)         %2 : Tensor = weft::Fused(%x, %y)
    %2 : Tensor = aten::sigmoid(%1)          =>      block0(%a : Tensor, %b : Tensor):
                                                       ...
                                                       -> (%d)

The block keeps the operators: the runtime falls back to them where a group does not apply (dtypes
that differ, results of several shapes). So the pass needs no types and no shapes, and a program is
never compiled again for new ones.

A group moves down to its last operator. What stands between must neither use its results nor write
to memory.

Row operators (softmax, layer norm, sums over the last dimension or all) join too, unless a group
would be made of them alone. Where such a group does not apply its pointwise parts still may: they
are groups of their own within it.
"""

from __future__ import annotations

from weft.jit.codegen import tiles
from weft.jit.ir.graph import Block, Graph, Node, Value
from weft.jit.ir.types import TENSOR
from weft.jit.passes.aliasing import AliasAnalysis
from weft.jit.passes.effects import has_effects
from weft.jit.passes.options import DEFAULT, Options

MOST_OUTPUTS = 6


def run(graph: Graph, options: Options = DEFAULT) -> bool:
    """Fuses in every block; True if a group was made."""
    aliases = AliasAnalysis(graph) if options.gradients else None
    groups = [group for group in _find(graph.block, aliases) if group.is_worth_it()]
    parts = [group.parts() for group in groups]
    # Not before all are found: they are asked about the graph as it was.
    for group, own in zip(groups, parts):
        _build(group, own)
    return bool(groups)


def _may_save(node: Node, aliases: AliasAnalysis | None) -> bool:
    """Whether a group may save what the node reads and gives, to compute with it when gradients
    are asked for: not what is written to, which operator by operator might not be saved."""
    if aliases is None:
        return True
    tensors = [v for v in (*node.inputs, node.output) if v.type == TENSOR]
    return not any(map(aliases.is_written, tensors))


class _Group:
    """Operators to be fused, in program order."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.results = {node.output for node in nodes}

    def outputs(self) -> list[Value]:
        inside = set(self.nodes)
        values = [node.output for node in self.nodes]
        return [value for value in values if value.is_used_outside(inside)]

    def is_worth_it(self) -> bool:
        return len(self.nodes) > 1 and not all(map(tiles.row_operator, self.nodes))

    def parts(self) -> list[_Group]:
        """If row operators are among the nodes: the groups there would be without them."""
        if not any(map(tiles.row_operator, self.nodes)):
            return []
        open_groups: list[_Group] = []
        done: list[_Group] = []
        for node in self.nodes:
            if tiles.row_of(node) is not None:
                _join(node, open_groups, done)
            else:
                open_groups = _closed(open_groups, node, done)
        return [group for group in done + open_groups if len(group.nodes) > 1]

    def fits(self) -> bool:
        most = len(self.nodes)  # saves looking for those that leave, while there is room for all
        if most <= MOST_OUTPUTS and tiles.fits(self.nodes, most):
            return True
        outputs = len(self.outputs())
        return outputs <= MOST_OUTPUTS and tiles.fits(self.nodes, outputs)


def _find(block: Block, aliases: AliasAnalysis | None) -> list[_Group]:
    """The groups of a block and of those nested in it, groups of one operator among them."""
    found: list[_Group] = []
    open_groups: list[_Group] = []
    done: list[_Group] = []
    for node in block.nodes:
        fusible = tiles.row_of(node) is not None or tiles.row_operator(node)
        if fusible and _may_save(node, aliases):
            _join(node, open_groups, done)
            continue
        for inner in node.blocks:
            found += _find(inner, aliases)
        if node.kind != "prim::Constant":
            open_groups = _closed(open_groups, node, done)
    return found + done + open_groups


def _closed(open_groups: list[_Group], node: Node, done: list[_Group]) -> list[_Group]:
    """The groups that stay open behind a node that is in none; the others are done."""
    used = _values_used(node)
    closing = [g for g in open_groups if has_effects(node) or g.results & used]
    done += closing
    return [g for g in open_groups if g not in closing]


def _join(node: Node, open_groups: list[_Group], done: list[_Group]) -> None:
    """Adds a node to the groups that feed it, which become one; or to a new group."""
    feeding = [g for g in open_groups if not g.results.isdisjoint(node.inputs)]
    merged = _Group([*_in_order(feeding), node])
    if feeding and not merged.fits():
        done += feeding
        merged = _Group([node])
    open_groups[:] = [g for g in open_groups if g not in feeding]
    open_groups.append(merged)


def _in_order(groups: list[_Group]) -> list[Node]:
    """The nodes of groups of one block, as the program has them."""
    nodes = [node for group in groups for node in group.nodes]
    if len(groups) > 1:  # one alone is in order
        nodes.sort(key=nodes[0].owner.position)
    return nodes


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
    results = group.results
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
