"""Node: one operation of a graph, and who uses its result."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft import _C
from weft._runtime.settings import _assert
from weft.fx._names import _get_qualified_name, _type_repr
from weft.fx.immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from weft.fx.graph import Graph

Target = Callable[..., Any] | str
Argument = Any

_OPS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output", "root")
_side_effectful: set[Any] = {_assert, operator.setitem, operator.delitem}


def has_side_effect(fn: Any) -> Any:
    """Marks a function whose calls stay in a graph though nobody uses their results.

    A decorator; gives back the function.
    """
    _side_effectful.add(fn)
    return fn


# ---- arguments ----


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """The same structure of tuples, lists, dicts and slices, with fn(x) for each x inside.

    >>> weft.fx.node.map_aggregate((1, [2], {"a": 3}), lambda x: x + 1)
    (2, [3], {'a': 4})
    """
    if isinstance(a, tuple):
        items = [map_aggregate(each, fn) for each in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(each, fn) for each in a])
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(value, fn)) for key, value in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(each, fn) for each in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """The same structure, with fn(node) for each node inside."""
    if not callable(fn):
        raise TypeError(f"map_arg: expected a function of nodes, got {type(fn).__name__}")
    return map_aggregate(a, lambda each: fn(each) if isinstance(each, Node) else each)


class Node:
    """One operation of a `Graph`.

    op: "placeholder", "get_attr", "call_function", "call_method", "call_module" or "output";
    target: the input's name, a dotted attribute, a function, a method's name. args and kwargs may
    hold other nodes, also in tuples, lists, dicts and slices; `users` are the nodes that hold this
    one. Made by methods of Graph, which keeps the nodes in order.

    >>> graph = weft.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(weft.relu, (x,))
    >>> y.op, y.args, list(x.users)
    ('call_function', (x,), [relu])
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in _OPS:
            raise ValueError(f"Node: expected op as one of {_OPS}, got {op!r}")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node: expected a callable target of call_function, got {_kind(target)}"
            )
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(f"Node: expected a str as target of {op}, got {_kind(target)}")
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self.type = return_type
        self._prev = self._next = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self.meta: dict[str, Any] = {}
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._set(args, kwargs)

    # ---- arguments ----

    def _set(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> None:
        """New arguments: tells the nodes inside who uses them."""
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def register(node: Node) -> Node:
            self._input_nodes[node] = None
            node.users[self] = None
            return node

        self._args = map_arg(tuple(args), register)
        self._kwargs = map_arg(dict(kwargs), register)

    @property
    def args(self) -> tuple[Argument, ...]:
        """Arguments by position. Assign to change them."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """Arguments by name. Assign to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._set(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes that its arguments hold, each once, in the order of the arguments."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replaces one argument by position."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Puts an argument before the one at a position, 0 to len(args)."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(f"insert_arg: expected 0 to {len(self.args)}, got {idx}")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replaces or adds an argument by name."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Puts another node wherever the arguments hold `old_input`."""

        def swapped(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set(map_arg(self.args, swapped), map_arg(self.kwargs, swapped))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Puts another node wherever this one is used, and gives the users that were changed.

        delete_user_cb: which users to change. propagate_meta: `replace_with`, without meta of its
        own, gets this node's.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    f"replace_all_uses_with: expected a node without meta, got {replace_with.meta}"
                )
            replace_with.meta.update(self.meta)
        changed = []
        for user in list(self.users):
            if delete_user_cb(user):
                user.replace_input_with(self, replace_with)
                changed.append(user)
        return changed

    # ---- places ----

    @property
    def next(self) -> Node:
        """The node behind it."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before it."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Moves x, of the same graph, before this node."""
        if self.graph is not x.graph:
            raise AssertionError("prepend: expected a node of the same graph, got one of another")
        if x is self:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Moves x, of the same graph, behind this node."""
        if x is not self._next:
            self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    # ---- what it is ----

    @property
    def stack_trace(self) -> str | None:
        """The lines of the program that made it, where they were recorded."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it must stay in a graph though nobody uses its result."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if self.target in _side_effectful:
                return True
            return impure_random and self.target in _random()
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("is_impure: expected the graph of a GraphModule")
            return getattr(owner.get_submodule(str(self.target)), "_is_impure", False)
        return False

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)

    def _pretty_print_target(self, target: Any) -> str:
        if isinstance(target, str):
            return target
        name = getattr(target, "__name__", "")
        if getattr(builtins, name, None) is target:
            return f"builtins.{name}"
        if getattr(target, "__module__", None) == "_operator":
            return f"operator.{target.__name__}"
        return _get_qualified_name(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node as a line of str(graph).

        With lists for them, placeholders and the output's type are put there, and None given.
        """
        if self.op == "placeholder":
            text = f"{self.target}" + (f" : {_type_repr(self.type)}" if self.type else "")
            if placeholder_names is not None:
                placeholder_names.append(text)
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{self._head()} = {self.op}[target={self.target}]{default}"
        if self.op == "output":
            if self.type is not None and maybe_return_typename is not None:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        target = self._pretty_print_target(self.target)
        line = f"{self._head()} = {self.op}[target={target}]"
        if self.op == "get_attr":
            return line
        return f"{line}(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"

    def _head(self) -> str:
        kind = f": {_type_repr(self.type)} " if self.type else ": "
        return f"%{self.name} {kind}[num_users={len(self.users)}]"

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn is not None else self.name


def _kind(target: Any) -> str:
    return f"{target!r} of type {type(target).__name__}"


def _format_arg(arg: Any) -> str:
    """An argument as printed graphs show it: nodes with %, strings bare."""
    if isinstance(arg, list):
        return "[" + ", ".join(map(_format_arg, arg)) + "]"
    if isinstance(arg, tuple) and hasattr(arg, "_fields"):
        items = ", ".join(f"{k}={_format_arg(v)}" for k, v in zip(arg._fields, arg))
        return f"{type(arg).__name__}({items})"
    if isinstance(arg, tuple):
        items = ", ".join(map(_format_arg, arg))
        return f"({items},)" if len(arg) == 1 else f"({items})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {_format_arg(value)}" for key, value in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


def _random() -> list[Any]:
    names = "bernoulli multinomial normal poisson rand randint randn randperm"
    return [getattr(_C, name) for name in names.split()]


__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]
