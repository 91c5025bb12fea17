"""Graphs as TorchScript's dialect can say them: loops are either `for i in range(n)` or `while`,
values are carried only where they change, dtypes are numbers, and nothing is dead."""

from __future__ import annotations

from weft.jit.archive import equality, numbers, tidy, with_blocks
from weft.jit.archive.foreign import RENAMED
from weft.jit.archive.known import base_name, operator_of
from weft.jit.archive.substitutes import SPECIAL, special_function, substitute_of
from weft.jit.ir import Function, Graph, Node
from weft.jit.ir import types as ty
from weft.jit.ir.value import Value
from weft.jit.passes import dce
from weft.jit.passes.effects import WHILE_TRIPS, may_run_forever

# What stands between dtypes or layouts and their numbers, which archives do not tell apart.
_OF_NUMBERS = (numbers.DTYPE_OF, numbers.NUMBER_OF, numbers.NUMBER_OF_LAYOUT)
_OPTIONAL = f"__torch__.{numbers.__name__}.{numbers.optional_dtype_of.__name__}"


_DEVICE = "aten::device"


def canonical(graph: Graph, portable: bool = True) -> Graph:
    """A copy of the graph in that form. `portable`: functions stand for operators that PyTorch has
    not."""
    made = graph.copy()
    with_blocks.lower(made)
    dce.run(made)  # what is dead would hold back casts
    tidy.sink_casts(made)
    for node in list(made.walk()):
        if node.is_inserted:
            _change(made, node)
            if portable and node.is_inserted:
                _substitute(made, node)
    for node in reversed(list(made.walk())):  # nested ones first
        if node.kind == "prim::If":
            tidy.split_tuples(made, node)
        tidy.drop_unchanged(node)
    for node in list(made.walk()):
        if node.kind in ("prim::TupleIndex", "prim::TupleUnpack"):
            tidy.unpack(node)
    dce.run(made)
    tidy.sink_tuples(made.block)
    return made


def _change(graph: Graph, node: Node) -> None:
    tidy.build_constants(graph, node)
    if node.kind == "prim::Loop":
        if not (is_counted(node) or may_run_forever(node)):
            _to_while(graph, node)
    elif node.kind in _OF_NUMBERS or _calls_optional(node):
        tidy.leave_out(node, node.inputs[0])
    elif node.kind == "prim::CallFunction" and operator_of(node.attrs["function"]) is not None:
        tidy.listed(node)
    elif "unread" in node.attrs:
        tidy.leave_unread(graph, node)
    elif node.kind == "prim::tolist":
        tidy.give_type(node)
    elif node.kind in ("aten::neg.float", "aten::Complex.float_float") or node.name == _DEVICE:
        tidy.fold(graph, node)


def _calls_optional(node: Node) -> bool:
    return node.kind == "prim::CallFunction" and base_name(node.attrs["function"]) == _OPTIONAL


def _substitute(graph: Graph, node: Node) -> None:
    """Puts what PyTorch has in the place of what it has not."""
    tidy.keep_tensor(graph, node)
    kind = node.kind
    if kind in ("aten::eq.t", "aten::ne.t"):
        equality.lower(graph, node)
    elif kind == "prim::unchecked_cast" and not tidy.is_guarded(node):
        tidy.guard(graph, node)  # PyTorch folds a cast of None to something invalid
    elif kind in _IDENTITIES and all(isinstance(v.type, ty.EnumType) for v in node.inputs):
        node.kind = _IDENTITIES[kind]  # members of PyTorch's enums are not always the same object
    elif kind in _IDENTITIES and {v.type for v in node.inputs} == {ty.ANY, ty.NONE}:
        _ask_for_none(graph, node)
    elif kind == "aten::repr" and node.inputs[0].type is ty.STR:
        _call(graph, node, substitute_of("aten::repr.str"))
    elif kind in SPECIAL and node.inputs[-1].is_constant:
        name = node.inputs[-1].constant
        node.remove_input(len(node.inputs) - 1)
        _call(graph, node, special_function(name))
    elif kind in RENAMED:
        node.kind = RENAMED[kind]
    else:
        _call(graph, node, substitute_of(kind))


def _call(graph: Graph, node: Node, function: Function | None) -> None:
    """The call of a function in the place of an operator, if there is one."""
    if function is not None:
        with graph.inserting(before=node), graph.at_range(node.range):
            types = [value.type for value in node.outputs]
            result = types if len(types) == 1 else [ty.TupleType(tuple(types))]
            call = graph.emit("prim::CallFunction", node.inputs, result, {"function": function})
            if len(types) > 1:
                call = graph.emit("prim::TupleUnpack", call.outputs, types)
        node.replace_outputs_with(call.outputs)
        node.destroy()


def _ask_for_none(graph: Graph, node: Node) -> None:
    """`isinstance(x, NoneType)`: PyTorch takes `x is None` for False where the type of x is Any."""
    value = next(v for v in node.inputs if v.type is ty.ANY)
    with graph.inserting(before=node), graph.at_range(node.range):
        made = graph.emit("prim::isinstance", (value,), (ty.BOOL,), {"types": (ty.NONE,)})
        if node.kind == "aten::__isnot__":
            made = graph.emit("aten::__not__", made.outputs, (ty.BOOL,))
    node.replace_outputs_with(made.outputs)
    node.destroy()


_IDENTITIES = {"aten::__is__": "aten::eq.enum", "aten::__isnot__": "aten::ne.enum"}


def is_counted(loop: Node) -> bool:
    """Whether a loop makes all of its trips: `for i in range(n)`."""
    return (
        not may_run_forever(loop)
        and _is_true(loop.inputs[1])
        and _is_true(loop.blocks[0].returns[0])
    )


def _is_true(value: Value) -> bool:
    return value.is_constant and value.constant is True


def _to_while(graph: Graph, loop: Node) -> None:
    """A counted loop with a condition: its trips become a carried value."""
    trips, first, *carried = loop.inputs
    body = loop.blocks[0]
    step, again = body.params[0], body.returns[0]

    def both(left: Value, right: Value) -> Value:
        if _is_true(right) or _is_true(left):
            return left if _is_true(right) else right
        return graph.emit("aten::__and__.bool", (left, right), (ty.BOOL,)).output

    with graph.inserting(before=loop), graph.at_range(loop.range):
        limit = graph.constant(WHILE_TRIPS)
        zero = graph.constant(0)
        if trips.is_constant:  # as it is where the text is read
            some = graph.constant(trips.constant > 0)
        else:
            some = graph.emit("aten::gt.int", (trips, zero), (ty.BOOL,)).output
        start = both(some, first)
    count = body.add_param(ty.INT, step.name)
    step.replace_all_uses_with(count)
    with graph.inserting(at_end=body), graph.at_range(loop.range):
        following = graph.emit("aten::add.int", (count, graph.constant(1)), (ty.INT,)).output
        more = graph.emit("aten::lt.int", (following, trips), (ty.BOOL,)).output
        goes_on = both(more, again)
    loop.set_inputs((limit, start, *carried, zero))
    loop.add_output(ty.INT, step.name)
    body.set_returns((goes_on, *body.returns[1:], following))
