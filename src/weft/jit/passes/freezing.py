"""Freezing: what a module holds becomes constants of its graph.

    %w : Tensor = prim::GetAttr[name="weight"](%self)
        =>  %w : Tensor = prim::Constant[value=<Tensor>]()

Attributes that the graph sets, and tensors and lists that it writes to, stay attributes, and so do
those named in `preserved`. Parameters are detached: a frozen program does not train.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from weft.jit.ir import BOOL, TENSOR, ClassType, Graph, InterfaceType, Node, Value
from weft.jit.ir import types as ty
from weft.jit.ir.node_rules import CALLS
from weft.jit.passes.aliasing import AliasAnalysis
from weft.jit.passes.identity import is_only_read

_PLAIN = (ty.INT, ty.FLOAT, BOOL, ty.STR, ty.COMPLEX, ty.DTYPE, ty.DEVICE, ty.NONE)


def run(graph: Graph, module: Any, preserved: Collection[str] = ()) -> bool:
    """Freezes the graph of a method, whose first input is `module` (anything whose attributes can
    be read with getattr). Calls should have been inlined: what one that is left could read or set
    stays. `preserved`: attributes by their path from the module ("bias", "layer.0.weight"). No
    argument of the method may share memory with what the module holds. True if anything changed.
    """
    freezer = _Freezer(graph, module, frozenset(preserved))
    return freezer.run()


def paths(graph: Graph, module: Any) -> set[str]:
    """The attributes of the module that a graph reads or sets, objects on the way included."""
    return _Freezer(graph, module, frozenset()).paths()


def objects(graph: Graph, module: Any) -> dict[Value, Any]:
    """The values of a graph that are the module, or objects below it, with these."""
    found = _Freezer(graph, module, frozenset()).objects
    return {value: each for value, (each, _) in found.items()}


class _Freezer:
    def __init__(self, graph: Graph, module: Any, preserved: frozenset[str]) -> None:
        self.graph = graph
        self.preserved = preserved
        self.objects: dict[Value, tuple[Any, str]] = {graph.inputs[0]: (module, "")}
        self.constants: dict[tuple[int, str], Value] = {}
        self.found = self.find_objects()

    def find_objects(self) -> list[Node]:
        """Follows attributes to the objects they hold; gives the nodes that read attributes."""
        found = [node for node in self.graph.walk() if node.kind == "prim::GetAttr"]
        for node in found:  # outer objects come first
            owner = self.objects.get(node.inputs[0])
            if owner is not None and _is_object(node.output.type):
                name = node.attrs["name"]
                path = f"{owner[1]}.{name}" if owner[1] else name
                self.objects[node.output] = (getattr(owner[0], name), path)
        return found

    def _addresses(self) -> dict[Value, Any]:
        """Where the tensors and lists that the graph reads from the module lie."""
        addresses: dict[Value, Any] = {}
        for node in self.found:
            if node.inputs[0] in self.objects and not _is_object(node.output.type):
                owner, path = self.objects[node.inputs[0]]
                held = getattr(owner, node.attrs["name"])
                is_tensor = hasattr(held, "untyped_storage")
                address = held.untyped_storage().info().address if is_tensor else 0
                addresses[node.output] = address or f"{path}.{node.attrs['name']}"
        return addresses

    def run(self) -> bool:
        aliases = AliasAnalysis(self.graph, self._addresses())
        kept, exposed = self._set_attributes(), self._exposed()
        changed = False
        for node in self.found:
            owner = self.objects.get(node.inputs[0])
            if owner is None or _is_object(node.output.type):
                continue
            inside = (path in ("", owner[1]) or owner[1].startswith(f"{path}.") for path in exposed)
            if not any(inside):
                changed |= self._freeze(node, kept, aliases)
        return changed

    def paths(self) -> set[str]:
        """The attributes that the graph reads or sets, by path."""
        found = set()
        for node in self.graph.walk():
            owner = self.objects.get(node.inputs[0]) if node.inputs else None
            if node.kind in ("prim::GetAttr", "prim::SetAttr") and owner is not None:
                name = node.attrs["name"]
                found.add(f"{owner[1]}.{name}" if owner[1] else name)
        return found

    def _exposed(self) -> set[str]:
        """The objects that calls get, by path; "" is the module, and with it everything."""
        found = set()
        for node in self.graph.walk():
            if node.kind in CALLS:
                found |= {self.objects[v][1] for v in node.inputs if v in self.objects}
        return found

    def _set_attributes(self) -> set[tuple[Any, str]]:
        """Attributes that the graph sets: (object, name), or (class name, name) where the object is
        not known."""
        kept: set[tuple[Any, str]] = set()
        for node in self.graph.walk():
            if node.kind == "prim::SetAttr":
                target = self.objects.get(node.inputs[0])
                owner = id(target[0]) if target is not None else str(node.inputs[0].type)
                kept.add((owner, node.attrs["name"]))
        return kept

    def _freeze(self, node: Node, kept: set[tuple[Any, str]], aliases: AliasAnalysis) -> bool:
        (owner, path), name = self.objects[node.inputs[0]], node.attrs["name"]
        full = f"{path}.{name}" if path else name
        if self._is_preserved(full) or kept & {(id(owner), name), (str(node.inputs[0].type), name)}:
            return False
        if not _is_frozen_type(node.output, aliases):
            return False
        constant = self._constant(getattr(owner, name), (id(owner), name), node.output.type)
        node.output.replace_all_uses_with(constant)
        node.destroy()
        return True

    def _is_preserved(self, path: str) -> bool:
        """Whether an attribute, or an object that it belongs to, is to stay."""
        return any(path == each or path.startswith(f"{each}.") for each in self.preserved)

    def _constant(self, value: Any, key: tuple[int, str], type_: ty.Type) -> Value:
        """The constant of an attribute, made once, at the start of the graph."""
        known = self.constants.get(key)
        if known is None:
            with self.graph.inserting(at_start=self.graph.block):
                known = self.constants[key] = self._made(value, type_)
            known.name = key[1]
        return known

    def _made(self, value: Any, type_: ty.Type) -> Value:
        plain = ty.non_none(type_)
        if value is not None and plain == TENSOR:
            value = value.detach()
        elif value is not None and isinstance(plain, ty.EnumType):
            value = ty.EnumValue(plain, value.name)
        elif value is not None and isinstance(plain, ty.ListType) and plain.elem == TENSOR:
            items = [self._made(each, TENSOR) for each in value]
            return self.graph.emit("prim::ListConstruct", items, (plain,)).output
        return self.graph.constant(value, type_)


def _is_frozen_type(value: Value, aliases: AliasAnalysis) -> bool:
    """Whether a constant can stand for the attribute: nobody writes to it or keeps it."""
    plain = ty.non_none(value.type)
    if plain == TENSOR:
        return not aliases.is_written(value)
    if isinstance(plain, ty.ListType) and plain.elem in (*_PLAIN, TENSOR):
        return not aliases.is_written(value) and is_only_read(value)
    if isinstance(plain, ty.TupleType):
        return all(elem in _PLAIN for elem in plain.elems)
    return plain in _PLAIN or isinstance(plain, ty.EnumType)


def _is_object(type_: ty.Type) -> bool:
    return isinstance(type_, (ClassType, InterfaceType))
