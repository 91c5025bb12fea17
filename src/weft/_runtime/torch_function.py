"""__torch_function__: classes and modes that answer for operators in weft's place.

The extension notices that an argument's class overrides operators, or that the thread has a mode,
and calls `answer` or `answer_member`. Here stands who is asked, in which order, and what a subclass
of Tensor does by itself: the result is of the subclass.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

import weft._C as _C
from weft._C import Tensor
from weft._runtime import lazy
from weft._runtime.argument_types import refuse, refused_kinds

inspect = lazy.module("inspect")  # takes a third of the time in which weft is imported

Function = Callable[..., Any]


class _Modes(threading.local):
    def __init__(self) -> None:
        self.stack: list[Any] = []


_modes = _Modes()


def push_mode(mode: Any) -> None:
    """From here on the mode is asked first, in this thread."""
    _modes.stack.append(mode)
    _C._set_torch_function_modes(len(_modes.stack))


def pop_mode() -> Any:
    """The mode that was pushed last, which is asked no more. IndexError where there is none."""
    mode = _modes.stack.pop()
    _C._set_torch_function_modes(len(_modes.stack))
    return mode


def replace_modes(modes: list[Any]) -> None:
    """The modes of this thread from here on, the innermost last."""
    _modes.stack[:] = modes
    _C._set_torch_function_modes(len(modes))


def modes() -> list[Any]:
    """The modes of this thread, the innermost last."""
    return list(_modes.stack)


class _Disabled:
    """A context in which less is asked."""

    level: int

    def __enter__(self) -> None:
        self._before = _C._set_torch_function_disabled(self.level)
        if self._before > self.level:
            _C._set_torch_function_disabled(self._before)

    def __exit__(self, *exception: Any) -> None:
        _C._set_torch_function_disabled(self._before)


class DisableTorchFunctionSubclass(_Disabled):
    """A context in which operators do not ask the classes of their arguments; modes they do.

    >>> class Named(weft.Tensor): pass
    >>> with weft._C.DisableTorchFunctionSubclass():
    ...     type(weft.ones(2).as_subclass(Named) + 1).__name__
    'Tensor'
    """

    level = 1


class DisableTorchFunction(_Disabled):
    """A context in which operators ask neither classes nor modes."""

    level = 2


# ---- who is asked ----


def overloaded(arguments: Iterable[Any]) -> list[Any]:
    """One argument of each class that overrides, in order, a subclass before its base."""
    found: dict[type, Any] = {}
    order: list[Any] = []
    for argument in arguments:
        kind = type(argument)
        if kind in found or not _C._overrides(argument):
            continue
        found[kind] = argument
        at = next((i for i, e in enumerate(order) if issubclass(kind, type(e))), len(order))
        order.insert(at, argument)
    return order


def _flat(arguments: Iterable[Any]) -> Iterator[Any]:
    for argument in arguments:
        if isinstance(argument, (tuple, list)):
            yield from argument
        else:
            yield argument


def dispatch(
    function: Function, relevant: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The first answer of the innermost mode and the classes of `relevant` that is not
    NotImplemented. TypeError where there is none."""
    kinds = tuple(map(type, relevant))
    mode = None
    if _modes.stack and not _C._is_torch_function_all_disabled():
        mode = pop_mode()
        try:
            result = mode.__torch_function__(function, kinds, args, kwargs)
        finally:
            push_mode(mode)
        if result is not NotImplemented:
            return result
    for argument in relevant:
        result = argument.__torch_function__(function, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"no implementation found for '{name_of(function)}' on types that implement "
        f"__torch_function__: {list(kinds)}" + ("" if mode is None else f" nor in mode {mode}")
    )


def name_of(function: Function) -> str:
    """A function's dotted name, for messages."""
    name: str = getattr(function, "__qualname__", "") or getattr(
        function, "__name__", repr(function)
    )
    module = getattr(function, "__module__", None)
    return f"{module}.{name}" if module else name


