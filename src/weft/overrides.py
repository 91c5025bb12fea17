"""Asking whether somebody overrides an operator, and letting him: PyTorch's torch.overrides.

A class that defines `__torch_function__(cls, func, types, args, kwargs)` answers for every
operator, method and attribute that is given one of its objects; a `TorchFunctionMode` for every one
of its thread. `func` is the function of weft that was called.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime import torch_function as _torch_function
from weft._runtime.exports import list_own as _list_own
from weft._runtime.public import weft
from weft._runtime.torch_function import DisableTorchFunction as DisableTorchFunction
from weft._runtime.torch_function import (
    DisableTorchFunctionSubclass as DisableTorchFunctionSubclass,
)

Function = Callable[..., Any]

has_torch_function_variadic = _C._has_torch_function_variadic
has_torch_function_unary = _C._has_torch_function_variadic


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether the class of an argument overrides operators, or this thread has a mode.

    >>> weft.overrides.has_torch_function((weft.ones(2), 3))
    False
    """
    return _C._has_torch_function(tuple(relevant_args))


def handle_torch_function(
    public_api: Function, relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """The answer of whoever overrides `public_api`, called with args and kwargs.

    TypeError where none of the classes of `relevant_args` has one.
    """
    relevant = _torch_function.overloaded(relevant_args)
    return _torch_function.dispatch(public_api, relevant, args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Function], Function]:
    """A decorator: the function can be overridden by the arguments that `dispatcher` gives.

    >>> @weft.overrides.wrap_torch_function(lambda x: (x,))
    ... def double(x): return x + x
    >>> double(2)
    4
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(call, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return call

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether the object is a Tensor, or of a class that overrides operators as one."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


class TorchFunctionMode:
    """A context that answers for every operator of its thread, factories included.

    Derive from it and define `__torch_function__`; inside of that the mode itself is off. Modes may
    be nested: the innermost is asked, and what it calls reaches the one around it.

    >>> class Names(weft.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Names(): x = weft.ones(2) * 2
    ones
    mul
    """

    def __init__(self) -> None:
        pass

    def __torch_function__(
        self,
        func: Function,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """The result of `func`, or NotImplemented. NotImplementedError in the base class."""
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        _torch_function.push_mode(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        _torch_function.pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        """A new mode, as its class would be called."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(
        self,
        func: Function,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> TorchFunctionMode | None:
    stack = _torch_function.modes()
    return stack[-1] if stack else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    return _torch_function.modes()


def get_default_nowrap_functions() -> set[Function]:
    """What a subclass of Tensor hands out as it is: attributes that are other tensors."""
    return set(_torch_function.default_nowrap_functions())


# ---- which functions there are ----

_NAMESPACES = (".functional", "", ".nn.functional", ".linalg", ".fft", ".special")


def _module(suffix: str) -> types.ModuleType:
    return functools.reduce(getattr, suffix.split(".")[1:], weft)


def _members(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    for name in dir(module):
        value = getattr(module, name, None)
        if not name.startswith("_") and callable(value) and not inspect.isclass(value):
            yield name, value


def _is_overridable(value: Any) -> bool:
    return isinstance(value, (_C._OpFunction, _C._Overridable))


@functools.cache
def _tables() -> tuple[dict[Any, list[Function]], dict[Function, str]]:
    """Functions by the namespace that has them, and their names."""
    functions: dict[Any, list[Function]] = {}
    names: dict[Function, str] = {}
    for suffix in _NAMESPACES:
        module = _module(suffix)
        found = [(n, v) for n, v in _members(module) if _is_overridable(v)]
        functions[module] = [value for _, value in found]
        if suffix == ".functional":  # where PyTorch has an operator
            found = [(n, v) for n, v in found if n != "istft"]
        for name, value in found:
            names.setdefault(value, f"torch{suffix}.{name}")
    functions[Tensor] = []
    for name, value in _tensor_members():
        functions[Tensor].append(value)
        names.setdefault(value, f"torch.Tensor.{name}")
    return functions, names


def _tensor_members() -> Iterator[tuple[str, Function]]:
    for name, value in vars(Tensor).items():
        if isinstance(value, (types.GetSetDescriptorType, property)):
            yield f"{name}.__get__", value.__get__
        elif callable(value) and name not in _NO_METHODS:
            yield name, value


_NO_METHODS = frozenset(
    ("__new__", "__init__", "__hash__", "__dir__", "__setattr__", "__getattribute__")
    + ("__delattr__", "__torch_function__", "_make_subclass", "as_subclass", "__array_priority__")
)


def get_overridable_functions() -> dict[Any, list[Function]]:
    """The functions that can be overridden, by the module or class that has them.

    >>> weft.relu in weft.overrides.get_overridable_functions()[weft]
    True
    """
    return {where: list(found) for where, found in _tables()[0].items()}


def get_ignored_functions() -> set[Function]:
    """Functions of weft that ask nobody: those that make tensors of data, and settings."""
    modules = map(_module, _NAMESPACES)
    return {v for module in modules for _, v in _members(module) if not _is_overridable(v)}


def get_testing_overrides() -> dict[Function, Function]:
    """For each function that can be overridden one that takes anything and gives -1."""
    return {function: _minus_one for found in _tables()[0].values() for function in found}


def _minus_one(*args: Any, **kwargs: Any) -> int:
    return -1


def resolve_name(f: Function) -> str | None:
    """PyTorch's dotted name of a function that can be overridden, None for others.

    >>> weft.overrides.resolve_name(weft.Tensor.add), weft.overrides.resolve_name(len)
    ('torch.Tensor.add', None)
    """
    try:
        return _tables()[1].get(f)
    except TypeError:  # no hash
        return None


def is_tensor_method_or_property(func: Function) -> bool:
    """Whether a function that was overridden is a method of Tensor, or reads an attribute."""
    return func in _of_tensors() or getattr(func, "__name__", "") in ("__get__", "__set__")


@functools.cache
def _of_tensors() -> frozenset[Function]:
    return frozenset(_tables()[0][Tensor])


_list_own(
    vars(),
    "DisableTorchFunction DisableTorchFunctionSubclass has_torch_function_unary "
    "has_torch_function_variadic",
)
