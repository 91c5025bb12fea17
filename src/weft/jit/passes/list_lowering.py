"""List lowering: lists whose items are known do not have to be asked.

- A list that is made here and never written: its length, its items by constant index, and its
  unpacking are known.
- A list of the parts of a tensor, never written: its length, where the tensor's size is known. So a
  loop over the rows of a constant tensor is one of known trips.
- A list that is made empty (or with some items) and filled by `append` in the same block, before
  anybody looks at it, is made at once:

    %xs : Tensor[] = prim::ListConstruct()
    %1 : Tensor[] = aten::append.t(%xs, %a)     =>   %xs : Tensor[] = prim::ListConstruct(%a, %b)
    %2 : Tensor[] = aten::append.t(%xs, %b)
"""

from __future__ import annotations

from functools import cache

from weft.jit.ir import INT, TENSOR, ListType, Node, Value
from weft.jit.ir.graph import Block
from weft.jit.passes.identity import is_only_read
from weft.jit.passes.operators import has_tag, operator_of, operator_of_kind
from weft.jit.passes.rewriting import Rewriter, Rule, alone
from weft.jit.passes.shape_call import ShapeCall, Sizes, sizes_of

_TENSORS = ListType(TENSOR)


def _asks(kind: str) -> bool:
    """Whether nodes of a kind ask a list for its length or its items."""
    operator = operator_of_kind(kind)
    return kind == "prim::ListUnpack" or (
        operator is not None and not operator.tags.isdisjoint(("length", "item"))
    )


@cache
def rule_of(kind: str) -> Rule | None:
    if kind == "prim::ListConstruct":
        return _gather
    return _answer if _asks(kind) else None


def _answer(node: Node, work: Rewriter) -> bool:
    """Puts what is known of a list in the place of what a node asks of it."""
    known, asked = _known(node), node.inputs[0]
    if known is None or not (is_only_read(asked) or not work.aliases.is_written(asked)):
        return False
    values = [v if isinstance(v, Value) else _constant(node, v) for v in known]
    node.replace_outputs_with(values)
    node.destroy()
    return True


def _known(node: Node) -> list[Value | int] | None:
    """What a node that asks a list gives, if the list is as it was made."""
    made = node.inputs[0].node
    if made is None or len(made.outputs) != 1:
        return None
    if made.kind != "prim::ListConstruct":
        count = _count_of_parts(made) if has_tag(node, "length") else None
        return None if count is None else [count]
    items = made.inputs
    if has_tag(node, "length"):
        return [len(items)]
    if has_tag(node, "item") and node.inputs[1].is_constant:
        index = node.inputs[1].constant
        return [items[index]] if -len(items) <= index < len(items) else None
    if node.kind == "prim::ListUnpack" and len(items) == len(node.outputs):
        return list(items)
    return None


def _count_of_parts(made: Node) -> int | None:
    """How many tensors an operator gives that parts one, if the sizes are known."""
    operator = operator_of(made)
    if operator is None or made.output.type != _TENSORS:
        return None
    (count,) = sizes_of(ShapeCall(made, operator, Sizes())) or (None,)
    return count if isinstance(count, int) else None


def _constant(node: Node, value: int) -> Value:
    with node.graph.inserting(before=node):
        return node.graph.constant(value, INT)


def _gather(made: Node, work: Rewriter) -> bool:
    """Makes a list at its last append, with all its items."""
    appends = _appends(made)
    if not appends:
        return False
    graph, items = made.graph, [*made.inputs, *(node.inputs[1] for node in appends)]
    with graph.inserting(before=appends[-1]), graph.at_range(made.range):
        whole = graph.emit("prim::ListConstruct", items, [made.output.type]).output
    for node in appends:
        node.output.replace_all_uses_with(whole)
        node.destroy()
    name = made.output.name
    made.output.replace_all_uses_with(whole)
    made.destroy()
    whole.name = name
    return True


def _appends(made: Node) -> list[Node]:
    """The appends to a list that come, in its own block, before every other use of it. Appends
    give the list itself: uses of that count as uses of the list."""
    order: list[tuple[Node, bool]] = []
    pending = [made.output]
    while pending:
        for user, index in pending.pop().uses:
            if isinstance(user, Block):
                place = _within(user.node, made.owner)
                if place is not None:
                    order.append((place, False))
                continue
            place = _within(user, made.owner)
            is_append = has_tag(user, "append") and index == 0 and place is user
            assert place is not None
            order.append((place, is_append))
            if is_append:
                pending.append(user.output)
    ordered = sorted(order, key=lambda entry: made.owner.position(entry[0]))
    appends: list[Node] = []
    for node, is_append in ordered:
        if not is_append or node.inputs[1] is made.output:
            break
        appends.append(node)
    return appends


def _within(node: Node | None, block: Block) -> Node | None:
    """The node of the block that is, or stands around, a node; None for the block's own returns."""
    while node is not None and node.owner is not block:
        node = node.owner.node
    return node


run = alone(rule_of)
