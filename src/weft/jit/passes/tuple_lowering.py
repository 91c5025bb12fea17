"""Tuple lowering: items of tuples go directly from where they are made to where they are used.

    %t : (int, Tensor) = prim::TupleConstruct(%n, %x)
    %y : Tensor = prim::TupleIndex[index=1](%t)         =>   uses of %y become uses of %x

A tuple that an `If` gives, or that goes round a loop, is split into its items where that lets every
user or every maker do without it. Tuples cannot be changed, so nobody can tell. One that some path
leaves unset is always split: its items may be unset, but an unset tuple cannot be taken apart.
"""

from __future__ import annotations

from weft.jit.ir import Node, TupleType, Type, Value
from weft.jit.ir.graph import Block
from weft.jit.passes.control_flow import remove_loop_output
from weft.jit.passes.rewriting import Rewriter, Rule, alone

_TAKES_APART = frozenset(("prim::TupleIndex", "prim::TupleUnpack"))


def items_of(value: Value) -> tuple[Value, ...] | None:
    """The items of a tuple that is made in sight."""
    if value.node is None or value.node.kind != "prim::TupleConstruct":
        return None
    return value.node.inputs


def _is_unset(value: Value) -> bool:
    return value.node is not None and value.node.kind == "prim::Uninitialized"


def _may_be_unset(value: Value) -> bool:
    """Whether some path leaves a value unset, through all Ifs and loops that it passes."""
    seen: set[Value] = set()
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if _is_unset(each):
            return True
        if each not in seen:
            seen.add(each)
            waiting += _sources(each)
    return False


def _sources(value: Value) -> list[Value]:
    """The values of which an output of an If, or what goes round a loop, may be one."""
    node = value.node or value.owner.node
    if node is not None and node.kind == "prim::If":
        return [block.returns[value.index] for block in node.blocks]
    if node is None or node.kind != "prim::Loop":
        return []
    index = value.index - (value.node is None)
    return [node.inputs[index + 2], node.blocks[0].returns[index + 1]] if index >= 0 else []


def _forward(node: Node, work: Rewriter) -> bool:
    whole = node.inputs[0]
    if items_of(whole) is None and not _is_unset(whole):
        return False
    items = _unpacked(whole, node, whole.type)
    taken = [items[node.attrs["index"]]] if node.kind == "prim::TupleIndex" else items
    node.replace_outputs_with(taken)
    node.destroy()
    return True


def _only_taken_apart(value: Value) -> bool:
    """Whether all uses of a tuple want its items; at least one does."""
    users = [use.user for use in value.uses]
    return bool(users) and all(isinstance(u, Node) and u.kind in _TAKES_APART for u in users)


def _split_if(node: Node, work: Rewriter) -> bool:
    changed = False
    for index in reversed(range(len(node.outputs))):
        output = node.outputs[index]
        if not isinstance(output.type, TupleType):
            continue
        returned = [block.returns[index] for block in node.blocks]
        made_here = all(items_of(v) is not None for v in returned)
        if not (_only_taken_apart(output) or made_here or _may_be_unset(output)):
            continue
        for block, value in zip(node.blocks, returned):
            items = _unpacked(value, block, output.type)
            block.remove_return(index)
            for item in items:
                block.add_return(item)
        parts = [node.add_output(elem) for elem in output.type.elems]
        _rebuilt_after(node, output, parts)
        node.remove_output(index)
        changed = True
    return changed


def _split_loop(node: Node, work: Rewriter) -> bool:
    changed = False
    for index in reversed(range(len(node.outputs))):
        output, body = node.outputs[index], node.blocks[0]
        if not isinstance(output.type, TupleType):
            continue
        before, param, again = (
            node.inputs[index + 2],
            body.params[index + 1],
            body.returns[index + 1],
        )
        made_here = items_of(before) is not None and items_of(again) is not None
        taken_apart = all(_only_taken_apart(v) for v in (param, output) if v.has_uses)
        moves = made_here or (taken_apart and again is not param)
        if not (moves or _may_be_unset(output)):
            continue
        for item in _unpacked(before, node, output.type):
            node.add_input(item)
        for item in _unpacked(again, body, output.type):
            body.add_return(item)
        fresh = [body.add_param(elem) for elem in output.type.elems]
        graph = node.graph
        with graph.inserting(at_start=body):
            whole = graph.emit("prim::TupleConstruct", fresh, [output.type], range=node.range)
        param.replace_all_uses_with(whole.output)
        _rebuilt_after(node, output, [node.add_output(elem) for elem in output.type.elems])
        remove_loop_output(node, index)
        changed = True
    return changed


def _unpacked(value: Value, place: Node | Block, type_: Type) -> tuple[Value, ...]:
    """The items of a tuple: those it is made of, or taken out before a node or at a block's end."""
    known = items_of(value)
    if known is not None:
        return known
    graph = value.graph
    inside = (
        graph.inserting(before=place) if isinstance(place, Node) else graph.inserting(at_end=place)
    )
    with inside:
        if _is_unset(value):
            elems = type_.children
            return tuple(graph.emit("prim::Uninitialized", (), [elem]).output for elem in elems)
        return tuple(graph.emit("prim::TupleUnpack", [value], type_.children).outputs)


def _rebuilt_after(node: Node, output: Value, parts: list[Value]) -> None:
    """Makes the tuple again behind the node for those who want the whole."""
    graph = node.graph
    with graph.inserting(after=node):
        whole = graph.emit("prim::TupleConstruct", parts, [output.type], range=node.range)
    output.replace_all_uses_with(whole.output)


_RULES: dict[str, Rule] = {
    "prim::If": _split_if,
    "prim::Loop": _split_loop,
    "prim::TupleIndex": _forward,
    "prim::TupleUnpack": _forward,
}
rule_of = _RULES.get
run = alone(rule_of)
