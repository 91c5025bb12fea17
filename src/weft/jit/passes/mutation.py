"""Operators that write to a tensor which nothing else reads become those that make a new one.

    %2 : Tensor = aten::relu_(%1)        =>        %2 : Tensor = aten::relu(%1)

Other passes know the second form only; its result takes the memory of its operand all the same
(memory_planning). This runs in freezing, since autograd tells the two apart.
"""

from __future__ import annotations

from typing import Any

from weft._C import Tensor
from weft.jit import schemas
from weft.jit.ir import TENSOR, Graph, Node, Value
from weft.jit.passes.conv_bn import asks_shape
from weft.jit.passes.operators import has_tag, operator_of
from weft.jit.passes.options import DEFAULT, Options

_DTypes = dict[Value, Any]


def run(graph: Graph, options: Options = DEFAULT) -> bool:
    """True if there was one."""
    changed, dtypes = False, _DTypes()
    for node in list(graph.walk()):
        kind = _new_form(node)
        if kind is not None and _is_own(node.inputs[0], node) and _keeps_dtype(node, dtypes):
            node = _replace(node, kind)
            changed = True
        if len(node.outputs) == 1 and node.output.type == TENSOR:
            dtypes[node.output] = _dtype_of(node, dtypes)
    return changed


def _new_form(node: Node) -> str | None:
    """The kind of the operator that gives what a pointwise one writes."""
    operator = operator_of(node)
    if operator is None or operator.row is None or operator.row.kind != "pointwise":
        return None
    if not operator.writes_self or len(node.outputs) != 1:
        return None
    name, overload = operator.name.removesuffix("_"), operator.overload
    kind = f"{name}.{overload}" if overload else name
    try:
        new = schemas.of(kind)
    except KeyError:
        return None
    same = [arg.name for arg in new.args] == [arg.name for arg in operator.args]
    return kind if same and not new.writes else None


def _is_own(value: Value, node: Node) -> bool:
    """Whether a tensor is a new one of the same block that only the node reads."""
    maker = value.node
    operator = None if maker is None else operator_of(maker)
    if maker is None or operator is None or operator.row is None or maker.owner is not node.owner:
        return False
    if operator.writes or operator.aliases or operator.may_give_input:
        return False
    is_read_elsewhere = any(
        use.index != 0 if use.user is node else not asks_shape(use.user) for use in value.uses
    )
    return not is_read_elsewhere


def _keeps_dtype(node: Node, dtypes: _DTypes) -> bool:
    """Whether the result has the dtype of what was written to, without being told."""
    if len(node.inputs) == 1:
        return True
    own = dtypes.get(node.inputs[0])
    return own is not None and all(_is_beside(value, own, dtypes) for value in node.inputs[1:])


def _is_beside(value: Value, dtype: Any, dtypes: _DTypes) -> bool:
    """Whether an operand leaves a tensor of a dtype as it is: one of the same, or a real number."""
    if value.type == TENSOR:
        return _known(value, dtypes) == dtype
    return value.is_constant and not isinstance(value.constant, complex)


def _known(value: Value, dtypes: _DTypes) -> Any:
    constant = value.constant if value.is_constant else None
    return constant.dtype if isinstance(constant, Tensor) else dtypes.get(value)


def _dtype_of(node: Node, dtypes: _DTypes) -> Any:
    """The floating dtype of a layer's result, which is that of its weight, and of what follows;
    None where it is not known."""
    operator = operator_of(node)
    if operator is None or not node.inputs:
        return None
    if has_tag(node, "layer"):
        weight = node.inputs[1].constant if node.inputs[1].is_constant else None
        return weight.dtype if weight is not None and weight.is_floating_point() else None
    first = _known(node.inputs[0], dtypes)
    if first is None or operator.row is None:
        return None
    if operator.tags & {"one_walk", "by_channels"}:
        return first
    is_walk = operator.row.kind == "pointwise" and not operator.row.gives_mask
    return first if is_walk and all(_is_beside(v, first, dtypes) for v in node.inputs) else None


def _replace(node: Node, kind: str) -> Node:
    graph = node.graph
    with graph.inserting(before=node), graph.at_range(node.range):
        new = graph.emit(kind, list(node.inputs), [TENSOR])
    node.replace_outputs_with([new.output])
    node.destroy()
    return new
