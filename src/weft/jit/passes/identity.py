"""Whether anyone can tell a value from another one with the same contents."""

from __future__ import annotations

from weft.jit.ir import Value
from weft.jit.ir.graph import Block, Node
from weft.jit.passes.operators import is_mutable, operator_of


def is_only_read(value: Value) -> bool:
    """Whether all its uses are operators that read it: it is not returned, put into a container or
    object, passed to a call, carried round a loop, written to, or compared by identity."""
    return all(_reads(use.user, use.index, value) for use in value.uses)


def _reads(user: Node | Block, index: int, value: Value) -> bool:
    if isinstance(user, Block):
        return False
    operator = operator_of(user)
    if operator is None or "compares_identity" in operator.tags:
        return False
    args = operator.schema.args
    if index >= len(args) or args[index].is_written:
        return False
    if args[index].type != value.type and is_mutable(value.type) and not args[index].type.children:
        return False  # an item of type `t` or Any, which is kept
    return "->" not in args[index].alias
