"""Local rewriting: passes that change a node by what is next to it, where something changed.

A rule sees a node: who makes its inputs, who uses its results, the nodes of its blocks. It says
whether it changed anything; the node may be gone then. A pass of rules visits every node once, in
the order of the program, inner ones first, and after that those near which something has changed
(`Graph.touched`): a change costs what is near it, not a walk over the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weft.jit.ir import Block, Graph, Node
from weft.jit.passes.aliasing import AliasAnalysis
from weft.jit.passes.options import DEFAULT, Options

Rule = Callable[[Node, "Rewriter"], bool]
# What a pass does to nodes of a kind; None where that is nothing. Asked often.
RuleOf = Callable[[str], Rule | None]


def alone(rule_of: RuleOf) -> Callable[..., bool]:
    """A pass of these rules on a graph of its own."""

    def run(graph: Graph, options: Options = DEFAULT) -> bool:
        """Visits nodes until no rule fits; True if one did."""
        work = Rewriter(graph, options)
        changed = work.visit(rule_of)
        while changed and work.visit(rule_of):
            pass
        work.close()
        return changed

    return run


class Rewriter:
    """Passes of rules at work on one graph, which others may change between them."""

    def __init__(self, graph: Graph, options: Options) -> None:
        self.graph, self.options = graph, options
        self.constants: dict[object, Node] = {}  # see constant_pooling
        self.last_constant: Node | None = None
        self._waiting: dict[RuleOf, dict[Node, None]] = {}
        self._aliases: AliasAnalysis | None = None
        graph.touched = {}

    def visit(self, rule_of: RuleOf) -> bool:
        """Applies the rules to what waits for them; True if one did something. What that changes
        waits for the next visit."""
        self._look_around()
        self._aliases = None
        nodes = self._waiting.get(rule_of)
        if nodes is None:
            nodes = dict.fromkeys(_inner_first(self.graph.block, rule_of))
        self._waiting[rule_of], changed = {}, False
        for node in nodes:
            rule = rule_of(node.kind)
            if rule is not None and node.is_inserted:
                changed |= rule(node, self)
        return changed

    @property
    def aliases(self) -> AliasAnalysis:
        """Which values share memory. A rule that asks tells it of the values that it makes."""
        if self._aliases is None:
            self._aliases = self.graph.cached(AliasAnalysis)
        return self._aliases

    def close(self) -> None:
        """Nobody wants to know any more what changes in the graph."""
        self.graph.touched = None

    def _look_around(self) -> None:
        """What has changed waits to be visited again, with what looks at it: the node around it,
        its users, and theirs."""
        touched, self.graph.touched = self.graph.touched or {}, {}
        near: dict[Node, None] = {}
        for node in touched:
            if not node.is_inserted:
                continue
            near[node] = None
            if node.owner.node is not None:
                near[node.owner.node] = None
            if node.kind == "prim::Constant":
                continue  # its users were touched when they began to use it
            for user in _users(node):
                near[user] = None
                if user not in touched:
                    near.update(dict.fromkeys(_users(user)))
        for rule_of, waiting in self._waiting.items():
            waiting.update((node, None) for node in near if rule_of(node.kind))


def _inner_first(block: Block, rule_of: RuleOf) -> Iterator[Node]:
    """The nodes for which there are rules, those of nested blocks before the node around them."""
    for node in block.nodes:
        for inner in node.blocks:
            yield from _inner_first(inner, rule_of)
        if rule_of(node.kind):
            yield node


def _users(node: Node) -> Iterator[Node]:
    """The nodes that use what a node gives, or end a block with it."""
    for value in node.outputs:
        for user in value.users:
            found = user.node if isinstance(user, Block) else user
            if found is not None:
                yield found
