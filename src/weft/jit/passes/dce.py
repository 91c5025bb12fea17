"""Dead code elimination: nodes go whose outputs nobody needs and whose running nobody notices.

A node stays if it may raise: a program that fails must fail after this pass too. Outputs of `If`
and carried values of loops go one by one: those too that a loop only makes of themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from weft.jit.ir.graph import Block, Node, Value
from weft.jit.passes.control_flow import remove_if_output, remove_loop_output
from weft.jit.passes.effects import effects_of_kind, is_removable
from weft.jit.passes.rewriting import Rewriter, Rule, alone


@cache
def rule_of(kind: str) -> Rule | None:
    if effects_of_kind(kind):
        return None
    return {"prim::If": _if, "prim::Loop": _loop}.get(kind, _drop)


def _drop(node: Node, work: Rewriter) -> bool:
    if any(value.has_uses for value in node.outputs) or not is_removable(node):
        return False
    node.destroy()
    return True


def _if(node: Node, work: Rewriter) -> bool:
    if _drop(node, work):
        return True
    unused = [index for index, value in enumerate(node.outputs) if not value.has_uses]
    for index in reversed(unused):
        remove_if_output(node, index)
    return bool(unused)


def _loop(node: Node, work: Rewriter) -> bool:
    if _drop(node, work):
        return True
    body, changed = node.blocks[0], False
    for index in reversed(range(len(node.outputs))):
        output, param = node.outputs[index], body.params[index + 1]
        if not _is_idle([output, param]):
            continue
        if body.returns[index + 1] is not param:
            body.set_return(index + 1, param)  # so that nobody uses what made it
            changed = True
        if not output.has_uses and len(param.uses) == 1:
            remove_loop_output(node, index)
            changed = True
    return changed


def _is_idle(values: Iterable[Value]) -> bool:
    """Whether values go nowhere but into others that go nowhere, round loops as well."""
    seen: set[Value] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if value not in seen:
            seen.add(value)
            for user, index in value.uses:
                made = _made_of(user, index)
                if made is None:
                    return False
                waiting += made
    return True


def _made_of(user: Node | Block, index: int) -> list[Value] | None:
    """What a user makes of a value; None where it is needed whatever becomes of that."""
    node = user.node if isinstance(user, Block) else user
    if node is not None and node.kind == "prim::Loop":
        index -= 1 if isinstance(user, Block) else 2
        return [node.outputs[index], node.blocks[0].params[index + 1]] if index >= 0 else None
    if isinstance(user, Block):
        return [node.outputs[index]] if node is not None and node.kind == "prim::If" else None
    return None if user.blocks or not is_removable(user) else user.outputs


run = alone(rule_of)
