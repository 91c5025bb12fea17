"""Small changes that make a graph the one that its own text is compiled to."""

from __future__ import annotations

import math
from typing import Any

from weft import _C
from weft.jit.ir import Block, Graph, Node
from weft.jit.ir import types as ty
from weft.jit.ir.value import Value
from weft.jit.passes import control_flow


def keep_tensor(graph: Graph, node: Node) -> None:
    """A constant tensor without dimensions is written as the first operand: behind another one
    PyTorch's optimizer makes a number of it, which decides no dtype."""
    if node.kind not in _WITH_NUMBERS:
        return
    first, second, *alpha = node.inputs
    if _is_single(first) or not _is_single(second):
        return
    held = _times(second.constant, alpha[0]) if alpha else second.constant
    if held is None:
        return
    with graph.inserting(before=node), graph.at_range(node.range):
        if node.kind == "aten::div.Tensor":
            given = (first, second, graph.constant(None))
            made = graph.emit("aten::div.Tensor_mode", given, (ty.TENSOR,)).output
        elif node.kind == "aten::sub.Tensor":
            made = _less(graph, first, held)
        else:
            made = _behind(graph, node.kind, held, first)
    leave_out(node, made)


_WITH_NUMBERS = frozenset(f"aten::{name}.Tensor" for name in ("add", "sub", "mul", "div"))


def _is_single(value: Value) -> bool:
    held = value.constant if value.is_constant else None
    return isinstance(held, _C.Tensor) and held.dim() == 0 and held.dtype != _C.bool


def _times(held: _C.Tensor, alpha: Value) -> _C.Tensor | None:
    """A constant times the number that it is multiplied by; None where that is no such constant."""
    if not alpha.is_constant or alpha.constant == 1:
        return held if alpha.is_constant else None
    made = held * alpha.constant
    return made if made.dtype == held.dtype else None


def _less(graph: Graph, value: Value, held: _C.Tensor) -> Value:
    """A value less a constant. The results that are 0.0 or -0.0 stay what they are."""
    if held.is_floating_point() or held.is_complex():
        return _behind(graph, "aten::add.Tensor", -held, value)
    if held == 0:  # -0.0 stays as it is; an integer has no 0 that added to it would leave it
        return _behind(graph, "aten::mul.Tensor", _C.ones_like(held), value)
    if held.is_signed():
        return _behind(graph, "aten::add.Tensor", -held, value)
    turned = _behind(graph, "aten::sub.Tensor", held, value)
    negative = graph.emit("aten::neg", (turned,), (ty.TENSOR,)).output
    return _behind(graph, "aten::add.Tensor", _C.zeros_like(held), negative)  # 0.0, not -0.0


def _behind(graph: Graph, kind: str, held: _C.Tensor, value: Value) -> Value:
    alpha = () if kind == "aten::mul.Tensor" else (graph.constant(1),)
    given = (graph.constant(held), value, *alpha)
    return graph.emit(kind, given, (ty.TENSOR,)).output


def split_tuples(graph: Graph, node: Node) -> None:
    """Tuples that both branches of an If make are made behind it, of what the branches give."""
    index = 0
    while index < len(node.outputs):
        if not _split_tuple(graph, node, index):
            index += 1


def _split_tuple(graph: Graph, node: Node, index: int) -> bool:
    output = node.outputs[index]
    made = [_only_tuple(block.returns[index], block) for block in node.blocks]
    for each in made:
        if each is None or [v.type for v in each.inputs] != list(output.type.children):
            return False
    parts = [node.add_output(type, output.name) for type in output.type.children]
    for block, each in zip(node.blocks, made):
        assert each is not None
        block.set_returns((*block.returns, *each.inputs))
        block.remove_return(index)
        each.destroy()
    with graph.inserting(after=node), graph.at_range(node.range):
        whole = graph.emit("prim::TupleConstruct", parts, (output.type,)).output
    output.replace_all_uses_with(whole)
    node.remove_output(index)
    return True


def drop_unchanged(node: Node) -> None:
    """What a loop or an If gives is left out where it is a value from before."""
    for index in reversed(range(len(node.outputs))):
        if node.kind == "prim::Loop":
            control_flow.drop_unchanged(node, index)
        elif node.kind == "prim::If":
            value, other = (block.returns[index] for block in node.blocks)
            if value is other and value.type == node.outputs[index].type:
                node.outputs[index].replace_all_uses_with(value)
                control_flow.remove_if_output(node, index)


def leave_out(node: Node, value: Value) -> None:
    """A value stands for the only output of a node, which goes; it takes the better name."""
    output = node.output
    output.replace_all_uses_with(value)
    name = output.name
    node.destroy()
    if value.name[:1].isdigit() or (value.name[:1] == "_" and name[:1].isalpha()):
        value.name = name


def sink_casts(graph: Graph) -> None:
    """Moves each cast into the branch that has all its uses. The compiler puts casts right behind
    the test that allows them, also where only one way from there needs them; who reads the text
    checks a cast where it stands."""
    for cast in reversed(list(graph.walk())):  # users first
        if cast.kind != "prim::unchecked_cast" or "checked" in cast.attrs:
            continue
        block, blocks = cast.owner, [_block_of(user) for user in cast.output.users]
        for step in zip(*[_branches(place, block) for place in blocks]):
            if len(set(step)) > 1:
                break
            block = step[0]
        if block is not cast.owner:
            cast.move_to_start(block)


def _block_of(user: Node | Block) -> Block:
    return user if isinstance(user, Block) else user.owner


def _branches(place: Block, block: Block) -> list[Block]:
    """The branches on the way from a block to a place within, up to the first loop."""
    found: list[Block] = []
    while place is not block:
        assert place.node is not None
        found = [place, *found] if place.node.kind == "prim::If" else []
        place = place.node.owner
    return found


