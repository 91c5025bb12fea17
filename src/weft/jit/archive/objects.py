"""The objects of an archive's pickles."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from weft import Tensor
from weft.jit.archive.classes import Definitions, LoadedModule
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
            raise LoadError(
                f"load: expected a class of the archive, got {shown(f'{module}.{name}')}"
            )
        return _MARKS.get(f"{module}.{name}") or find_global(module, name)

    return find


def _type(name: str, cls: type) -> Any:
    if issubclass(cls, enum.Enum):
        return Callee(name, lambda value: _member(name, cls, value), takes_one=True)
    if issubclass(cls, tuple):
        return Callee(name, lambda *values: cls(*values))
    return ObjectType(name, lambda: _new(cls))


def _member(name: str, cls: Any, value: Any) -> Any:
    for member in cls:
        if type(member.value) is type(value) and member.value == value:
            return member
    raise LoadError(f"load: expected a member of {shown(name)}, got {value!r:.80}")


def _new(cls: Any) -> Any:
    made = cls.__new__(cls)
    if isinstance(made, Module):
        Module.__init__(made)
    return made


def _tensor(*args: Any) -> Tensor:
    """A tensor; a parameter where it requires a gradient, so that whoever names it has the same."""
    made = find_global("torch._utils", "_rebuild_tensor_v2").call(*args)
    return Parameter(made.detach()) if made.requires_grad else made


def _typed(value: Any, type: Any = None) -> Any:
    """A list or dict with its type, which the class that holds it declares as well."""
    return value


_LISTS = ("build_intlist", "build_tensorlist", "build_doublelist", "build_boollist")
_MARKS: dict[str, Any] = {
    f"torch.jit._pickle.{name}": Callee(name, _typed) for name in ("restore_type_tag", *_LISTS)
}
_MARKS["torch._utils._rebuild_tensor_v2"] = Callee("torch._utils._rebuild_tensor_v2", _tensor)


def build(target: Any, state: Any) -> None:
    """Gives an object the attributes it was saved with."""
    if not hasattr(type(target), "__weft_source__"):
        return set_state(target, state)
    if type(state) is not dict or not all(type(name) is str for name in state):
        raise LoadError("load: expected the attributes of an object, got something else")
    if isinstance(target, LoadedModule):
        for name, value in {**type(target)._constants, **state}.items():
            _set(target, name, value)
    else:
        vars(target).update(state)


def _set(module: LoadedModule, name: str, value: Any) -> None:
    if name in module._parameter_names and (value is None or isinstance(value, Tensor)):
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value, requires_grad=False)
        module.register_parameter(name, value)
    elif name in module._buffer_names and (value is None or isinstance(value, Tensor)):
        module.register_buffer(name, value)
    elif isinstance(value, Module):
        module.add_module(name, value)
    elif name != "_is_full_backward_hook":
        setattr(module, name, value)
