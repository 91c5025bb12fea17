"""Inlining: calls of known functions and methods become their nodes.

    %y : int = prim::CallFunction[function=@twice](%x)   =>   %y : int = aten::add.int(%x, %x)

A call of a function from within itself stays, and so does a call that would make the graph too
large. Large functions that are called often are compiled once instead: their calls are redirected
to the optimised function. Nodes remember where they were called from.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.jit.ir import ClassType, Function, clone_node
from weft.jit.ir.graph import Block, Graph, Node, Value
from weft.jit.ir.source import SourceRange
from weft.jit.passes import quantized
from weft.jit.passes.options import DEFAULT, Options


def run(
    graph: Graph,
    options: Options = DEFAULT,
    bodies: Mapping[Function, Graph] | None = None,
    within: tuple[Function, ...] = (),
    shared: Mapping[Function, Function] | None = None,
) -> bool:
    """Inlines every call it can; True if there was one. `bodies`: graphs to take for those of
    functions. `within`: the function that the graph is of, if calls of it are to stay. `shared`:
    functions to call in the place of others, which are not inlined."""
    inliner = _Inliner(options.inline_limit, bodies or {}, shared or {})
    inliner.block(graph.block, within)
    return inliner.changed


def called_often(graph: Graph) -> list[Function]:
    """The functions that inlining would put into the graph more than once, each behind those that
    it calls."""
    counts: dict[Function, int] = {}
    order: list[Function] = []

    def visit(inner: Graph) -> None:
        for node in inner.walk():
            function = callee(node)
            if function is None or quantized.stays(node):
                continue
            known = function in counts
            counts[function] = counts.get(function, 0) + 1
            if not known:
                visit(function.graph)
                order.append(function)

    visit(graph)
    return [function for function in order if counts[function] > 1]


_CALLS = frozenset(("prim::CallFunction", "prim::CallMethod"))


class _Inliner:
    def __init__(
        self, limit: int, bodies: Mapping[Function, Graph], shared: Mapping[Function, Function]
    ) -> None:
        self.budget = limit
        self.bodies = bodies
        self.shared = shared
        self.redirected = set(shared.values())
        self.facts: dict[Graph, tuple[int, bool]] = {}
        self.changed = False

    def block(self, block: Block, callers: tuple[Function, ...]) -> None:
        for node in block:
            self.node(node, callers)

    def node(self, node: Node, callers: tuple[Function, ...]) -> None:
        for block in node.blocks:
            self.block(block, callers)
        function = None if quantized.stays(node) else callee(node)
        if function is None or function in callers or function in self.redirected:
            return
        if function in self.shared:
            self._redirect(node, self.shared[function])
            return
        graph = self.bodies.get(function, function.graph)
        size, calls = self._facts_of(graph)
        if size > self.budget:
            return
        self.budget -= size
        self.changed = True
        added = self._replace(node, graph.block)
        if calls:
            for inner in added:
                self.node(inner, (*callers, function))

    def _facts_of(self, graph: Graph) -> tuple[int, bool]:
        """How many nodes a graph has, and whether there is a call among them."""
        known = self.facts.get(graph)
        if known is None:
            calls = [node.kind in _CALLS for node in graph.walk()]
            known = self.facts[graph] = len(calls), any(calls)
        return known

    def _redirect(self, call: Node, function: Function) -> None:
        """Calls another function, of equal arguments and results."""
        self.changed = True
        types = [value.type for value in call.outputs]
        with call.graph.inserting(before=call):
            new = call.graph.emit(
                "prim::CallFunction", call.inputs, types, {"function": function}, call.range
            )
        call.replace_outputs_with(new.outputs)
        call.destroy()

    def _replace(self, call: Node, body: Block) -> list[Node]:
        """Puts a copy of a function's nodes in the place of the call."""
        mapping: dict[Value, Value] = dict(zip(body.params, call.inputs))
        added = [clone_node(node, call.owner, mapping, before=call) for node in body]
        callers: dict[SourceRange, SourceRange] = {}
        for node in added:
            _called_from(node, call.range, callers)
        call.replace_outputs_with([mapping.get(value, value) for value in body.returns])
        call.destroy()
        return added


def _called_from(
    node: Node, call: SourceRange | None, known: dict[SourceRange, SourceRange]
) -> None:
    """Says of a node and of those in it where they were called from."""
    for inner in (node, *node.walk()) if node.blocks else (node,):
        if inner.range is not None and call is not None:
            inner.range = inner.range.called_from(call, known)


def callee(node: Node) -> Function | None:
    """The function that a node calls, if it is known before the program runs."""
    if node.kind == "prim::CallFunction":
        return node.attrs["function"]
    if node.kind == "prim::CallMethod" and isinstance(node.inputs[0].type, ClassType):
        return node.inputs[0].type.methods.get(node.attrs["name"])
    return None
