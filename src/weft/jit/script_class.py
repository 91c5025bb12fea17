"""Python classes in programs, and their instances across the border."""

from __future__ import annotations

import enum
from typing import Any

from weft._runtime.annotations import OF_PYTHON
from weft._runtime.public import weft
from weft.jit import python_classes
from weft.jit.execution import class_of
from weft.jit.frontend.registry import verb
from weft.jit.frontend.source.errors import FrontendError
from weft.jit.frontend.types.class_methods import compile_method
from weft.jit.frontend.types.classes import class_info, type_of_class
from weft.jit.ir import types as ty
from weft.jit.shared_objects import can_share, instance_of, shared_object


def script_class(cls: type, extra: dict[str, Any]) -> type:
    """Compiles a class with its methods; gives the class itself.

    Enums, NamedTuples and interfaces are types already and are only checked.
    """
    if issubclass(cls, weft.nn.Module) and "__weft_interface__" not in vars(cls):
        raise RuntimeError(
            f"script: expected a module, got the module class {cls.__name__}; "
            f"script an instance: weft.jit.script({cls.__name__}(...))"
        )
    if issubclass(cls, (enum.Enum, tuple)) or "__weft_interface__" in vars(cls):
        type_of_class(cls)
        return cls
    if issubclass(cls, BaseException):
        raise RuntimeError(f"script: expected a class of values, got the exception {cls.__name__}")
    cls.__weft_script__ = True  # type: ignore[attr-defined]
    try:
        info = class_info(cls, None, extra)
        for name, member in vars(cls).items():
            if (
                callable(member)
                and hasattr(member, "__code__")
                and name not in _GENERATED
                and member.__module__ not in _WRITERS
                and getattr(member, "_weft_jit_mode", None) is None
            ):
                compile_method(info, name, "", None)
    except FrontendError:
        del cls.__weft_script__  # type: ignore[attr-defined]
        raise
    return cls


# What @dataclass writes: it has no source, and programs have their own.
_WRITTEN = ("__init__", "__repr__", "__eq__", "__hash__", "__lt__", "__le__", "__gt__", "__ge__")
_GENERATED = OF_PYTHON.union(_WRITTEN)
_WRITERS = ("dataclasses", "weft.jit.shared_objects")  # of __replace__, say, and of __getstate__


def is_plain(cls: type) -> bool:
    """Whether a class is compiled only because a module has objects of it: those are copied."""
    return hasattr(cls, "_from_jit") and not hasattr(cls, "__weft_script__")


def object_of(given: Any, made: dict[int, Any]) -> Any:
    """A new object of a program with the attributes of a Python object. One that is found twice is
    one object in the program, too; `made` holds those by the id of Python's."""
    known = made.get(id(given))
    if known is not None:
        return known
    info = class_info(type(given))
    result = made[id(given)] = class_of(info.type).new()
    for name, declared in info.type.attributes.items():
        value = getattr(given, name)
        if isinstance(declared.type, ty.ClassType) and hasattr(type(value), "_from_jit"):
            value = object_of(value, made)
        setattr(result, name, value)
    return result


def _to_jit(self: Any) -> Any:
    return shared_object(self) if can_share(type(self)) else object_of(self, {})


def _from_jit(cls: Any, made: Any) -> Any:
    if can_share(cls):
        return instance_of(cls, made)
    result = cls.__new__(cls)
    for name in made._class.attributes:
        object.__setattr__(result, name, getattr(made, name))
    return result


@verb("register_class")
def register_class(name: str, cls: type) -> None:
    """Makes instances of a class cross the border between Python and programs."""
    if not hasattr(cls, "_jit_object"):
        cls._jit_object = property(_to_jit)  # type: ignore[attr-defined]
        cls._from_jit = classmethod(_from_jit)  # type: ignore[attr-defined]
    python_classes.register(name, cls)
