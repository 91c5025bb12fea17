"""Autocast in archives that are written. PyTorch's compiler looks for objects of its class, and at
the constants that their attributes are set to."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from weft import _C
from weft.amp import get_autocast_dtype
from weft.jit.archive import manager_calls as managers
from weft.jit.archive.known import base_name
from weft.jit.archive.substitutes import autocast_now
from weft.jit.frontend.language.functions import compile_function
from weft.jit.frontend.library import prelude
from weft.jit.ir import Function, Graph, Node
from weft.jit.ir import types as ty
from weft.jit.ir.value import Value

_CLASS = "__torch__.torch.amp.autocast_mode.autocast"
ENTER, _NOW = "prim::EnterAutocast", "prim::autocast_now"


def manager(graph: Graph, node: Node) -> Value:
    """The object for the autocast that a node enters. PyTorch takes bfloat16 for a dtype that is no
    constant; another argument that is none it refuses when the program runs."""
    wanted = node.inputs[0]
    if _calls(wanted, prelude.autocast_dtype):
        device, dtype, enabled, *_ = wanted.node.inputs  # type: ignore[union-attr]
    elif wanted.node is not None and wanted.node.kind == _NOW:  # for a device that is not there
        device, dtype, enabled = map(graph.constant, ("cuda", None, True))
    else:
        device, dtype, enabled = graph.constant("cpu"), wanted, _is_given(graph, wanted)
    return managers.new(graph, _class(), device, dtype, enabled, graph.constant(None))


def _is_given(graph: Graph, dtype: Value) -> Value:
    """Whether operators are lowered to a dtype at all."""
    if dtype.is_constant or dtype.type is ty.DTYPE:
        return graph.constant(not dtype.is_constant or dtype.constant is not None)
    return graph.emit("aten::__isnot__", (dtype, graph.constant(None)), (ty.BOOL,)).output


def drop_read(node: Node) -> None:
    """Drops the call that told what a node enters, if nothing else reads it: an object says so."""
    wanted = node.inputs[0]
    node.destroy()
    if _calls(wanted, prelude.autocast_dtype) and not wanted.has_uses:
        wanted.node.destroy()  # type: ignore[union-attr]


def drop_unread_modes(graph: Graph) -> None:
    """Drops what asked for the mode for such calls."""
    for node in graph.walk():
        if node.kind == _NOW and not node.output.has_uses:
            node.destroy()


def refuse_questions(
    definitions: Sequence[ty.Type | Function], refuse: Callable[[str], None]
) -> None:
    """PyTorch's compiler ends the process where a program asks inside a block of autocast."""
    names = {getattr(each, "name", "") for each in definitions}
    if _CLASS in names and _name(autocast_now) in names:
        refuse("is_autocast_enabled beside autocast")


def _calls(value: Value, function: object) -> bool:
    node = value.node
    if node is None or node.kind != "prim::CallFunction":
        return False
    return base_name(node.attrs["function"]) == _name(function)


def _name(function: object) -> str:
    return f"__torch__.{function.__module__}.{function.__name__}"  # type: ignore[attr-defined]


def fast_dtype(device_type: str, dtype: _C.dtype | None) -> _C.dtype:
    """What autocast lowers to."""
    return get_autocast_dtype(device_type) if dtype is None else dtype


@functools.cache
def _class() -> ty.ClassType:
    """The class of the objects."""
    made = ty.ClassType(_CLASS)
    types = {"fast_dtype": ty.DTYPE, "_enabled": ty.BOOL, "device": ty.STR}
    made.attributes = {name: ty.Attribute(each) for name, each in types.items()}
    parameters: dict[str, ty.Type] = {
        "device_type": ty.STR,
        "dtype": ty.optional_of(ty.DTYPE),
        "enabled": ty.BOOL,
        "cache_enabled": ty.optional_of(ty.BOOL),
    }
    init, (device, dtype, enabled, _) = managers.method(made, "__init__", parameters)
    function = compile_function(fast_dtype).function
    made_of = {"function": function}
    number = init.emit("prim::CallFunction", (device, dtype), (ty.DTYPE,), made_of).output
    for name, value in zip(types, (number, enabled, device)):
        managers.set_attribute(init, name, value)
    managers.method(made, "__enter__", {})
    managers.leaving(made)
    return made
