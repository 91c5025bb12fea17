"""Proxy: stands for the value of a node while a function is traced, and records its use."""

from __future__ import annotations

import dataclasses
import dis
import enum
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

from weft import _C, overrides
from weft._C import Tensor
from weft._runtime.exports import list_own as _list_own
from weft.fx._codegen import _INFIX, _PREFIX
from weft.fx._names import _get_qualified_name
from weft.fx.graph import Graph
from weft.fx.node import Argument, Node, Target, map_aggregate

base_types = (
    *(str, int, float, bool, complex, bytes, type(None), type(...)),
    *(_C.dtype, Tensor, _C.device, _C.memory_format, _C.layout, _C.Size, enum.Enum),
)


class TraceError(ValueError):
    """What the program does cannot be recorded: it asks for a value that is not there yet."""


class TracerBase:
    """What a Proxy asks to record its operations. Derive from Tracer rather than from this."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Inserts a node into the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """The Proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """A node for values that the program has, and its Proxy."""
        made = self.create_node(
            kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr
        )
        if self.record_stack_traces and made.stack_trace is None:
            made.stack_trace = _stack_of_program()
        return self.proxy(made) if proxy_factory_fn is None else proxy_factory_fn(made)

    def create_arg(self, a: Any) -> Argument:
        """A value of the program as an argument of nodes. NotImplementedError for one that cannot
        be; extend it for types of your own."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(each) for each in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return [self.create_arg(each) for each in a]
        if isinstance(a, dict):
            return {self._create_key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, (slice, range)):
            return type(a)(*(self.create_arg(each) for each in (a.start, a.stop, a.step)))
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        if isinstance(a, (*base_types, type)) or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _create_key(self, key: Any) -> Any:
        made = self.create_arg(key)
        if isinstance(made, Node):
            raise RuntimeError(
                f"Keys for dictionaries used as an argument cannot contain a Node, got {made}"
            )
        return made

    def to_bool(self, obj: Proxy) -> bool:
        """Asked by `if proxy:`. TraceError; a tracer may know better."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Asked by `for x in proxy` and `*proxy`. TraceError; a tracer may know better."""
        raise TraceError(
            "Proxy object cannot be iterated: expected a program whose loops do not depend on the "
            f"traced values, got one over {obj}; *args and **kwargs of a Proxy are such loops"
        )

    def keys(self, obj: Proxy) -> Any:
        """Asked by `**proxy`."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Appends what is done to its Proxies to a graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph


def _stack_of_program() -> str:
    import_root = __name__.rpartition(".")[0].split(".")[0] + "/"
    lines = []
    frame = sys._getframe(1)
    while frame is not None:
        if f"/{import_root}" not in frame.f_code.co_filename:
            lines.append(f'  File "{frame.f_code.co_filename}", line {frame.f_lineno}, in '
                         f"{frame.f_code.co_name}\n")  # fmt: skip
        frame = frame.f_back  # type: ignore[assignment]
    return "".join(reversed(lines))


class Proxy:
    """Flows through a program in place of a value; operators on it become nodes of the graph.

    >>> graph = weft.fx.Graph()
    >>> x = weft.fx.Proxy(graph.placeholder("x"))
    >>> (weft.relu(x) + 1).node.args
    (relu, 1)

    bool(), iteration and len() raise: what they are is not known while tracing.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k in ("node", "tracer"):  # of a Proxy that is being copied
            raise AttributeError(k)
        return Attribute(self, k)

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = sys._getframe(1)
        instructions = {each.offset: each for each in dis.get_instructions(frame.f_code)}
        instruction = instructions.get(frame.f_lasti)
        if instruction is not None and instruction.opname == "UNPACK_SEQUENCE":  # a, b = x
            return (self[i] for i in range(instruction.argval))
        return self.tracer.iter(self)

    def __getitem__(self, key: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, key), {})

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """What `**proxy` asks for."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, call torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls,
        orig_method: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        found: list[Proxy] = []

        def note(each: Any) -> Any:
            if isinstance(each, Proxy):
                found.append(each)
            return each

        map_aggregate((args, kwargs), note)
        tracer = found[0].tracer
        if overrides.is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        name = getattr(orig_method, "__name__", "")
        if "." not in name:  # as overloads of operators have it
            name = _get_qualified_name(orig_method).rpartition(".")[2]
        name = tracer.graph._target_to_str(name)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


class Attribute(Proxy):
    """An attribute of a Proxy: a node of its own only when it is used as a value, so that a call
    of a method is one node."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads the attribute."""
        if self._node is None:
            made = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = made.node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A Proxy of a parameter, whose shape is known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Tensor) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> _C.Size:
        """The parameter's."""
        return self.param.shape

    @property
    def ndim(self) -> int:
        """The parameter's."""
        return self.param.ndim

    def size(self, *args: Any, **kwargs: Any) -> Any:
        """The parameter's."""
        return self.param.size(*args, **kwargs)

    def dim(self) -> int:
        """The parameter's."""
        return self.param.dim()

    def numel(self) -> int:
        """The parameter's."""
        return self.param.numel()


def _forward(name: str) -> Any:
    function = getattr(operator, name)

    def method(self: Proxy, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", function, (self, *args), kwargs)

    return method


def _reflected(name: str) -> Any:
    function = getattr(operator, name)

    def method(self: Proxy, other: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", function, (other, self), {})

    return method


_COMPARISONS = ("eq", "ne", "lt", "gt", "le", "ge")
for _name in (*_INFIX, *_PREFIX):
    setattr(Proxy, f"__{_name.strip('_')}__", _forward(_name))
for _name in _INFIX:
    if _name not in _COMPARISONS:
        setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(_name))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]  # lost where __eq__ is set


_list_own(vars())
