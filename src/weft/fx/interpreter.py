"""Interpreter: runs a graph node by node; Transformer: makes another graph that way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft._C import Tensor
from weft.fx.graph import Graph
from weft.fx.graph_module import GraphModule
from weft.fx.node import Argument, Node, Target, map_aggregate, map_arg
from weft.fx.proxy import GraphAppendingTracer, Proxy
from weft.nn import Module


class Interpreter:
    """Runs the graph of a module, one method for each kind of node: override those to do something
    else, or `run_node` to look at every value.

    module: the module that has the attributes; graph: its graph, unless another one is given.
    garbage_collect_values: values are dropped behind their last use.

    >>> class Counting(weft.fx.Interpreter):
    ...     count = 0
    ...     def run_node(self, n):
    ...         self.count += 1
    ...         return super().run_node(n)
    >>> counting = Counting(weft.fx.symbolic_trace(lambda x: x * 2 + 1))
    >>> counting.run(3), counting.count
    (7, 4)
    """

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = graph if graph is not None else module.graph
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator[Any] = iter(())
        self.extra_traceback = True
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            last: dict[Node, Node] = {}
            for node in self.graph.nodes:
                last.update(dict.fromkeys(node._input_nodes, node))
            for used, user in last.items():
                self.user_to_last_uses.setdefault(user, []).append(used)

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """The result of the graph for these arguments.

        initial_env: values of nodes that are known already. An error in a node names the node.
        """
        self.env = dict(initial_env or {})
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    _name_node(error, node)
                raise
            for used in self.user_to_last_uses.get(node, ()):
                self.env.pop(used, None)
            if node.op == "output":
                value = self.env[node]
                return self.graph.process_outputs(value) if enable_io_processing else value
        return None

    def run_node(self, n: Node) -> Any:
        """The value of one node, from those of its arguments."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    # ---- one method for each op: target, values of the arguments ----

    def placeholder(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The next argument of run, or the default. RuntimeError where there is neither."""
        if str(target).startswith("*"):
            return list(self.args_iter)
        for value in self.args_iter:
            return value
        if args:
            return args[0]
        raise RuntimeError(
            f"Expected positional argument for parameter {target}, but one was not passed in!"
        )

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(str(target))

    def call_function(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The result of a function."""
        if isinstance(target, str):
            raise AssertionError(f"call_function: expected a function, got {target!r}")
        return target(*args, **kwargs)

    def call_method(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The result of a method of the first argument."""
        receiver, *rest = args
        return getattr(receiver, str(target))(*rest, **kwargs)

    def call_module(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The result of a module."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the graph."""
        return args[0]

    # ---- for classes derived from it ----

    def fetch_attr(self, target: str) -> Any:
        """An attribute by its dotted name. RuntimeError where it is not there."""
        found: Any = self.module
        parts = target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(found, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: i + 1])}")
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values of a node's arguments."""
        return self.map_nodes_to_values(n.args, n), dict(self.map_nodes_to_values(n.kwargs, n))

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """The same structure with values in place of nodes."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose "
                    "such issues"
                )
            return self.env[node]

        return map_arg(args, value)


def _name_node(error: Exception, node: Node) -> None:
    text = f"While executing {node.format_node()}"
    first = f"{error.args[0]}\n\n{text}" if error.args else text
    if not isinstance(error, KeyError):
        error.args = (first, *error.args[1:])


class Transformer(Interpreter):
    """Runs a graph with Proxies, and so makes a new one: override the methods of Interpreter to
    make other nodes.

    >>> class Doubled(weft.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         return super().call_function(target, args, kwargs) * 2
    >>> traced = weft.fx.symbolic_trace(lambda x: weft.relu(x))
    >>> Doubled(traced).transform()(weft.tensor([1.0]))
    tensor([2.])
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph)

    def placeholder(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Proxy:
        """An input of the new graph."""
        default = args[0] if args else NotImplemented
        made = self.new_graph.placeholder(str(target), default_value=default)
        return Proxy(made, self.tracer)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """An attribute in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call of a module in the new graph."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call of a function in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the new graph."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            node = map_aggregate(result, lambda x: x.node if isinstance(x, Proxy) else x)
            before = self.graph.output_node()
            made = self.new_graph.output(node, before.type)
            made.meta.update(before.meta)
        return GraphModule(self.module, self.new_graph)


class _TransformerTracer(GraphAppendingTracer):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.tensor_attrs: dict[Tensor, str] = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """True: calls of modules stay calls."""
        return True


__all__ = ["Interpreter", "Transformer"]
