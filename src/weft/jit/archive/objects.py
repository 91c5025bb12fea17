"""The objects of an archive's pickles."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from weft._C import Tensor
from weft.jit.archive import quantized
from weft.jit.archive.classes import Definitions, LoadedModule
from weft.jit.archive.state import restored
from weft.jit.archive.unknown import CLASSES_OF_TORCH, class_of_torch
from weft.jit.frontend.types.module_types import JitAttribute
from weft.jit.ir import types as ty
from weft.nn import Module, Parameter
from weft.serialization.errors import LoadError, shown
from weft.serialization.globals import find_global, set_state
from weft.serialization.unpickle import Callee, ObjectType

_ROOT = "__torch__"


def global_finder(definitions: Definitions) -> Callable[[str, str], Any]:
    """What the globals of an archive's pickles stand for: besides those of checkpoints, classes
    and enums of its code, and marks of types."""

    def find(module: str, name: str) -> Any:
        if module == _ROOT or module.startswith(_ROOT + "."):
            found = definitions.find(f"{module}.{name}")
            if isinstance(found, type):
                return _type(f"{module}.{name}", found)
            if f"{module}.{name}".startswith(CLASSES_OF_TORCH):
                raise class_of_torch(f"{module}.{name}")
            raise LoadError(
                f"load: expected a class of the archive, got {shown(f'{module}.{name}')}"
            )
        if f"{module}.{name}" == "torch._utils._rebuild_qtensor":
            return Callee(name, quantized.rebuilt)
        if name == "_rebuild_sparse_tensor":
            raise LoadError(
                "load: expected strided tensors in an archive, got a sparse one, which programs "
                "have not; x.to_dense() is strided"
            )
        if f"{module}.{name}" == _BY_NUMBER:
            return Callee(_BY_NUMBER, lambda number: _numbered(definitions.constants, number))
        if f"{module}.{name}" == "__main__.TensorID":
            return ObjectType("__main__.TensorID", lambda: Numbered(definitions.constants))
        if f"{module}.{name}" == "__main__.IntList":
            return ObjectType("__main__.IntList", lambda: Numbered(None))
        if f"{module}.{name}" == "torch.device":
            return Callee("torch.device", lambda *parts: _device(definitions, parts))
        return _MARKS.get(f"{module}.{name}") or find_global(module, name)

    return find


def _type(name: str, cls: type) -> Any:
    if issubclass(cls, enum.Enum):
        return Callee(name, lambda value: _member(cls, value), bare=True)
    if issubclass(cls, tuple):
        return Callee(name, lambda *values: cls(*values))
    return ObjectType(name, lambda: new_module(cls))


def _member(cls: type[enum.Enum], value: Any) -> enum.Enum:
    for member in cls:
        if type(member.value) is type(value) and member.value == value:
            return member
    raise LoadError(f"load: expected a value of the enum {cls.__name__}, got {shown(str(value))}")


def new_module(cls: Any) -> Any:
    """A module of a class of the archive, without attributes; an object of another class."""
    made = cls.__new__(cls)
    if isinstance(made, Module):
        Module.__init__(made)
        for name in cls.__weft_layout__.pre_hooks:
            made.register_forward_pre_hook(vars(cls)[name])
        for name in cls.__weft_layout__.hooks:
            made.register_forward_hook(vars(cls)[name])
    return made


_BY_NUMBER = "torch.jit._pickle.build_tensor_from_id"  # of archives before 1.4


class Numbered:
    """A tensor named by its number, or a list of ints, in a pickle of PyTorch 1.1: what BUILD gives
    it stands in its place."""

    def __init__(self, tensors: list[Any] | None) -> None:
        self.tensors = tensors

    def build(self, state: Any) -> Any:
        """The tensor or the list."""
        if self.tensors is not None:
            return _numbered(self.tensors, state)
        if type(state) is not list or any(type(item) is not int for item in state):
            raise LoadError("load: expected a list of ints in the archive, got something else")
        return state


def _numbered(tensors: list[Any], number: Any) -> Any:
    if type(number) is not int or not 0 <= number < len(tensors):
        raise LoadError("load: expected the number of a tensor of the archive, got another")
    return tensors[number]


def _device(definitions: Definitions, parts: tuple[Any, ...]) -> Any:
    """A device where map_location puts it."""
    make = find_global("torch", "device").value
    return make(definitions.located(str(make(*parts))))


def tensor_of(*args: Any) -> Tensor:
    """A tensor; a parameter where it requires a gradient, so that whoever names it has the same."""
    made = find_global("torch._utils", "_rebuild_tensor_v2").value(*args)
    return Parameter(made.detach()) if made.requires_grad else made


def _typed(value: Any, type: Any = None) -> Any:
    """A list or dict with its type, which the class that holds it declares as well."""
    return value


_LISTS = ("build_intlist", "build_tensorlist", "build_doublelist", "build_boollist")
_MARKS: dict[str, Any] = {
    f"torch.jit._pickle.{name}": Callee(name, _typed) for name in ("restore_type_tag", *_LISTS)
}
_MARKS |= quantized.STORAGES | quantized.SCHEMES
_MARKS["torch._utils._rebuild_tensor_v2"] = Callee("torch._utils._rebuild_tensor_v2", tensor_of)


def build(target: Any, state: Any) -> Any:
    """Gives an object the attributes it was saved with, or that its __setstate__ sets. Gives what
    stands in the object's place, if anything does."""
    if isinstance(target, Numbered):
        return target.build(state)
    if quantized.is_packed(target):
        return quantized.restore(target, state)
    if not hasattr(type(target), "__weft_source__"):
        return set_state(target, state)
    if "__setstate__" in vars(type(target)):
        given, state = state, restored(target, state)
        quantized.keep_integers(given, state)
    if type(state) is not dict or not all(type(name) is str for name in state):
        raise LoadError("load: expected the attributes of an object, got something else")
    if isinstance(target, LoadedModule):
        for name, value in {**target.__weft_layout__.constants, **state}.items():
            _set(target, name, value)
    else:
        vars(target).update(state)
    return None


def _set(module: LoadedModule, name: str, value: Any) -> None:
    """Sets an attribute: a parameter or buffer where the class says so. An attribute may have the
    name of one of Module's methods."""
    layout = module.__weft_layout__
    is_tensor = isinstance(value, Tensor)
    if name in layout.parameters and (value is None or is_tensor):
        if is_tensor and not isinstance(value, Parameter):
            value = Parameter(value.detach(), value.requires_grad)
        Module.register_parameter(module, name, value)
    elif name in layout.buffers and (value is None or is_tensor):
        Module.register_buffer(module, name, value)
    elif isinstance(value, Module):
        Module.add_module(module, name, value)
    elif name != "_is_full_backward_hook":
        declared = type(module).__annotations__.get(name)
        is_object = isinstance(declared, ty.ClassType)  # which may be callable, as a function is
        setattr(module, name, JitAttribute(value, declared) if is_object else value)