def is_guarded(cast: Node) -> bool:
    """Whether a cast of an optional value to another type stands in a branch of a test for None."""
    value = cast.inputs[0]
    if not isinstance(value.type, ty.OptionalType) or cast.output.type != value.type.elem:
        return True
    block: Block | None = cast.owner
    while block is not None and block.node is not None:
        test = block.node.inputs[0].node if block.node.kind == "prim::If" else None
        if test is not None and test.name in _TESTS and test.inputs[0] is value:
            return block is block.node.blocks[_TESTS[test.name]]
        block = block.node.owner
    return False


_TESTS = {"aten::__isnot__": 0, "aten::__is__": 1}  # the branch in which there is a value


def guard(graph: Graph, cast: Node) -> None:
    """Puts a cast of an optional value into a branch of a test for None."""
    value, type = cast.inputs[0], cast.output.type
    with graph.inserting(before=cast), graph.at_range(cast.range):
        test = graph.emit("aten::__isnot__", (value, graph.constant(None)), (ty.BOOL,))
        choice = graph.emit("prim::If", test.outputs, (type,))
    yes, no = choice.add_block(), choice.add_block()
    with graph.inserting(at_end=no), graph.at_range(cast.range):
        if "checked" in cast.attrs:
            text = "unchecked_cast: expected a value, got None"
            error = {"exception": "RuntimeError"}
            graph.emit("prim::RaiseException", (graph.constant(text),), (), error)
        no.set_returns(graph.emit("prim::Uninitialized", (), (type,)).outputs)
    cast.output.replace_all_uses_with(choice.output)
    yes.set_returns(cast.outputs)
    cast.move_to_end(yes)


def leave_unread(graph: Graph, node: Node) -> None:
    """What `uninitialized(T)` was compiled to is that again."""
    with graph.inserting(before=node), graph.at_range(node.range):
        made = graph.emit("prim::Uninitialized", (), (node.output.type,))
    node.replace_outputs_with(made.outputs)
    node.destroy()


def give_type(node: Node) -> None:
    """tolist gives lists of the type to which its result is cast."""
    users = node.output.users
    cast = users[0] if len(users) == 1 else None
    if isinstance(cast, Node) and cast.kind == "prim::unchecked_cast":
        node.output.type = cast.output.type
        leave_out(cast, node.output)


def fold(graph: Graph, node: Node) -> None:
    """-inf, complex numbers and devices are constants, for which the text has no literal."""
    if not all(value.is_constant for value in node.inputs):
        return
    values = [value.constant for value in node.inputs]
    if node.kind == "aten::neg.float" and values[0] == math.inf:
        made: Any = -math.inf
    elif node.kind == "aten::Complex.float_float":
        made = complex(*values)
    elif node.name == "aten::device":
        made = _C.device(*values)
    else:
        return
    with graph.inserting(before=node):
        constant = graph.constant(made)
    leave_out(node, constant)


def build_constants(graph: Graph, node: Node) -> None:
    """Constant tuples and lists, which folding and freezing make, are made of constants where they
    are used: so the text is read."""
    for value in node.inputs:
        if value.is_constant and _is_built(value.type):
            with graph.inserting(before=node), graph.at_range(node.range):
                node.replace_input(value, _built(graph, value.constant, value.type))


def _is_built(type: ty.Type) -> bool:
    return isinstance(type, ty.ListType) or (isinstance(type, ty.TupleType) and type.name is None)


def _built(graph: Graph, value: Any, type: ty.Type) -> Value:
    if not _is_built(type):
        return graph.constant(value, type)
    is_list = isinstance(type, ty.ListType)
    types = type.children * len(value) if is_list else type.children
    parts = [_built(graph, part, each) for part, each in zip(value, types, strict=True)]
    kind = "prim::ListConstruct" if is_list else "prim::TupleConstruct"
    return graph.emit(kind, parts, (type,)).output


def unpack(node: Node) -> None:
    """Items of a tuple that is made here are read without it."""
    made = node.inputs[0].node
    if made is None or made.kind != "prim::TupleConstruct":
        return
    assert isinstance(node.inputs[0].type, ty.TupleType)
    if any(value.type != t for value, t in zip(made.inputs, node.inputs[0].type.elems)):
        return
    if node.kind == "prim::TupleIndex":
        node.output.replace_all_uses_with(made.inputs[node.attrs["index"]])
    else:
        node.replace_outputs_with(made.inputs)
    node.destroy()


def listed(call: Node) -> None:
    """Tuples of numbers that a call takes are made as lists, which operators take."""
    for value in call.inputs:
        made = _only_tuple(value, call.owner)
        if made is not None and len(set(value.type.children)) == 1:
            made.kind = "prim::ListConstruct"
            value.type = ty.ListType(value.type.children[0])


def sink_tuples(block: Block) -> None:
    """Tuples without a name are made where they are used, if that is one place in their block."""
    for value in block.returns:
        made = _only_tuple(value, block)
        if made is not None:
            made.move_to_end(block)
    for node in reversed(block):
        for value in node.inputs:
            made = _only_tuple(value, block)
            if made is not None:
                made.move_before(node)
        for inner in node.blocks:
            sink_tuples(inner)


def _only_tuple(value: Value, block: Block) -> Node | None:
    """The node that makes a value; None if it is no tuple that a block makes for one use."""
    made = value.node
    if made is None or made.kind != "prim::TupleConstruct" or made.owner is not block:
        return None
    assert isinstance(value.type, ty.TupleType)
    return made if value.type.name is None and len(value.users) == 1 else None
