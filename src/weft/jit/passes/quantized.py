"""Quantised tensors as the integers that they are.

    %y : Tensor = prim::CallFunction[function=@conv](%x, %weight, %scale, %zero)
        =>  %t : (Tensor, float, int) = prim::CallFunction[function=@conv_integers](%x', ...)

A program of an archive has for a quantised tensor the numbers that it stands for, and functions of
weft for its operators. For some of them other functions are registered here, which take and give
integers with their scale and zero point. Values between them stay integers; who else asks gets the
numbers. Calls of such functions are not inlined before this has seen them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from weft.jit.ir import FLOAT, INT, TENSOR, Function, Graph, Node, TupleType, Value
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Block
from weft.jit.ir.relations import is_subtype
from weft.jit.passes.operators import has_tag, operator_of, written_tensors

INTEGERS = TupleType((TENSOR, FLOAT, INT))
_INSTANCE = re.compile(r"__\d+$")  # of a function compiled for further types


class Known(NamedTuple):
    """What is registered of a function or an operator."""

    #: makes the function that takes integers in its place, and `more` after its arguments
    integers: Callable[[], Function] | None = None
    more: tuple[bool, ...] = ()
    #: Its result is rounded to the scale and zero point that it is told.
    rounded: bool = False
    #: It is called for what has no integers of 8 bits: nobody inlines it.
    seldom: bool = False
    #: Programs without quantised tensors have it as well.
    common: bool = False


#: by names of functions and operators
KNOWN: dict[str, Known] = {}
_NOTHING = Known()
#: what goes from one form to the other: the numbers of integers, and the integers of numbers that
#: are known to be of a scale and zero point
NUMBERS, QUANTIZE = "numbers", "quantize"


def known_of(node: Node) -> Known:
    """What is known of the function that a node calls."""
    if node.kind != "prim::CallFunction" or not KNOWN:
        return _NOTHING
    return KNOWN.get(_INSTANCE.sub("", node.attrs["function"].name), _NOTHING)


def is_waiting(node: Node) -> bool:
    """Whether a node calls such a function."""
    known = known_of(node)
    return known.integers is not None or known.rounded


def is_quantized(node: Node) -> bool:
    """Whether a node is an operator of quantised tensors, not one that others have, too."""
    return is_waiting(node) and not known_of(node).common


def is_within(
    function: Function, callee: Callable[[Node], Function | None], known: set[int] | None = None
) -> bool:
    """Whether a call of the function may reach such operators."""
    known = set() if known is None else known
    if not KNOWN or id(function) in known:
        return False
    known.add(id(function))
    return any(
        is_quantized(node)
        or ((each := callee(node)) is not None and is_within(each, callee, known))
        for node in function.graph.walk()
    )


def stays(node: Node) -> bool:
    """Whether a call is not to be inlined, or not yet."""
    return is_waiting(node) or known_of(node).seldom


def lower(graph: Graph, is_last: bool, inline: Callable[[], Any]) -> bool:
    """Puts integers in the place of numbers, and inlines what is left. A graph that is not the one
    to run keeps its quantised operators. True if there was one."""
    changed = False
    if is_last or not any(map(is_quantized, graph.walk())):
        while run(graph):
            inline()
            changed = True
    return changed


def run(graph: Graph) -> bool:
    """Puts integers in the place of numbers wherever functions are known that take them; the calls
    that are left may be inlined. True if there was one."""
    if not KNOWN or not any(map(is_waiting, graph.walk())):
        return False
    lowering = _Lowering(graph)
    lowering.block(graph.block)
    lowering.finish()
    return True


class _Lowering:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.forms: dict[Value, Value] = {}  # integers by numbers
        self.lists: dict[Value, list[Value]] = {}
        # What is written to in place would have to be written to in both forms.
        self.may_change = any(
            ty.non_none(value.type) == TENSOR
            for node in graph.walk()
            for value in written_tensors(node)
        )

    def block(self, block: Block) -> None:
        for node in list(block):
            for inner in node.blocks:
                self.block(inner)
            if is_waiting(node):
                self.call(node)
            elif node.kind == "prim::If":
                self.branches(node)
            elif node.kind == "prim::ListConstruct" and self.forms.keys() >= {*node.inputs}:
                self.lists[node.output] = [self.forms[v] for v in node.inputs]
            elif any(v in self.forms or v in self.lists for v in node.inputs):
                self.operator(node)

    def call(self, node: Node) -> None:
        known = known_of(node)
        made = self.lowered(node, known)
        if made is None:  # by numbers
            function = node.attrs["function"]
            node.attrs["function"] = Function(
                f"{function.name}.numbers", function.graph, function.arg_names
            )
            told = tuple(v.type for v in node.inputs[-2:]) == (FLOAT, INT)  # scale and zero point
            if known.rounded and told and not self.may_change:
                with self.graph.inserting(after=node), self.graph.at_range(node.range):
                    self.forms[node.output] = self.emit(
                        QUANTIZE, [node.output, *node.inputs[-2:]], INTEGERS
                    )

    def lowered(self, node: Node, known: Known) -> Value | None:
        """The call of what takes integers; None where its arguments are none."""
        made = None if known.integers is None else known.integers()
        if made is None or len(made.graph.inputs) != len(node.inputs) + len(known.more):
            return None
        result = made.return_type
        if self.may_change and INTEGERS in (result, *(v.type for v in made.graph.inputs)):
            return None
        with self.graph.inserting(before=node), self.graph.at_range(node.range):
            found = [self.given(v, p.type) for v, p in zip(node.inputs, made.graph.inputs)]
            given = [each for each in found if each is not None]
            if len(given) < len(found):
                return None
            given += map(self.graph.constant, known.more)
            output = self.emit(made, given, result)
        if result == INTEGERS:
            self.forms[node.output] = output
        else:
            node.output.replace_all_uses_with(output)
            node.destroy()
        return output

    def given(self, value: Value, wanted: ty.Type) -> Value | None:
        """A value as an argument of that type."""
        if wanted == INTEGERS:
            return self.forms.get(value)
        if wanted == ty.ListType(INTEGERS):
            items = self.lists.get(value)
            if not items:
                return None
            return self.graph.emit("prim::ListConstruct", items, [wanted]).output
        return value if is_subtype(value.type, wanted) else None

    def emit(self, function: Function | str, inputs: list[Value], type: ty.Type) -> Value:
        if isinstance(function, str):
            made = KNOWN[function].integers
            assert made is not None
            function = made()
        attrs = {"function": function}
        return self.graph.emit("prim::CallFunction", inputs, [type], attrs).output

    def operator(self, node: Node) -> None:
        """An operator of integers, or one that moves them, or asks for sizes alone."""
        if self.lowered(node, KNOWN.get(node.name, _NOTHING)) is not None:
            return
        first = self.forms.get(node.inputs[0])
        if first is None or any(v in self.forms for v in node.inputs[1:]):
            return
        with self.graph.inserting(before=node), self.graph.at_range(node.range):
            if has_tag(node, "metadata"):
                node.set_input(0, self.item(first, 0))
            elif _moves(node):
                inputs = [self.item(first, 0), *node.inputs[1:]]
                moved = self.graph.emit(node.kind, inputs, [TENSOR], node.attrs).output
                parts = [moved, self.item(first, 1), self.item(first, 2)]
                self.forms[node.output] = self.graph.emit(
                    "prim::TupleConstruct", parts, [INTEGERS]
                ).output

    def item(self, form: Value, index: int) -> Value:
        type = INTEGERS.elems[index]
        return self.graph.emit("prim::TupleIndex", [form], [type], {"index": index}).output

    def branches(self, node: Node) -> None:
        """Results that are integers in both branches."""
        for index, value in enumerate(list(node.outputs)):
            ends = [self.forms[v] for b in node.blocks if (v := b.returns[index]) in self.forms]
            if len(ends) == len(node.blocks):
                for block, end in zip(node.blocks, ends):
                    block.set_returns([*block.returns, end])
                self.forms[value] = node.add_output(INTEGERS)

    def finish(self) -> None:
        """Gives numbers to those who ask for them; the nodes that made them go."""
        for value, form in reversed(self.forms.items()):
            node, made = value.node, form.node
            assert node is not None and made is not None
            if node.kind == "prim::If":
                self.leave(value, form, node)
            elif name_of_numbers(node):
                continue
            else:
                self.show(value, form, made)
                node.destroy()

    def show(self, value: Value, form: Value, made: Node) -> None:
        if value.has_uses:
            with self.graph.inserting(after=made), self.graph.at_range(made.range):
                numbers = self.emit(NUMBERS, [form], TENSOR)
            value.replace_all_uses_with(numbers)

    def leave(self, value: Value, form: Value, node: Node) -> None:
        self.show(value, form, node)
        index = node.outputs.index(value)
        for block in node.blocks:
            block.set_returns([*block.returns[:index], *block.returns[index + 1 :]])
        node.remove_output(index)


def _moves(node: Node) -> bool:
    """Whether each element of its result is one of its first argument."""
    operator = operator_of(node)
    if operator is None or operator.row is None or [v.type for v in node.outputs] != [TENSOR]:
        return False
    if "picks" in operator.tags:
        return True
    alias, others = operator.args[0].alias, {ty.non_none(arg.type) for arg in operator.args[1:]}
    is_view = bool(alias) and operator.returns[0].alias == alias and not operator.writes
    return is_view and not others & {TENSOR, ty.DTYPE} and "view_dtype" not in operator.tags


def name_of_numbers(node: Node) -> bool:
    """Whether a node is a call by numbers."""
    return node.kind == "prim::CallFunction" and node.attrs["function"].name.endswith(".numbers")
