"""Functions and decorators that programs are written with; in Python they do the obvious."""

from __future__ import annotations

import builtins
import types as python_types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from weft._runtime.annotations import OF_PYTHON
from weft._runtime.program_state import is_scripting, is_tracing
from weft.jit.frontend.language.generic import register as _register_overload
from weft.jit.frontend.language.objects import COPY, EXPORT, IGNORE, MODE, UNUSED
from weft.jit.frontend.types.module_types import JitAttribute as Attribute

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Final = typing.Final


def annotate(the_type: Any, the_value: T) -> T:
    """In Python the value itself; in a program the value as one of the type.

    >>> annotate(int, 3)
    3
    """
    return the_value


annotate.__weft_jit__ = "annotate"  # type: ignore[attr-defined]


def _mark(function: F, mode: str) -> F:
    target = function.fget if builtins.isinstance(function, property) else function
    target = getattr(target, "__func__", target)
    setattr(target, MODE, mode)
    return function


def export(fn: F) -> F:
    """Marks a method of a module to be compiled though forward does not call it."""
    return _mark(fn, EXPORT)


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Leaves a function to Python: a program that calls it calls Python. Such a program cannot be
    saved, unless it was marked @ignore(drop=True), which is @unused."""
    if callable(drop):
        return _mark(drop, IGNORE)
    if not builtins.isinstance(drop, bool):
        raise RuntimeError(f"ignore: expected drop to be a bool, got {type(drop).__name__}")
    return lambda function: _mark(function, UNUSED if drop else IGNORE)


def unused(fn: F) -> F:
    """Leaves a function out of the program: a call of it raises there."""
    return _mark(fn, UNUSED)


def _copy_to_script_wrapper(fn: F) -> F:
    return _mark(fn, COPY)


def _overload(func: F) -> F:
    """Marks one signature of a function; the implementation follows without the mark."""
    return _register_overload(func)


def _overload_method(func: F) -> F:
    """Marks one signature of a method; the implementation follows without the mark."""
    return _register_overload(func)


def interface(obj: type) -> type:
    """Makes a class a type of everything that has its methods. The methods have no bodies."""
    if not isinstance(obj, type):
        raise RuntimeError(f"interface: expected a class, got {type(obj).__name__}")
    members = [member for name, member in vars(obj).items() if name not in OF_PYTHON]
    if not any(isinstance(member, python_types.FunctionType) for member in members):
        raise RuntimeError(f"interface: expected {obj.__name__} to have methods, got none")
    obj.__weft_interface__ = True  # type: ignore[attr-defined]
    return obj


def _unwrap_optional(x: Any) -> Any:
    """The value, which is not None."""
    assert x is not None, "expected a value, got None"
    return x


def script_method(fn: F) -> F:
    """Marks a method to be compiled when an object of its class, derived from ScriptModule, is
    made. In other modules it is the same as export."""
    return _mark(fn, EXPORT)


def isinstance(obj: Any, target_type: Any) -> bool:
    """isinstance that looks inside lists, dicts, tuples and optionals.

    >>> isinstance([1, 2], list[int]), isinstance([1, 2], list[str])
    (True, False)
    """
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, each) for each in target_type)
    origin, args = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None:
        if target_type in (list, dict, tuple, typing.List, typing.Dict, typing.Tuple):  # noqa: UP006
            raise RuntimeError(
                "isinstance: expected a type with its parts, such as List[int], got "
                f"{getattr(target_type, '__name__', target_type)}"
            )
        return obj is None if target_type is None else builtins.isinstance(obj, target_type)
    if origin is list:
        return builtins.isinstance(obj, list) and all(isinstance(each, args[0]) for each in obj)
    if origin is dict:
        return builtins.isinstance(obj, dict) and all(
            isinstance(key, args[0]) and isinstance(each, args[1]) for key, each in obj.items()
        )
    if origin is tuple:
        same = builtins.isinstance(obj, tuple) and len(obj) == len(args)
        return same and all(isinstance(each, part) for each, part in zip(obj, args))
    return any(isinstance(obj, each) for each in args)


isinstance.__weft_jit__ = "isinstance"  # type: ignore[attr-defined]

__all__ = [
    "Attribute",
    "Final",
    "annotate",
    "export",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "script_method",
    "unused",
]
