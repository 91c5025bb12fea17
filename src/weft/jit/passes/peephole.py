"""Peephole optimisation: applies the rows of algebra.py, node by node.

Rows say what is the same in value. Here is checked what holds for all of them: that nobody can tell
a tensor from the one that takes its place.
"""

from __future__ import annotations

import functools

from weft.jit.ir import TENSOR, Graph, Node, Value, is_subtype
from weft.jit.passes.algebra import BY_KIND, Rule
from weft.jit.passes.aliasing import AliasAnalysis
from weft.jit.passes.identity import is_only_read
from weft.jit.passes.options import DEFAULT, Options
from weft.jit.passes.patterns import Match, match


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
        with graph.inserting(before=node), graph.at_range(node.range):
            value = row.replace(found)
        if value is None or not is_subtype(value.type, found.output.type):
            self._take_back(before, node)
            return False
        self._keep_up(node, value, before)
        node.output.replace_all_uses_with(value)
        node.destroy()
        return True

    def _keep_up(self, node: Node, value: Value, before: Node | None) -> None:
        """Tells the aliases that `value` takes the place of what the node gives, and of the nodes
        made for that: an analysis for every change would take time quadratic in the graph."""
        if self.aliases is None:
            return
        made: list[Node] = []
        while (last := made[-1].prev if made else node.prev) is not before:
            assert last is not None
            made.append(last)
        for new in (value, *(output for each in made for output in each.outputs)):
            self.aliases.add_alias(new, node.output)

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

    def _analysis(self) -> AliasAnalysis:
        if self.aliases is None:
            self.aliases = AliasAnalysis(self.graph)
        return self.aliases
