"""Equality of values that PyTorch has no operator for: optional ones, and tuples."""

from __future__ import annotations

from collections.abc import Callable

from weft.jit.ir import Graph, Node
from weft.jit.ir import types as ty
from weft.jit.ir.value import Value

# The overload of aten::eq for two values of a type; dtypes and the like are numbers.
_OVERLOADS: dict[ty.Type, str] = {
    ty.INT: "int", ty.FLOAT: "float", ty.BOOL: "bool", ty.STR: "str", ty.COMPLEX: "complex",
    ty.DEVICE: "device", ty.DTYPE: "int", ty.LAYOUT: "int", ty.MEMORY_FORMAT: "int",
    ty.ListType(ty.INT): "int_list", ty.ListType(ty.FLOAT): "float_list",
    ty.ListType(ty.BOOL): "bool_list", ty.ListType(ty.STR): "str_list",
}  # fmt: skip


def lower(graph: Graph, node: Node) -> None:
    """Puts tests of the parts in the place of an aten::eq.t or aten::ne.t; leaves others alone."""
    left, right = node.inputs
    if not _is_known(left.type, right.type):
        return
    with graph.inserting(before=node), graph.at_range(node.range):
        made = _equal(graph, left, right)
        if node.name == "aten::ne":
            made = graph.emit("aten::__not__", (made,), (ty.BOOL,)).output
    node.output.replace_all_uses_with(made)
    node.destroy()


def _is_known(left: ty.Type, right: ty.Type) -> bool:
    """Whether values of these types are compared part by part."""
    plain = ty.non_none(left), ty.non_none(right)
    if ty.NONE in (left, right):
        return True
    if isinstance(plain[0], ty.TupleType) and isinstance(plain[1], ty.TupleType):
        pairs = zip(plain[0].elems, plain[1].elems)
        return len(plain[0].elems) == len(plain[1].elems) and all(_is_known(*p) for p in pairs)
    return plain[0] == plain[1] and (plain[0] in _OVERLOADS or isinstance(plain[0], ty.EnumType))


def _equal(graph: Graph, left: Value, right: Value) -> Value:
    for one, other in ((left, right), (right, left)):
        if one.type != ty.non_none(one.type) or one.type is ty.NONE:
            return _equal_unless_none(graph, one, other)
    if isinstance(left.type, ty.TupleType):
        return _equal_tuples(graph, left, right)
    overload = _OVERLOADS.get(left.type, "enum")
    return graph.emit(f"aten::eq.{overload}", (left, right), (ty.BOOL,)).output


def _equal_unless_none(graph: Graph, optional: Value, other: Value) -> Value:
    """Where one is None, the other has to be."""

    def both_none() -> Value:
        if ty.non_none(other.type) == other.type and other.type is not ty.NONE:
            return graph.constant(False)
        return _is_none(graph, other)

    def neither() -> Value:
        if optional.type is ty.NONE:
            return graph.constant(False)
        known = graph.emit("prim::unchecked_cast", (optional,), (ty.non_none(optional.type),))
        return _equal(graph, known.output, other)

    return _either(graph, _is_none(graph, optional), both_none, neither)


def _is_none(graph: Graph, value: Value) -> Value:
    none = graph.constant(None)
    return graph.emit("aten::__is__", (value, none), (ty.BOOL,)).output


def _equal_tuples(graph: Graph, left: Value, right: Value) -> Value:
    """Item by item, until two differ."""
    assert isinstance(left.type, ty.TupleType) and isinstance(right.type, ty.TupleType)
    firsts = graph.emit("prim::TupleUnpack", (left,), left.type.elems).outputs
    seconds = graph.emit("prim::TupleUnpack", (right,), right.type.elems).outputs
    pairs = list(zip(firsts, seconds))

    def from_(index: int) -> Value:
        if index == len(pairs):
            return graph.constant(True)
        same = _equal(graph, *pairs[index])
        return _either(graph, same, lambda: from_(index + 1), lambda: graph.constant(False))

    return from_(0)


def _either(
    graph: Graph, condition: Value, yes: Callable[[], Value], no: Callable[[], Value]
) -> Value:
    """The value of one of two, made in the branches of an If."""
    node = graph.emit("prim::If", (condition,), (ty.BOOL,))
    for make in (yes, no):
        block = node.add_block()
        with graph.inserting(at_end=block):
            block.set_returns([make()])
    return node.output
