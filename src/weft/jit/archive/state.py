"""Objects whose class says what is saved of them: its __getstate__ and __setstate__, run as the
programs that they are."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft.jit.archive.classes import LoadedModule
from weft.jit.execution import LOCK, class_of, executable
from weft.jit.frontend.source.errors import from_outside
from weft.jit.frontend.types.class_methods import compile_method
from weft.jit.frontend.types.classes import ClassInfo, class_info
from weft.jit.frontend.types.module_types import JitAttribute, module_info
from weft.jit.ir import types as ty
from weft.nn import Module, Parameter
from weft.serialization.errors import LoadError, shown


def has_state(type: ty.ClassType) -> bool:
    """Whether archives have what the __getstate__ of a class gives for its objects."""
    return "__setstate__" in type.methods


def state_of(value: Any, type: ty.ClassType) -> tuple[Any, ty.Type]:
    """What the __getstate__ of an object's class gives, and its type."""
    function = compile_method(type.info, "__getstate__", "", None).function
    return executable(function)(getattr(value, "_jit_object", value)), function.return_type


def restored(target: Any, state: Any) -> dict[str, Any]:
    """The attributes that the __setstate__ of the target's class sets, by name. LoadError where the
    program raises."""
    with LOCK, from_outside():
        info = (
            _module_info(target) if isinstance(target, LoadedModule) else class_info(type(target))
        )
        run = executable(compile_method(info, "__setstate__", "", None).function)
    made = class_of(info.type).new()
    try:
        run(made, state)
    except RuntimeError:
        raise
    except Exception as error:  # of whatever class the program raises
        name = type(target).__name__
        raise LoadError(
            f"load: expected a state that __setstate__ of {shown(name)} takes; it raised "
            f"{type(error).__name__}: {shown(str(error))}"
        ) from error
    found = {name: getattr(made, name) for name in info.type.attributes}
    return {name: value for name, value in found.items() if _is_set(info, name, value)}


def _is_set(info: ClassInfo, name: str, value: Any) -> bool:
    """Whether an attribute has a value. One that nothing has set reads as None."""
    return value is not None or ty.is_subtype(ty.NONE, info.type.attributes[name].type)


def _module_info(target: LoadedModule) -> ClassInfo:
    """The type of a module without values: tensors are empty, other attributes as declared."""
    layout, declared = type(target).__weft_layout__, type(target).__annotations__
    for name in layout.parameters:
        Module.register_parameter(target, name, Parameter(_C.empty(0)))
    for name in layout.buffers:
        Module.register_buffer(target, name, _C.empty(0))
    placed = [name for name in declared if name not in vars(target)]
    for name in placed:
        setattr(target, name, JitAttribute(None, declared[name]))
    info = module_info(target, shared=False)
    for name in placed:
        delattr(target, name)
    return info
