"""replace_pattern: finds a small graph in a larger one, and puts another in its place."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from weft.fx._symbolic_trace import symbolic_trace
from weft.fx.graph import Graph
from weft.fx.graph_module import GraphModule, _assign
from weft.fx.node import Node
from weft.nn import Module


class Match(NamedTuple):
    """Where a pattern was found: the pattern's last node, and the graph's node for each of it."""

    anchor: Node
    nodes_map: dict[Node, Node]


class ReplacedPatterns(NamedTuple):
    """As Match, with the nodes that were put in its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


class InternalMatch(NamedTuple):
    """What a filter of matches is given: `anchors` are nodes of the pattern, `placeholder_nodes`
    and `returning_nodes` what goes into the place and comes out of it."""

    anchors: list[Node]
    nodes_map: dict[Node, Node]
    placeholder_nodes: list[Node]
    returning_nodes: list[Node]


Pattern = Callable[..., Any] | Graph | GraphModule
Filter = Callable[[InternalMatch, Graph, Graph], bool]


class _Matcher:
    """Matches a pattern backwards from the values that it returns."""

    def __init__(self, pattern: Graph, ignore_literals: bool) -> None:
        self.pattern, self.ignore_literals = pattern, ignore_literals
        self.outputs = pattern.output_node().all_input_nodes
        self.placeholders = [n for n in pattern.nodes if n.op == "placeholder"]
        if len(self.outputs) != 1:
            raise ValueError(
                f"replace_pattern: expected a pattern that returns one value of its own, got "
                f"{len(self.outputs)}"
            )

    def match(self, anchor: Node) -> InternalMatch | None:
        found: dict[Node, Node] = {}
        if not self._node(self.outputs[0], anchor, found) or not self._is_closed(found):
            return None
        inputs = [found[node] for node in self.placeholders if node in found]
        return InternalMatch(self.outputs, found, inputs, [anchor])

    def _node(self, wanted: Node, given: Any, found: dict[Node, Node]) -> bool:
        if wanted in found:
            return found[wanted] is given
        if isinstance(given, Node) and given in found.values():
            return False
        if wanted.op == "placeholder":
            found[wanted] = given  # anything
            return True
        if not isinstance(given, Node):
            return False
        if (wanted.op, wanted.target) != (given.op, given.target):
            return False
        found[wanted] = given
        if len(wanted.args) != len(given.args) or wanted.kwargs.keys() != given.kwargs.keys():
            return False
        pairs = [*zip(wanted.args, given.args)]
        pairs += [(value, given.kwargs[key]) for key, value in wanted.kwargs.items()]
        return all(self._argument(a, b, found) for a, b in pairs)

    def _argument(self, wanted: Any, given: Any, found: dict[Node, Node]) -> bool:
        if isinstance(wanted, Node):
            return self._node(wanted, given, found)
        if isinstance(wanted, (tuple, list)):
            same = isinstance(given, (tuple, list)) and len(wanted) == len(given)
            return same and all(self._argument(a, b, found) for a, b in zip(wanted, given))
        if isinstance(given, Node):
            return False
        return self.ignore_literals or (type(wanted) is type(given) and wanted == given)

    def _is_closed(self, found: dict[Node, Node]) -> bool:
        """Whether nobody else uses what lies inside of the match."""
        inside = {n for p, n in found.items() if p.op != "placeholder" and p not in self.outputs}
        matched = set(map(id, found.values()))
        return all(id(user) in matched for node in inside for user in node.users)


