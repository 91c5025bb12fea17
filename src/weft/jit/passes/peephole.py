"""Peephole optimisation: applies the rows of algebra.py, node by node.

Rows say what is the same in value. Here is checked what holds for all of them: that nobody can tell
a tensor from the one that takes its place, and that gradients are added up in the same order.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from weft.jit.ir import TENSOR, Graph, Node, Value, is_subtype
from weft.jit.passes.algebra import BY_KIND, Rule
from weft.jit.passes.aliasing import AliasAnalysis
from weft.jit.passes.gradient_paths import GradientPaths
from weft.jit.passes.gradients import may_record
from weft.jit.passes.identity import is_only_read
from weft.jit.passes.options import DEFAULT, Options
from weft.jit.passes.patterns import Match, match

if TYPE_CHECKING:
    from weft.jit.passes.gradient_paths import GradientPaths


def run(graph: Graph, options: Options = DEFAULT) -> bool:
    """Applies rules until none fits; True if one did."""
    return _Peephole(graph, options).run()


@functools.cache
def _rows(kind: str, fast_math: bool) -> list[Rule]:
    """The rows whose root may be of a kind."""
    return [row for row in BY_KIND.get(kind, ()) if row.exact or fast_math]


class _Peephole:
    def __init__(self, graph: Graph, options: Options) -> None:
        self.graph = graph
        self.options = options
        self.aliases: AliasAnalysis | None = None
        self.paths: GradientPaths | None = None

    def run(self) -> bool:
        changed, again = False, True
        while again:
            again = False
            for node in list(self.graph.walk()):
                rows = _rows(node.kind, self.options.fast_math)
                if rows and node.is_inserted and len(node.outputs) == 1:
                    again |= any(self._apply(row, node) for row in rows)
            changed |= again
        return changed

    def _apply(self, row: Rule, node: Node) -> bool:
        found = match(row.pattern, node)
        if found is None or not (row.identical or not row.exact or self._may_replace(found)):
            return False
        graph, before = self.graph, node.prev
        # Both analyses are made before the graph changes, and kept up to date afterwards: making
        # them anew for every change would take time quadratic in the size of the graph.
        if found.output.type == TENSOR and row.exact:
            self._prepare(found)
        with graph.inserting(before=node), graph.at_range(node.range):
            value = row.replace(found)
        if value is None or not self._fits(value, found, row):
            self._take_back(before, node)
            return False
        self._keep_up(node, value, before)
        node.output.replace_all_uses_with(value)
        node.destroy()
        return True

    def _prepare(self, found: Match) -> None:
        if self.options.gradients and self.paths is None and may_record(found.output):
            self.paths = GradientPaths(self.graph)

    def _keep_up(self, node: Node, value: Value, before: Node | None) -> None:
        """Tells the analyses that `value` takes the place of what the node gives, and of the nodes
        made for that."""
        made: list[Node] = []
        while (last := made[-1].prev if made else node.prev) is not before:
            assert last is not None
            made.append(last)
        if self.aliases is not None:
            for new in (value, *(output for each in made for output in each.outputs)):
                self.aliases.add_alias(new, node.output)
        if self.paths is not None:
            self.paths.replace(node, value, made)

    def _take_back(self, before: Node | None, node: Node) -> None:
        """Removes what a replacement that does not fit has made before the node."""
        while node.prev is not before:
            assert node.prev is not None
            node.prev.destroy()

    def _may_replace(self, found: Match) -> bool:
        """Whether a tensor may be another one with the same contents: all its uses only read it,
        and nothing writes to it as such (not even its sizes)."""
        output = found.output
        if output.type != TENSOR:
            return True
        return is_only_read(output) and not self._analysis().is_written(output)

    def _fits(self, value: Value, found: Match, row: Rule) -> bool:
        if not is_subtype(value.type, found.output.type):
            return False
        return row.identical or not row.exact or self._keeps_gradients(value, found)

    def _keeps_gradients(self, value: Value, found: Match) -> bool:
        """Whether gradients reach `value`, and what the pattern starts from, in the same order.

        Each value in the pattern must have one use that sends gradients back, so that no other
        gradient can come in between. Of the root's own users, several add up before they go on;
        that must not become a longer sum with gradients from outside.
        """
        if not self.options.gradients or not may_record(found.output):
            return True
        assert self.paths is not None
        starts = [v for v in found.values.values() if v.type == TENSOR]
        if not all(map(self.paths.has_one, [*(node.output for node in found.inner), *starts])):
            return False
        if value not in starts or self.paths.has_one(found.output):
            return True
        return not self._analysis().is_external(value)

    def _analysis(self) -> AliasAnalysis:
        if self.aliases is None:
            self.aliases = AliasAnalysis(self.graph)
        return self.aliases
