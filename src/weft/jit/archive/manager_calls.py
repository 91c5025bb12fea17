"""Classes of objects that `with` takes, made for archives that are written."""

from __future__ import annotations

from weft.jit.ir import Function, Graph
from weft.jit.ir import types as ty
from weft.jit.ir.value import Value


def new(graph: Graph, of: ty.ClassType, *values: Value) -> Value:
    """An object of a class, made with arguments."""
    made = graph.emit("prim::CreateObject", (), (of,)).output
    call(graph, "__init__", made, *values)
    return made


def call(graph: Graph, name: str, *values: Value) -> None:
    """Calls a method that gives nothing."""
    graph.emit("prim::CallMethod", values, (ty.NONE,), {"name": name})


def method(of: ty.ClassType, name: str, types: dict[str, ty.Type]) -> tuple[Graph, list[Value]]:
    """A method that returns None, and its parameters without self."""
    graph = Graph()
    values = [graph.add_input(type, each) for each, type in {"self": of, **types}.items()]
    graph.block.set_returns([graph.constant(None)])
    of.methods[name] = Function(f"{of.name}.{name}", graph, ["self", *types])
    return graph, values[1:]


def set_attribute(graph: Graph, name: str, value: Value) -> None:
    """In a method, self has the value as its attribute."""
    graph.emit("prim::SetAttr", (graph.inputs[0], value), (), {"name": name})


def leaving(of: ty.ClassType) -> Graph:
    """The method __exit__ of a class."""
    return method(of, "__exit__", dict.fromkeys(("type", "value", "trace"), ty.ANY))[0]