def replace_pattern(gm: GraphModule, pattern: Pattern, replacement: Pattern) -> list[Match]:
    """Replaces all places of a graph that look like `pattern`, and gives them.

    pattern and replacement: functions, modules or graphs with as many inputs. A place matches
    where operators, targets and constants are the same, inputs being anything, and nobody else uses
    what lies inside. Places do not overlap; earlier ones win.

    >>> traced = weft.fx.symbolic_trace(lambda x, y: weft.relu(x + y))
    >>> places = weft.fx.replace_pattern(traced, lambda a, b: a + b, lambda a, b: a * b)
    >>> len(places), traced(weft.tensor([2.0]), weft.tensor([3.0]))
    (1, tensor([6.]))
    """
    done = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(each.anchor, each.nodes_map) for each in done]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Pattern,
    replacement: Pattern | None = None,
    match_filters: Iterable[Filter] | None = None,
    ignore_literals: bool = False,
    *,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """As replace_pattern, where all filters say yes to (match, graph, pattern's graph).

    ignore_literals: constants of the pattern match any other; replacement_callback: the replacement
    for one match, instead of `replacement`. Of node_name_match nothing but "" is allowed.
    """
    if node_name_match:
        raise NotImplementedError(f"node_name_match: expected '', got {node_name_match!r}")
    matcher = _Matcher(_graph_of(pattern), ignore_literals)
    fixed = None if replacement is None else _graph_of(replacement)
    if fixed is None and replacement_callback is None:
        raise ValueError("replace_pattern: expected a replacement or a callback, got neither")
    done: list[ReplacedPatterns] = []
    changed: dict[Node, Node] = {}
    for match in _matches(gm.graph, matcher, list(match_filters or ())):
        if replacement_callback is not None:
            graph = replacement_callback(match, gm.graph, matcher.pattern)
        else:
            graph = fixed  # type: ignore[assignment]
        done.append(_replace(gm.graph, matcher, match, graph, changed))
    gm.recompile()
    if isinstance(replacement, Module):
        _take_attributes(gm, replacement)
    return done


def _graph_of(pattern: Pattern) -> Graph:
    if isinstance(pattern, GraphModule):
        return pattern.graph
    return pattern if isinstance(pattern, Graph) else symbolic_trace(pattern).graph


def _matches(graph: Graph, matcher: _Matcher, filters: list[Filter]) -> list[InternalMatch]:
    taken: set[Node] = set()
    found = []
    for node in graph.nodes:
        match = matcher.match(node)
        if match is None or not all(each(match, graph, matcher.pattern) for each in filters):
            continue
        inside = {n for p, n in match.nodes_map.items() if p.op != "placeholder"}
        if inside.isdisjoint(taken):
            taken |= inside
            found.append(match)
    return found


def _replace(
    graph: Graph,
    matcher: _Matcher,
    match: InternalMatch,
    replacement: Graph,
    changed: dict[Node, Node],
) -> ReplacedPatterns:
    """Puts one replacement in; `changed` are the nodes that earlier ones put in place of others."""
    inputs = [n for n in replacement.nodes if n.op == "placeholder"]
    for node in matcher.placeholders:  # what an earlier place has become
        value = match.nodes_map.get(node)
        if isinstance(value, Node) and value in changed:
            match.nodes_map[node] = changed[value]
    given = [match.nodes_map[n] for n in matcher.placeholders if n in match.nodes_map]
    if len(inputs) != len(given):
        raise ValueError(
            f"replace_pattern: expected a replacement of {len(given)} inputs, got {len(inputs)}"
        )
    (anchor,) = match.returning_nodes
    values: dict[Node, Any] = dict(zip(inputs, given))
    users = set(anchor.users)
    first = next(n for n in graph.nodes if n in users) if users else anchor.next
    before = set(values)
    with graph.inserting_before(first):
        result: Any = graph.graph_copy(replacement, values)
    made = [values[n] for n in replacement.nodes if n in values and n not in before]
    if isinstance(result, (tuple, list)):
        (result,) = result
    anchor.replace_all_uses_with(result)
    changed[anchor] = result
    inside = {n for p, n in match.nodes_map.items() if p.op != "placeholder"}
    for node in reversed(graph.nodes):
        if node in inside and not node.users:
            graph.erase_node(node)
    return ReplacedPatterns(match.anchors[0], match.nodes_map, made)


def _take_attributes(gm: GraphModule, replacement: Module) -> None:
    """Gives the module what nodes of the replacement name."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        if not _reaches(gm, str(node.target)) and _reaches(replacement, str(node.target)):
            _assign(gm, str(node.target), copy.deepcopy(_at(replacement, str(node.target))))
    gm.graph.lint()


def _at(root: Any, target: str) -> Any:
    for part in target.split("."):
        root = getattr(root, part)
    return root


def _reaches(root: Any, target: str) -> bool:
    try:
        _at(root, target)
    except AttributeError:
        return False
    return True


__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]
