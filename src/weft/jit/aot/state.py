"""The state of a module as functions of its program.

A compiled file holds no description of objects: a function `__state__` makes them when the file is
loaded, with the tensors as its constants, and others list parameters and buffers and switch modules
between training and evaluation. So the reader of programs is all that a runtime needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from weft._C import Tensor
from weft.jit.frontend.types.classes import class_info
from weft.jit.ir import Function, Graph, Value, type_of_constant
from weft.jit.ir import types as ty
from weft.jit.script_module import RecursiveScriptModule

STATE = "__state__"
_NAMED_TENSORS = ty.ListType(ty.TupleType((ty.STR, ty.TENSOR)))


def state_functions(module: RecursiveScriptModule) -> list[Function]:
    """`__state__() -> Module`, `__constants__(self)`, which gives names and values,
    `__parameters__(self)` and `__buffers__(self)`, which give names and tensors, and
    `__train__(self, mode: bool)`.

    NotImplementedError for attributes that a file cannot hold: futures, generators, Python objects.
    """
    persistent = module.state_dict(keep_vars=True)
    buffers = [name for name, _ in module.named_buffers() if name in persistent]
    return [
        _make_state(module),
        _make_constants(module),
        _listing(module, "__parameters__", [name for name, _ in module.named_parameters()]),
        _listing(module, "__buffers__", buffers),
        _make_train(module),
    ]


def _function(name: str, graph: Graph, arguments: Iterable[str], result: Value) -> Function:
    graph.block.set_returns([result])
    return Function(name, graph, list(arguments))


def _make_state(module: RecursiveScriptModule) -> Function:
    maker = _Maker()
    return _function(STATE, maker.graph, (), maker.module(module))


class _Maker:
    """Writes nodes that make values. An object that is found twice is made once."""

    def __init__(self) -> None:
        self.graph = Graph()
        self._made: dict[int, Value] = {}
        self._held: list[Any] = []  # what is known by identity must stay alive

    def module(self, module: RecursiveScriptModule) -> Value:
        def read(name: str, declared: ty.Attribute) -> Any:
            is_module = declared.kind == "module"
            return module._children[name] if is_module else getattr(module._jit_object, name)

        return self._object(module, module._jit_info.type, read)

    def _object(
        self, given: Any, t: ty.ClassType, read: Callable[[str, ty.Attribute], Any]
    ) -> Value:
        known = self._made.get(id(given))
        if known is not None:
            return known
        made = self._made[id(given)] = self.graph.emit("prim::CreateObject", (), (t,)).output
        self._held.append(given)
        for name, declared in t.attributes.items():
            if declared.kind != "constant" and declared.type is not ty.NONE:
                value = self.value(read(name, declared), declared.type, f"{t.name}.{name}")
                self.graph.emit("prim::SetAttr", (made, value), (), {"name": name})
        return made

    def value(self, given: Any, t: ty.Type, where: str) -> Value:
        """A value as an attribute of the type `t` holds it."""
        if isinstance(given, RecursiveScriptModule):
            return self.module(given)
        if hasattr(type(given), "_from_jit"):
            info = class_info(type(given))
            return self._object(given, info.type, lambda name, _: getattr(given, name))
        if isinstance(t, ty.OptionalType) and given is not None:
            return self.value(given, t.elem, where)
        if isinstance(given, list) and isinstance(t, ty.ListType):
            items = [self.value(item, t.elem, where) for item in given]
            return self.graph.emit("prim::ListConstruct", items, (t,)).output
        if isinstance(given, dict) and isinstance(t, ty.DictType):
            pairs = [((key, t.key), (item, t.value)) for key, item in given.items()]
            items = [self.value(*part, where) for pair in pairs for part in pair]
            return self.graph.emit("prim::DictConstruct", items, (t,)).output
        if isinstance(given, tuple) and isinstance(t, ty.TupleType):
            items = [self.value(item, elem, where) for item, elem in zip(given, t.elems)]
            return self.graph.emit("prim::TupleConstruct", items, (t,)).output
        return self.graph.constant(given, self._constant_type(given, t, where))

    def _constant_type(self, given: Any, t: ty.Type, where: str) -> ty.Type:
        if isinstance(given, Tensor):
            return ty.TENSOR
        if isinstance(t, ty.UnionType) or t in (ty.ANY, ty.NUMBER):
            with suppress(TypeError):
                t = type_of_constant(given)
        if t in _REFUSED or isinstance(t, ty.FutureType | ty.ClassType | ty.InterfaceType):
            raise NotImplementedError(
                f"aot_compile: expected an attribute that a file can hold, got {where} of type "
                f"{type(given).__name__}"
            )
        return t


_REFUSED = (ty.ANY, ty.ANY_LIST, ty.ANY_TUPLE, ty.ANY_DICT, ty.GENERATOR)


# Functions of the module --------------------------------------------------------------------------


def _read(graph: Graph, path: str, module: Any, known: dict[str, Value]) -> Value:
    """What lies at a path of names below the module `known` as ""."""
    if path not in known:
        outer, _, name = path.rpartition(".")
        holder = _read(graph, outer, module, known)
        info = module.get_submodule(outer)._jit_info
        is_module = name in info.children
        t = info.children[name].type if is_module else info.type.attributes[name].type
        known[path] = graph.emit("prim::GetAttr", (holder,), (t,), {"name": name}).output
    return known[path]


def _listing(module: RecursiveScriptModule, function: str, names: Iterable[str]) -> Function:
    """A function that gives names with the tensors at these paths."""
    graph = Graph()
    known = {"": graph.add_input(module._jit_info.type, "self")}
    pairs = [
        graph.emit(
            "prim::TupleConstruct",
            (graph.constant(name), _tensor(graph, _read(graph, name, module, known))),
            (_NAMED_TENSORS.elem,),
        ).output
        for name in names
    ]
    made = graph.emit("prim::ListConstruct", pairs, (_NAMED_TENSORS,)).output
    return _function(function, graph, ["self"], made)


def _make_constants(module: RecursiveScriptModule) -> Function:
    """Attributes that are no part of the state, by their paths: hosts may ask for them."""
    maker = _Maker()
    graph = maker.graph
    graph.add_input(module._jit_info.type, "self")

    def construct(*items: Value) -> Value:
        t = ty.TupleType(tuple(item.type for item in items))
        return graph.emit("prim::TupleConstruct", items, (t,)).output

    pairs = []
    for path, each in module.named_modules():
        for name, declared in each._jit_info.type.attributes.items():
            if declared.kind != "constant" and declared.type is not ty.NONE:
                continue
            with suppress(NotImplementedError, TypeError):  # no value of a file
                value = maker.value(declared.value, declared.type, name)
                pairs.append(construct(graph.constant(f"{path}.{name}" if path else name), value))
    return _function("__constants__", graph, ["self"], construct(*pairs))


def _tensor(graph: Graph, value: Value) -> Value:
    """The value as a Tensor where it is declared optional."""
    if value.type == ty.TENSOR:
        return value
    return graph.emit("prim::unchecked_cast", (value,), (ty.TENSOR,)).output


def _make_train(module: RecursiveScriptModule) -> Function:
    graph = Graph()
    known = {"": graph.add_input(module._jit_info.type, "self")}
    mode = graph.add_input(ty.BOOL, "mode")
    for path, each in module.named_modules():
        declared = each._jit_info.type.attributes.get("training")
        if declared is not None and declared.kind != "constant":
            holder = _read(graph, path, module, known)
            graph.emit("prim::SetAttr", (holder, mode), (), {"name": "training"})
    return _function("__train__", graph, ["self", "mode"], graph.constant(None))
