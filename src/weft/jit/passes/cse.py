"""Common subexpression elimination: what was computed already is not computed again.

Two nodes are one if they are the same operator with the same inputs, nothing wrote in between to
memory they read, and nobody can tell their results apart:

- a result that can be written to, or that goes outside, is not shared;
- where gradients may be recorded, a differentiable result is not shared either: two gradients
  would be added up before they are handed on, and a sum of floats depends on its order. What is
  read from an attribute is the same tensor each time; as one value its gradients are added up in
  the order of its uses.
"""

from __future__ import annotations

import functools
from typing import Any

from weft.jit.ir import Graph, Node, Value
from weft.jit.ir.graph import Block
from weft.jit.ir.literals import text_of
from weft.jit.passes.aliasing import AliasAnalysis
from weft.jit.passes.effects import effects_of_kind
from weft.jit.passes.gradients import may_record
from weft.jit.passes.identity import is_only_read
from weft.jit.passes.operators import is_mutable, operator_of, operator_of_kind, written
from weft.jit.passes.options import DEFAULT, Options

# Two of them are two values, whatever their inputs.
_DISTINCT = frozenset(("prim::CreateObject", "prim::Uninitialized", "prim::Constant"))


def run(graph: Graph, options: Options = DEFAULT) -> bool:
    """Removes repeated nodes in every block, using those of the blocks around it; True if any."""
    if not _repeats(graph):
        return False
    search = _Search(graph.cached(AliasAnalysis), options)
    search.block(graph.block)
    for again, first in search.same:
        again.replace_outputs_with(first.outputs)
        again.destroy()
    return bool(search.same)


def _repeats(graph: Graph) -> bool:
    """Whether two nodes of one kind have the same inputs, in any order: before anything is shared,
    others are not the same. Saves the analysis where there are none."""
    seen = set()
    for node in graph.walk():
        if not node.blocks and _may_repeat(node.kind):
            key = (node.kind, frozenset(node.inputs))
            if key in seen:
                return True
            seen.add(key)
    return False


class _Search:
    def __init__(self, aliases: AliasAnalysis, options: Options) -> None:
        self.aliases = aliases
        self.options = options
        self.time = 0  # how many nodes so far
        self.written: dict[Any, int] = {}  # by cells, when last
        self.precision = 0  # when autocast was last entered or left
        self.known: dict[Any, tuple[Node, int]] = {}  # nodes that have run, and when
        self.stands_for: dict[Value, Value] = {}
        self.same: list[tuple[Node, Node]] = []

    def block(self, block: Block) -> None:
        """Nodes of a block, which see those that have run before in it and in those around it."""
        before: list[tuple[Any, tuple[Node, int] | None]] = []
        for node in block:
            self.time += 1
            if node.kind in ("prim::EnterAutocast", "prim::ExitAutocast"):
                self.precision = self.time
            self._look_up(node, before)
            if node.kind == "prim::Loop":  # a trip sees what the trips before it wrote
                self._wrote(node)
            for inner in node.blocks:
                self.block(inner)
            if not node.blocks:
                self._wrote(node)
        for key, entry in reversed(before):
            if entry is None:
                del self.known[key]
            else:
                self.known[key] = entry

    def _wrote(self, node: Node) -> None:
        for cell in self.aliases.writes(node):
            self.written[cell] = self.time

    def _look_up(self, node: Node, before: list[tuple[Any, tuple[Node, int] | None]]) -> None:
        """Finds what a node repeats. `before`: what was known in the place of what now is."""
        if not self._is_candidate(node):
            return
        key = self._key(node)
        found = self.known.get(key)
        if found is None or self._has_changed(node, found[1]):
            before.append((key, found))
            self.known[key] = node, self.time
        elif all(map(self._may_share, found[0].outputs, node.outputs)):
            self.same.append((node, found[0]))
            self.stands_for.update(zip(node.outputs, found[0].outputs))

    def _is_candidate(self, node: Node) -> bool:
        if node.blocks or not node.outputs or not _may_repeat(node.kind):
            return False
        return not written(node)

    def _has_changed(self, node: Node, since: int) -> bool:
        """Whether anything was written since then that a node depends on."""
        inputs = [self.stands_for.get(value, value) for value in node.inputs]
        return self.precision > since or any(
            self.written.get(cell, 0) > since for cell in self.aliases.reads(inputs)
        )

    def _key(self, node: Node) -> Any:
        inputs = [self.stands_for.get(value, value) for value in node.inputs]
        if len(inputs) == 2 and _commutes(node):
            inputs.sort(key=id)
        attrs = [(name, text_of(value)) for name, value in node.attrs.items()]
        types = [value.type for value in node.outputs]
        return (node.kind, *attrs, *types, *inputs)

    def _may_share(self, first: Value, again: Value) -> bool:
        if not is_mutable(first.type):
            return True
        is_read = first.node is not None and first.node.kind == "prim::GetAttr"
        if self.options.gradients and may_record(first) and not is_read:
            return False
        if self.aliases.is_written(first) or self.aliases.is_written(again):
            return False
        return is_only_read(first) or is_only_read(again)


@functools.cache
def _may_repeat(kind: str) -> bool:
    """Whether two nodes of a kind without blocks are one, if they only read and what they read is
    the same."""
    if kind in _DISTINCT or effects_of_kind(kind):
        return False
    operator = operator_of_kind(kind)
    return operator is None or not operator.nondeterministic


def _commutes(node: Node) -> bool:
    """Numbers only: the order of tensors decides the layout of the result."""
    operator = operator_of(node)
    if operator is None or not operator.commutative:
        return False
    return not any(is_mutable(value.type) for value in node.inputs)
