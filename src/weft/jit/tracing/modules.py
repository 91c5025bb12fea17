"""Modules that are traced: the types of their programs, and where their tensors are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._C import Tensor
from weft.jit.execution import class_of
from weft.jit.frontend.source.resolver import MISSING
from weft.jit.frontend.types.module_types import ModuleInfo
from weft.jit.frontend.types.names import qualified_name, unique_name
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.script_module import RecursiveScriptModule, filled
from weft.nn.modules.module import Module

if TYPE_CHECKING:
    from weft.jit.tracing.recorder import Recorder


class TracedModule(RecursiveScriptModule):
    """A submodule of a traced module: its parameters, buffers and submodules."""


class TopLevelTracedModule(TracedModule):
    """What weft.jit.trace makes of a module. It shares parameters and buffers with the module."""


class TracedInfo(ModuleInfo):
    """A class type without source: its methods are those that were traced."""

    def find(self, name: str) -> Any:
        """Nothing of the Python class can be compiled: it was traced."""
        return MISSING


def traced_info(module: Module, made: dict[int, ModuleInfo]) -> ModuleInfo:
    """The type of a module and, below it, of its submodules."""
    if isinstance(module, RecursiveScriptModule):
        return module._jit_info
    known = made.get(id(module))
    if known is not None:
        return known
    type_ = ty.ClassType(unique_name(qualified_name(type(module))))
    type_.is_module = True
    info = made[id(module)] = TracedInfo(type_, module, {})
    type_.info = info
    for name, kind in module._kinds.items():
        value = module.__dict__[name]
        if value is None:
            type_.attributes[name] = ty.Attribute(ty.NONE, kind)
        elif kind == "module":
            info.children[name] = traced_info(value, made)
            type_.attributes[name] = ty.Attribute(info.children[name].type, kind)
        else:
            type_.attributes[name] = ty.Attribute(ty.TENSOR, kind)
    type_.attributes["training"] = ty.Attribute(ty.BOOL, "attribute")
    return info


def wrap(
    module: Module, info: ModuleInfo, made: dict[int, RecursiveScriptModule],
    cls: type[RecursiveScriptModule] = TracedModule,
) -> RecursiveScriptModule:  # fmt: skip
    """The traced form of a module, over the same parameters and buffers."""
    if isinstance(module, RecursiveScriptModule):
        return module
    if id(module) in made:
        return made[id(module)]
    result = made[id(module)] = cls(info, class_of(info.type).new(), module)
    return filled(
        result,
        lambda name: wrap(getattr(module, name), info.children[name], made),
        lambda name: getattr(module, name),
    )


class Attributes:
    """The tensors and compiled modules below a module, as values read from `self`."""

    def __init__(self, module: Module, info: ModuleInfo, owner: Value) -> None:
        self._owner = owner
        self._paths: dict[int, tuple[tuple[str, ...], str]] = {}
        self._objects: dict[int, tuple[str, ...]] = {}
        self._modules: dict[tuple[str, ...], tuple[Module, ModuleInfo]] = {}
        self._values: dict[tuple[str, ...], Value] = {(): owner}
        self._before: list[tuple[tuple[str, ...], dict[str, Any]]] = []
        self._add((), module, info)

    def _add(self, path: tuple[str, ...], module: Module, info: ModuleInfo) -> None:
        self._modules[path] = (module, info)
        if isinstance(module, RecursiveScriptModule):
            self._objects.setdefault(id(module._jit_object), path)
        else:
            self._before.append((path, dict(vars(module))))
        for name, kind in module._kinds.items():
            value = getattr(module, name)
            if value is None:
                continue
            if kind == "module":
                self._add((*path, name), value, info.children[name])
            else:
                self._paths.setdefault(id(value), (path, name))

    def has(self, tensor: Tensor) -> bool:
        """Whether a tensor is a parameter or buffer."""
        return id(tensor) in self._paths

    def value(self, rec: Recorder, tensor: Tensor) -> Value | None:
        """A parameter or buffer, read from its module."""
        place = self._paths.get(id(tensor))
        if place is None:
            return None
        owner = self._module(rec, place[0])
        return rec.emit("prim::GetAttr", [owner], [ty.TENSOR], {"name": place[1]}).output

    def object(self, rec: Recorder, given: Any) -> Value | None:
        """A compiled submodule."""
        path = self._objects.get(id(given))
        return None if path is None else self._module(rec, path)

    def _module(self, rec: Recorder, path: tuple[str, ...]) -> Value:
        known = self._values.get(path)
        if known is None:
            owner = self._module(rec, path[:-1])
            type = self._modules[path][1].type
            attrs = {"name": path[-1]}
            known = rec.emit("prim::GetAttr", [owner], [type], attrs).output
            self._values[path] = known
        return known

    def finish(self, rec: Recorder) -> None:
        """Buffers that were set are set by the program, too; other tensors are only warned of."""
        for path, before in self._before:
            module, info = self._modules[path]
            for name, value in vars(module).items():
                if not isinstance(value, Tensor) or before.get(name) is value:
                    continue
                if name in module._kinds and name in info.type.attributes:
                    inputs = [self._module(rec, path), rec.tensor(value)]
                    rec.emit("prim::SetAttr", inputs, [], {"name": name})
                elif rec.follows(value):
                    rec.locations.warn(
                        f"The attribute {'.'.join((*path, name))} was set to a tensor of the "
                        "trace, which is not recorded; register it as a buffer"
                    )