def answer(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a function that somebody overrides. What is written in Python is shown with
    the defaults that hold: arguments without one by position, the others by name."""
    relevant = overloaded(_flat((*args, *kwargs.values())))
    if (shown := getattr(function, "_weft_shown", None)) and not kwargs:
        args = tuple(shown(*args))
    elif isinstance(function, _C._Overridable) and not function._weft_operator:
        args, kwargs = _spelled_out(function, args, kwargs)
    return dispatch(function, relevant, args, kwargs)


_parameters = functools.cache(lambda function: inspect.signature(function))


def _spelled_out(
    function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    try:
        bound = _parameters(function).bind(*args, **kwargs)
    except TypeError:
        return args, kwargs  # which the function itself will refuse
    bound.apply_defaults()
    first: list[Any] = []
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        parameter = bound.signature.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            first += value
        elif parameter.kind is parameter.VAR_KEYWORD:
            named.update(value)
        elif parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
            first.append(value)
        else:
            named[name] = value
    return tuple(first), named


# ---- slots, methods and attributes of Tensor ----

# What a slot stands for: with a tensor on the left; with something else there.
_BINARY = {
    "add": ("add", "add"),
    "subtract": ("sub", "__rsub__"),
    "multiply": ("mul", "mul"),
    "true_divide": ("div", "__rdiv__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"),
    "remainder": ("remainder", "__rmod__"),
    "power": ("__pow__", "__rpow__"),
    "matrix_multiply": ("matmul", "__rmatmul__"),
    "and": ("__and__", "bitwise_and"),
    "or": ("__or__", "bitwise_or"),
    "xor": ("__xor__", "bitwise_xor"),
    "lshift": ("__lshift__", "__rlshift__"),
    "rshift": ("__rshift__", "__rrshift__"),
    "eq": ("__eq__", "__eq__"),
    **{name: (name, name) for name in ("ne", "lt", "le", "gt", "ge")},
    "inplace_add": ("add_", "add_"),
    "inplace_subtract": ("sub_", "sub_"),
    "inplace_multiply": ("mul_", "mul_"),
    "inplace_true_divide": ("div_", "div_"),
    "inplace_floor_divide": ("floor_divide_", "floor_divide_"),
    "inplace_remainder": ("remainder_", "remainder_"),
    "inplace_power": ("__ipow__", "__ipow__"),
    **{f"inplace_{n}": (f"__i{n}__",) * 2 for n in ("and", "or", "xor", "lshift", "rshift")},
}
_METHODS = {
    "length": "__len__",
    "subscript": "__getitem__",
    "assign_subscript": "__setitem__",
    "contains": "__contains__",
    "negative": "neg",
    "positive": "positive",
    "absolute": "abs",
    "invert": "__invert__",
}


def answer_member(name: str, role: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """As `answer`, for what the extension writes by hand: a slot, a method, an attribute that is
    read ("get") or set, a function of the module."""
    if name == "iter":
        return _rows(args[0])
    if role == "method" and name in _BINARY:
        forward, reflected = _BINARY[name]
        if isinstance(args[0], Tensor):
            member = getattr(Tensor, forward)
        else:
            member, args = getattr(Tensor, reflected), (args[1], args[0])
        try:
            return dispatch(member, overloaded(_flat(args)), args, kwargs)
        except TypeError:
            return NotImplemented  # the other operand gets its turn
    if role == "function":
        args = args[1:]  # without the module
    arguments = args[:1] if role in ("get", "set") else (*args, *kwargs.values())
    return dispatch(_member(name, role), overloaded(_flat(arguments)), args, kwargs)


@functools.cache
def _member(name: str, role: str) -> Function:
    if role == "function":
        return getattr(_C, name.removeprefix("weft."))
    if role == "get":
        return getattr(Tensor, name).__get__
    if role == "set":
        return getattr(Tensor, name.removeprefix("set_")).__set__
    return getattr(Tensor, _METHODS.get(name, name))


def _rows(tensor: Tensor) -> Iterator[Any]:
    if tensor.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(tensor.unbind(0))


# ---- what classes get by themselves ----


@functools.cache
def default_nowrap_functions() -> frozenset[Function]:
    """Attributes whose tensors are handed out as they are, also by a subclass."""
    return frozenset({_member("_base", "get"), _member("grad", "get")})


def convert(result: Any, cls: type) -> Any:
    """Tensors of a result as tensors of the subclass, in tuples and lists as well."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        return type(result)(convert(item, cls) for item in result)
    return result


def _torch_function(
    cls: type,
    func: Function,
    types: Iterable[type],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """The function's result, of this subclass of Tensor; NotImplemented where arguments are of
    classes that it does not derive from."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return result if func in default_nowrap_functions() else convert(result, cls)


def overridable(function: Any, is_operator: bool = False) -> Any:
    """The function, which asks the classes of its arguments and modes first.

    is_operator: it is one in PyTorch: it is shown with the arguments as they were given, and is no
    method where it is an attribute of a class.
    """
    vars(function).setdefault("_weft_unwrapped", function)  # what programs compile
    function._weft_operator = is_operator
    return _C._overridable(function, is_operator)


def declare(
    namespace: dict[str, Any], others: Iterable[str] = (), names: Iterable[str] | None = None
) -> None:
    """Makes functions that are written in a module overridable: all public ones, or these.

    Most functions of nn are Python's in PyTorch, most others are operators; `others` are not.
    """
    of_nn = namespace["__name__"].startswith("weft.nn.")
    made: dict[Any, Any] = {}  # a second name stays the same function
    for name in list(namespace) if names is None else names:
        value = namespace[name]
        is_own = isinstance(value, FunctionType) and value.__module__ == namespace["__name__"]
        if is_own and not name.startswith("_"):
            if value not in made:
                made[value] = overridable(value, is_operator=(name in others) is of_nn)
            namespace[name] = made[value]


def install() -> None:
    """Gives Tensor its __torch_function__, and the extension whom it asks."""
    setattr(Tensor, "__torch_function__", classmethod(_torch_function))  # noqa: B010
    setattr(_C, "DisableTorchFunctionSubclass", DisableTorchFunctionSubclass)  # noqa: B010
    setattr(_C, "DisableTorchFunction", DisableTorchFunction)  # noqa: B010
    _C._set_torch_function_hooks(answer, answer_member, refused_kinds, refuse)
