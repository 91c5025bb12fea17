"""Memory planning: the result of an operator may lie where an operand lay that dies there.

    %2 : Tensor = aten::relu(%1)        =>        %2 : Tensor = aten::relu[reuses=[0]](%1)

`reuses` are the operands, by number, whose memory the result may take over: where the operator is
one walk over the elements, the operand's last use is here, and neither dtypes nor sizes are known
to differ. What only a run can tell is asked then (csrc/ops/donation.h): nobody else holds the
tensor or its memory, no gradient is recorded, the result has its dtype, sizes and strides.
Otherwise the result takes memory of its own.

Groups do the same with operands that die there; they need no mark.
"""

from __future__ import annotations

from weft.jit.codegen import tiles
from weft.jit.codegen.liveness import Liveness
from weft.jit.ir import TENSOR, Graph, Node, Value
from weft.jit.ir.graph import Block
from weft.jit.passes.operators import operator_of
from weft.jit.passes.options import DEFAULT, Options

# Nodes whose results belong to somebody else as well.
_HOLDERS = frozenset(
    f"prim::{name}"
    for name in ("Constant", "GetAttr", "TupleUnpack", "TupleIndex", "ListUnpack", "unchecked_cast")
)


def run(graph: Graph, options: Options = DEFAULT) -> bool:
    """Marks operators in every block; True if there was one to mark."""
    candidates = [node for node in _outside_groups(graph.block) if may_reuse(node)]
    if not candidates:
        return False
    live, changed = Liveness(graph), False
    for node in candidates:
        last_used = set(live.last_uses[node])
        reuses = [
            index
            for index, value in enumerate(node.inputs)
            if value in last_used and _may_give(value, graph) and _may_fit(value, node.output)
        ]
        # Of an operand that is read twice, one mention says it.
        reuses = [i for i in reuses if node.inputs.index(node.inputs[i]) == i]
        if reuses != node.attrs.get("reuses", []):
            node.attrs.pop("reuses", None)
            if reuses:
                node.attrs["reuses"] = reuses
            changed = True
    return changed


def _outside_groups(block: Block) -> list[Node]:
    """Groups run as one: what stands in them is no matter of memory."""
    found = []
    for node in block:
        found.append(node)
        if node.kind != tiles.FUSED:
            for inner in node.blocks:
                found += _outside_groups(inner)
    return found


def may_reuse(node: Node) -> bool:
    """Whether a node is one walk over elements, whose result may lie where an operand lies."""
    if len(node.outputs) != 1 or node.output.type != TENSOR:
        return False
    operator = operator_of(node)
    if operator is None or operator.row is None or operator.writes:
        return False
    if operator.row.kind in ("pointwise", "rowwise") or "one_walk" in operator.tags:
        return True
    return operator.row.kind == "compose" and tiles.is_one_step(node)


def _may_give(value: Value, graph: Graph) -> bool:
    """Whether the program may be the only one to hold a tensor."""
    if value.type != TENSOR or value.is_constant:
        return False
    if value.node is None:
        return value not in graph.inputs
    return value.node.kind not in _HOLDERS


def _may_fit(value: Value, result: Value) -> bool:
    """Whether dtypes and sizes may be the same for what is known."""
    a, b = value.shape, result.shape
    if a is None or b is None:
        return True
    if None not in (a.dtype, b.dtype) and a.dtype != b.dtype:
        return False
    if a.sizes is None or b.sizes is None:
        return True
    pairs = zip(a.sizes, b.sizes)
    differ = any(isinstance(x, int) and isinstance(y, int) and x != y for x, y in pairs)
    return len(a.sizes) == len(b.sizes) and not differ
