"""Control flow that is decided before the program runs.

- `If` with a constant condition: the branch that runs takes its place.
- `If` that gives the same on both branches, or the condition itself, or its opposite.
- Loops that never run; carried values that never change.
- Casts to a type that the value is known to have.
"""

from __future__ import annotations

from weft.jit.ir import BOOL, INT, Node, Value, is_subtype
from weft.jit.ir.graph import Block
from weft.jit.ir.literals import text_of
from weft.jit.passes.rewriting import Rewriter, Rule, alone


def _cast(node: Node, work: Rewriter) -> bool:
    if not is_subtype(node.inputs[0].type, node.output.type):
        return False
    node.replace_outputs_with(node.inputs)
    node.destroy()
    return True


# ---- If ----


def _if(node: Node, work: Rewriter) -> bool:
    condition = node.inputs[0]
    if condition.is_constant:
        replace_by_block(node, node.blocks[0 if condition.constant else 1])
        return True
    changed = _condition_inside(node)
    for index in reversed(range(len(node.outputs))):
        value = _common(node, index)
        if value is not None:
            node.outputs[index].replace_all_uses_with(value)
            remove_if_output(node, index)
            changed = True
    return changed


def replace_by_block(node: Node, block: Block) -> None:
    """Puts the nodes of one of its blocks, which has no parameters, in the place of a node."""
    for inner in block:
        inner.move_before(node)
    node.replace_outputs_with(block.returns)
    node.destroy()


def remove_if_output(node: Node, index: int) -> None:
    """Takes away an output of an If that nobody uses."""
    node.remove_output(index)
    for block in node.blocks:
        block.remove_return(index)


def _common(node: Node, index: int) -> Value | None:
    """The value that an output always has, made before the If; None if there is none."""
    output = node.outputs[index]
    yes, no = (block.returns[index] for block in node.blocks)
    if yes is no and yes.type == output.type:
        return yes
    if not (yes.is_constant and no.is_constant and yes.type == no.type == output.type):
        return None
    if output.type == BOOL and yes.constant and not no.constant:
        return node.inputs[0]
    if output.type == BOOL and no.constant and not yes.constant:
        with node.graph.inserting(before=node), node.graph.at_range(node.range):
            return node.graph.emit("aten::__not__", node.inputs, (BOOL,)).output
    if _same_constant(yes, no):
        with node.graph.inserting(before=node):
            return node.graph.constant(yes.constant, yes.type)
    return None


def _same_constant(a: Value, b: Value) -> bool:
    shown = text_of(a.constant)
    return "<" not in shown and shown == text_of(b.constant)


def _condition_inside(node: Node) -> bool:
    """Within a branch the condition is known: uses of it become constants."""
    condition, changed = node.inputs[0], False
    for block, value in zip(node.blocks, (True, False)):
        inside = [use for use in condition.uses if use.user.is_within(block)]
        if not inside:
            continue
        with node.graph.inserting(at_start=block):
            known = node.graph.constant(value)
        for use in inside:
            use.user.replace_use(use.index, known)
        changed = True
    return changed


# ---- loops ----


def _loop(node: Node, work: Rewriter) -> bool:
    trips, condition = node.inputs[:2]
    never = (trips.is_constant and trips.constant <= 0) or (
        condition.is_constant and not condition.constant
    )
    if never and all(i.type == o.type for i, o in zip(node.inputs[2:], node.outputs)):
        node.replace_outputs_with(node.inputs[2:])
        node.destroy()
        return True
    changed = False
    for index in reversed(range(len(node.outputs))):
        changed |= drop_unchanged(node, index)
    return changed


def remove_loop_output(node: Node, index: int) -> None:
    """Takes away a carried value that nobody uses, in the loop or behind it."""
    body = node.blocks[0]
    body.remove_return(index + 1)
    body.remove_param(index + 1)
    node.remove_input(index + 2)
    node.remove_output(index)


def drop_unchanged(node: Node, index: int) -> bool:
    """A carried value that each trip hands on as it is: inside and after, the value before."""
    body, output = node.blocks[0], node.outputs[index]
    before, param = node.inputs[index + 2], body.params[index + 1]
    if body.returns[index + 1] not in (param, before) or before.type != output.type:
        return False
    param.replace_all_uses_with(before)
    output.replace_all_uses_with(before)
    remove_loop_output(node, index)
    return True


_RULES: dict[str, Rule] = {
    "prim::If": _if,
    "prim::Loop": _loop,
    "prim::unchecked_cast": _cast,
}
rule_of = _RULES.get
run = alone(rule_of)


def known_trips(node: Node) -> int | None:
    """How often a loop runs, if its trip count is a constant and its condition always true."""
    trips, condition, again = *node.inputs[:2], node.blocks[0].returns[0]
    always = all(value.is_constant and value.constant for value in (condition, again))
    if not (always and trips.is_constant and trips.type == INT):
        return None
    return max(trips.constant, 0)
