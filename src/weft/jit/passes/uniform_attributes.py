"""Uniform attributes: what all modules of a class hold alike becomes constants before inlining.

    %training : bool = prim::GetAttr[name="training"](%layer)
        =>  %training : bool = prim::Constant[value=False]()

Freezing does so for each module once calls are inlined. Done before, it makes a method smaller of
which each of many layers gets a copy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from weft.jit.ir import ClassType, Function, Graph, Node
from weft.jit.ir import types as ty
from weft.jit.ir.node_rules import CALLS
from weft.jit.passes.inlining import callee

Attribute = tuple[ty.Type, str]
"""An attribute of all modules of a class."""

_PLAIN = (ty.INT, ty.FLOAT, ty.BOOL, ty.STR, ty.NONE)
_SEVERAL = object()


def find(graph: Graph, module: Any, preserved: Collection[str] = ()) -> dict[Attribute, Any]:
    """The attributes of a method's module, and of those below it, that nothing in it sets. Empty
    where it calls something unknown, or attributes are `preserved`."""
    nodes = _called(graph, set())
    if preserved or any(node.kind in CALLS and callee(node) is None for node in nodes):
        return {}
    is_set = {(n.inputs[0].type, n.attrs["name"]) for n in nodes if n.kind == "prim::SetAttr"}
    found: dict[Attribute, Any] = {}
    seen: set[int] = set()
    waiting: list[tuple[Any, ty.Type]] = [(module, graph.inputs[0].type)]
    while waiting:
        owner, type_ = waiting.pop()
        if id(owner) in seen or not (isinstance(type_, ClassType) and type_.is_module):
            continue  # objects of other classes may be arguments, too
        seen.add(id(owner))
        for name, attribute in type_.attributes.items():
            value = getattr(owner, name, _SEVERAL)
            if isinstance(attribute.type, ClassType):
                waiting.append((value, attribute.type))
            elif attribute.type in _PLAIN and (type_, name) not in is_set:
                known = found.setdefault((type_, name), value)
                if repr(known) != repr(value):  # 0.0 is not -0.0
                    found[type_, name] = _SEVERAL
    return {key: value for key, value in found.items() if value is not _SEVERAL}


def _called(graph: Graph, seen: set[Function]) -> list[Node]:
    """The nodes of a graph, and those of the functions that it calls."""
    found = list(graph.walk())
    for node in found[:]:
        function = callee(node)
        if function is not None and function not in seen:
            seen.add(function)
            found += _called(function.graph, seen)
    return found


def run(graph: Graph, values: Mapping[Attribute, Any]) -> bool:
    """Puts constants in the place of reads of these attributes; True if there were any."""
    changed = False
    for node in list(graph.walk()):
        if node.kind != "prim::GetAttr":
            continue
        key = node.inputs[0].type, node.attrs["name"]
        if key in values:
            with graph.inserting(before=node):
                constant = graph.constant(values[key], node.output.type)
            node.output.replace_all_uses_with(constant)
            node.destroy()
            changed = True
    return changed
