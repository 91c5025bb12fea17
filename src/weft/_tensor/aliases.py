"""Second names, as PyTorch has them: clip for clamp, and axis for an argument dim."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from weft import _C
from weft._C import Tensor
from weft._ops.aliases import ALIASES as ALIASES

# What NumPy calls arguments; csrc/bindings/op_parse.cpp knows these names of all operators.
_ARGUMENTS = {"axis": "dim", "keepdims": "keepdim", "a": "input", "x": "input", "x1": "input"}

F = TypeVar("F", bound=Callable[..., Any])


def numpy_names(function: F) -> F:
    """Lets a function written in Python be called with NumPy's names of its arguments, too."""
    raw: Any = getattr(function, "_weft_unwrapped", function)
    known = raw.__code__.co_varnames[: raw.__code__.co_argcount + raw.__code__.co_kwonlyargcount]
    second = {
        name: first for name, first in _ARGUMENTS.items() if first in known and name not in known
    }

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name in second.keys() & kwargs.keys() if kwargs else ():
            if second[name] in kwargs:
                raise TypeError(f"{function.__name__}: expected {second[name]} or {name}, got both")
            kwargs[second[name]] = kwargs.pop(name)
        return function(*args, **kwargs)

    call._weft_unwrapped = raw  # type: ignore[attr-defined]  # programs compile this one
    return cast("F", call)


def install(module: dict[str, Any]) -> None:
    """Gives functions of `module` and methods of Tensor their second names."""
    for alias, name in ALIASES.items():
        for suffix in ("", "_"):
            function = _C._functions.get(name + suffix)
            if function is not None:
                module.setdefault(alias + suffix, function)
            method = getattr(Tensor, name + suffix, None)
            if method is not None and not hasattr(Tensor, alias + suffix):
                setattr(Tensor, alias + suffix, method)
