"""split_module: one graph as several modules that call each other's results."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from weft.fx.graph import Graph
from weft.fx.graph_module import GraphModule, _owner
from weft.fx.node import Node, map_arg
from weft.nn import Module


class _Part:
    """A module to be: its nodes of the whole graph, and what goes in and out."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[Node] = []
        self.inputs: dict[Node, None] = {}
        self.outputs: dict[Node, None] = {}
        self.needs: set[_Part] = set()
        self.users: dict[_Part, None] = {}
        self.graph = Graph()
        self.made: dict[Node, Node] = {}  # nodes of the whole graph, in this one's
        self.targets: dict[str, Any] = {}

    def returns(self, as_tuple: bool) -> bool:
        """Whether its result is a tuple, of several values or because that is asked for."""
        return len(self.outputs) > 1 or (as_tuple and bool(self.outputs))


def split_module(
    m: GraphModule,
    root_m: Module,
    split_callback: Callable[[Node], Any],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A module that does what `m` does, with its operations in submodules submod_<part>.

    split_callback says the part of each node (inputs and attributes have none; attributes are
    given to the parts as arguments); partition_affix stands before it in the name.
    qualname_map: filled with the new dotted names of modules, and their old ones.
    keep_original_order: parts are called in the order of their first nodes, not as they need each
    other. keep_original_node_name, keep_original_input_name: nodes and inputs of the parts have
    the old names. tuple_return: parts return tuples for one value, too. root_m is not used.
    RuntimeError where two parts need each other.

    >>> from weft.fx.passes.split_module import split_module
    >>> traced = weft.fx.symbolic_trace(lambda x: weft.relu(x + 1))
    >>> halves = split_module(traced, traced, lambda node: int(node.target is weft.relu))
    >>> print(halves.code.strip())
    def forward(self, x):
        submod_0 = self.submod_0(x);  x = None
        submod_1 = self.submod_1(submod_0);  submod_0 = None
        return submod_1
    """
    parts = _parts_of(m.graph, split_callback, partition_affix)
    ordered = _in_order_of_needs(list(parts.values()))
    for part in ordered:
        _add_inputs(part, m, keep_original_input_name)
        _add_nodes(part, m, bool(keep_original_node_name), qualname_map)
        results = tuple(part.made[node] for node in part.outputs)
        part.graph.output(results if len(results) != 1 or tuple_return else results[0])
    called = list(parts.values()) if keep_original_order else ordered
    whole = _Whole(m, bool(keep_original_node_name))
    whole.take(n for n in m.graph.nodes if n.op == "placeholder" or not keep_original_order)
    for part in called:
        whole.take(part.inputs)
        whole.call(part, tuple_return)
    made = whole.finish()
    made.meta["partition_names"] = {part.name for part in called}
    return made


def _parts_of(graph: Graph, chosen: Callable[[Node], Any], affix: str | None) -> dict[str, _Part]:
    """The parts by name, in the order of their first nodes, with what crosses their borders."""
    parts: dict[str, _Part] = {}
    part_of: dict[Node, _Part] = {}
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        name = "_".join(["submod", *([] if affix is None else [affix]), str(chosen(node))])
        part_of[node] = parts.setdefault(name, _Part(name))
        part_of[node].nodes.append(node)
    for node in graph.nodes:
        for used in node.all_input_nodes if node.op in ("output", *_CALLS) else ():
            _note_use(used, part_of.get(used), part_of.get(node))
    return parts


_CALLS = ("call_function", "call_method", "call_module")


def _note_use(value: Node, source: _Part | None, user: _Part | None) -> None:
    if source is user:
        return
    if source is not None:
        source.outputs[value] = None
    if user is not None:
        user.inputs[value] = None
    if source is not None and user is not None:
        user.needs.add(source)
        source.users[user] = None


def _in_order_of_needs(parts: list[_Part]) -> list[_Part]:
    """Each part behind those that it needs; of those that could be next, what became free last."""
    free = [part for part in parts if not part.needs]
    missing = {part: len(part.needs) for part in parts}
    ordered: list[_Part] = []
    while free:
        ordered.append(free.pop())
        for user in ordered[-1].users:
            missing[user] -= 1
            if not missing[user]:
                free.append(user)
    if len(ordered) != len(parts):
        raise RuntimeError("cycle exists between partitions!")
    return ordered


def _value(m: GraphModule, target: str) -> Any:
    owner, name = _owner(m, target)
    return getattr(owner, name)


def _add_inputs(part: _Part, m: GraphModule, keep_names: bool) -> None:
    """Inputs of a part's graph. Modules that are values cannot be arguments: the part has them."""
    modules = {n: v for n in part.inputs if (v := _module_behind(n, m)) is not None}
    part.inputs = {node: None for node in part.inputs if node not in modules}
    for i, node in enumerate(part.inputs):
        name = node.name if keep_names else f"arg_{i}"
        part.made[node] = part.graph.placeholder(name, type_expr=node.type)
    for node, module in modules.items():
        part.made[node] = part.graph.get_attr(str(node.target))
        part.targets[str(node.target)] = module
    for node, made in part.made.items():
        made.meta = node.meta.copy()


def _module_behind(node: Node, m: GraphModule) -> Module | None:
    found = _value(m, str(node.target)) if node.op == "get_attr" else None
    return found if isinstance(found, Module) else None


def _add_nodes(
    part: _Part, m: GraphModule, keep_names: bool, qualname_map: dict[str, str] | None
) -> None:
    for node in part.nodes:
        target = node.target
        if node.op == "call_module":
            target = str(target).replace(".", "_")
            part.targets[target] = _value(m, str(node.target))
            if qualname_map is not None:
                qualname_map[f"{part.name}.{target}"] = str(node.target)
        args, kwargs = (map_arg(a, part.made.__getitem__) for a in (node.args, node.kwargs))
        name = node.name if keep_names else None
        made = part.graph.create_node(node.op, target, args, dict(kwargs), name, node.type)
        made.meta = node.meta.copy()
        part.made[node] = made


class _Whole:
    """The graph that calls the parts."""

    def __init__(self, m: GraphModule, keep_names: bool) -> None:
        self._source, self._keep_names = m, keep_names
        self._graph = Graph()
        self._made: dict[Node, Node] = {}
        self._targets: dict[str, Any] = {}

    def take(self, nodes: Iterable[Node]) -> None:
        """Inputs and attributes of the source among these, unless they are there."""
        for node in nodes:
            if node in self._made or node.op not in ("placeholder", "get_attr"):
                continue
            if node.op == "get_attr":
                made = self._graph.get_attr(str(node.target))
                self._targets[str(node.target)] = _value(self._source, str(node.target))
            else:
                target = node.name if self._keep_names else node.target
                made = self._graph.create_node(node.op, target, node.args, type_expr=node.type)
            made.meta = node.meta.copy()
            self._made[node] = made

    def call(self, part: _Part, as_tuple: bool) -> None:
        """Calls a part, and takes its results apart."""
        self._targets[part.name] = GraphModule(part.targets, part.graph)
        result = self._graph.call_module(part.name, tuple(map(self._made.__getitem__, part.inputs)))
        several = part.returns(as_tuple)
        for i, node in enumerate(part.outputs):
            item = self._graph.call_function(operator.getitem, (result, i)) if several else result
            self._made[node] = item

    def finish(self) -> GraphModule:
        """The module, with its output."""
        result = self._source.graph.output_node().args[0]
        self.take(self._source.graph.output_node().all_input_nodes)
        self._graph.output(map_arg(result, self._made.__getitem__))
        return GraphModule(self._targets, self._graph)


__all__ = ["split_module"]
