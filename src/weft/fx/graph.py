"""Graph: nodes in the order in which they run."""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from weft.fx._codegen import CodeGen, PythonCode, _Namespace
from weft.fx.node import Argument, Node, Target, map_arg
from weft.nn.modules.module import Module

if TYPE_CHECKING:
    from weft.fx.graph_module import GraphModule

_MAGIC = frozenset(["and", "or"])


def _snake_case(name: str) -> str:
    """MaxPool2d -> max_pool2d."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class _node_list:
    """The nodes of a graph as a sequence without places; it follows changes of the graph."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        node = getattr(self.graph._root, self.direction)
        while node is not self.graph._root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_prev" if self.direction == "_next" else "_next")


class Graph:
    """The program of a function or module: a list of nodes, from placeholders to one output.

    Nodes are made where `inserting_before` or `inserting_after` says, by default at the end.

    >>> graph = weft.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> end = graph.output(graph.call_function(weft.relu, (x,)))
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(
        self,
        owning_module: GraphModule | None = None,
        tracer_cls: type | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()

    @property
    def owning_module(self) -> GraphModule | None:
        """The GraphModule that runs it."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: GraphModule | None) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """The nodes in order. Erasing and inserting is allowed while they are read."""
        return _node_list(self)

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of an op and, unless it is None, of a target, in order.

        AssertionError for call_function without a target.
        """
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return [
            node
            for node in self.nodes
            if node.op == op and (target is None or node.target == target)
        ]

    def output_node(self) -> Node:
        """The node of the output. StopIteration where there is none."""
        return next(node for node in reversed(self.nodes) if node.op == "output")

    # ---- making nodes ----

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A new node at the place of insertion. `name` is made different from others'."""
        args = () if args is None else args
        kwargs = {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError(f"create_node: expected args as a tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"create_node: expected kwargs as a dict, got {type(kwargs)}")
        candidate = name if name is not None else self._target_to_str(target)
        made = Node(self, "", op, target, args, kwargs, type_expr)
        made.name = self._graph_namespace.create_name(candidate, None)
        self._graph_namespace.associate_name_with_obj(made.name, made)
        self._insert(made)
        self._len += 1
        return made

    def placeholder(
        self, name: str, type_expr: Any = None, default_value: Any = NotImplemented
    ) -> Node:
        """An input; "*args" and "**kwargs" are allowed."""
        args = () if default_value is NotImplemented else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or attribute of the module, by its dotted name.

        Warns where the graph's module has none.
        """
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a method of args[0]."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a module's forward, by the module's dotted name."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """What the graph returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(
        self, node: Node, arg_transform: Callable[[Node], Argument] = lambda node: node
    ) -> Node:
        """A node like one of another graph; arg_transform gives this graph's node for that one's
        inputs."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, dict(kwargs), node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Argument | None:
        """Copies the nodes of another graph to the place of insertion; gives the value of its
        output (and the output's node, if asked for).

        val_map: nodes of g that have one here already; filled with the copies.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda each: val_map[each])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda each: val_map[each])
        return None

    def erase_node(self, to_erase: Node) -> None:
        """Removes a node that nobody uses. RuntimeError for one that has users."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(
                f"erase_node: expected a node of this graph, got {to_erase} of another"
            )
        if to_erase._erased:
            return
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1
        to_erase._set((), {})

    # ---- where nodes are made ----

    def inserting_before(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """New nodes go before n, or to the front of the graph. Alone or as a context."""
        if n is None:
            return self.inserting_after(self._root)
        return _Insertion(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """New nodes go right behind n, or to the end of the graph: of several made there, the last
        one comes first."""
        if n is None:
            return self.inserting_before(self._root)
        return _Insertion(self, n.append)

    # ---- the whole graph ----

    def eliminate_dead_code(
        self,
        is_impure_node: Callable[[Node], bool] | None = None,
        clear_nodes: list[Node] | None = None,
    ) -> bool:
        """Removes nodes that nobody uses, from the end; whether there were any.

        is_impure_node: which ones stay, by default `Node.is_impure`.
        """
        self.lint()
        stays = Node.is_impure if is_impure_node is None else is_impure_node
        before = len(self.nodes)
        for node in reversed(self.nodes):
            if not node.users and not stays(node):
                self.erase_node(node)
        return len(self.nodes) != before

    def lint(self) -> None:
        """RuntimeError where a node uses one that does not run before it, where a name is there
        twice, or a module or attribute is not."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"lint: expected nodes of this graph, got {node} of another")
            for used in node._input_nodes:
                if used not in seen:
                    where = "of another graph" if used.graph is not self else "that runs later"
                    raise RuntimeError(
                        f"lint: expected arguments of {node} defined before it, got {used} {where}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            self._lint_target(node)

    def _lint_target(self, node: Node) -> None:
        owner = self.owning_module
        if owner is None or node.op not in ("get_attr", "call_module"):
            return
        found: Any = owner
        for part in str(node.target).split("."):
            if not hasattr(found, part):
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part} of "
                    f"{type(found).__name__}"
                )
            found = getattr(found, part)
        if node.op == "call_module" and not isinstance(found, Module):
            raise RuntimeError(
                f"Node {node} target {node.target} does not reference an nn.Module, "
                f"got {type(found).__name__}"
            )

    def _target_to_str(self, target: Target | None) -> str:
        name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
        if len(name) > 4 and name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return _snake_case(name)

    # ---- code ----

    def set_codegen(self, codegen: CodeGen) -> None:
        """Lets another CodeGen write the graph's function."""
        self._codegen = codegen

    def on_generate_code(
        self, make_transformer: Callable[[Any], Callable[[list[str]], list[str]]]
    ) -> contextlib.AbstractContextManager[None]:
        """A function that gets the one set before (or None) and gives the one that changes the
        lines of the body from now on. As a context, the one before holds again at its end."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def restore() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return restore()

    def python_code(self, root_module: str, *, verbose: bool = False, **options: Any) -> PythonCode:
        """The graph as a function of Python; root_module is what the module is called in it.

        Of verbose and the options of PyTorch nothing changes the text.
        """
        namespace = _Namespace()
        for node in self.nodes:  # global names are none of these
            namespace.create_name(node.name, node)

        def name(node: Node) -> str:
            return namespace.create_name(node.name, node)

        with _shown_as(self.nodes, name):
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, self)

    def process_inputs(self, *args: Any) -> Any:
        """The placeholders' values, from the arguments of the function."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The function's result, from the value of the output."""
        return self._codegen.process_outputs(out)

    def print_tabular(self) -> None:
        """Prints the nodes as a table."""
        rows: list[tuple[str, ...]] = [("opcode", "name", "target", "args", "kwargs")]
        rows += [tuple(map(str, (n.op, n.name, n.target, n.args, n.kwargs))) for n in self.nodes]
        widths = [max(map(len, column)) for column in zip(*rows)]
        rows.insert(1, tuple("-" * width for width in widths))
        for row in rows:
            print("  ".join(map(str.ljust, row, widths)).rstrip())

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)

    # ---- copies ----

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        nodes: dict[Node, Node] = {}
        result = made.graph_copy(self, nodes, return_output_node=True)
        if result is not None:
            value, output = result
            copied = made.output(value, type_expr=output.type)
            copied.meta = copy.copy(output.meta)
        made._codegen = copy.deepcopy(self._codegen, memo) if memo is not None else self._codegen
        return made


class _Insertion:
    """A place of insertion, set at once; as a context, the one before holds at its end."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph, self.before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        self.graph._insert = self.before


@contextlib.contextmanager
def _shown_as(nodes: Iterable[Node], name: Callable[[Node], str]) -> Iterator[None]:
    """Within, a node's repr is the name that the function gives."""
    before = {node: node._repr_fn for node in nodes}
    for node in before:
        node._repr_fn = name
    try:
        yield
    finally:
        for node, repr_fn in before.items():
            node._repr_fn = repr_fn


__all__ = ["CodeGen", "Graph", "PythonCode"]
