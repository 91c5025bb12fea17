"""Peephole optimisation: applies the rows of algebra.py, node by node.

Rows say what is the same in value. Here is checked what holds for all of them: that nobody can tell
a tensor from the one that takes its place.
"""

from __future__ import annotations

from weft.jit.ir import TENSOR, Node, is_subtype
from weft.jit.passes import algebra
from weft.jit.passes.identity import is_only_read
from weft.jit.passes.patterns import match
from weft.jit.passes.rewriting import Rewriter, Rule, alone


def rule_of(kind: str) -> Rule | None:
    return _apply if kind in algebra.BY_KIND else None


def _apply(node: Node, work: Rewriter) -> bool:
    if len(node.outputs) != 1:
        return False
    return any(
        _replace(row, node, work)
        for row in algebra.BY_KIND[node.kind]
        if row.exact or work.options.fast_math
    )


def _replace(row: algebra.Rule, node: Node, work: Rewriter) -> bool:
    found = match(row.pattern, node)
    if found is None:
        return False
    is_told_apart = node.output.type is TENSOR and row.exact and not row.identical
    if is_told_apart and not _may_replace(node, work):
        return False
    graph, before = node.graph, node.prev
    with graph.inserting(before=node), graph.at_range(node.range):
        value = row.replace(found)
    made: list[Node] = []
    while (last := made[-1].prev if made else node.prev) is not before:
        assert last is not None
        made.append(last)
    if value is None or not is_subtype(value.type, found.output.type):
        for each in made:
            each.destroy()
        return False
    if is_told_apart:
        for new in (value, *(output for each in made for output in each.outputs)):
            work.aliases.add_alias(new, node.output)
    node.output.replace_all_uses_with(value)
    node.destroy()
    return True


def _may_replace(node: Node, work: Rewriter) -> bool:
    """Whether what a node gives may be another tensor with the same contents: all its uses only
    read it, and nothing writes to it as such (not even its sizes)."""
    return is_only_read(node.output) and not work.aliases.is_written(node.output)


run = alone(rule_of)
