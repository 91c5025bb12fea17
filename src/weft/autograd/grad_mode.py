"""Whether operators record a graph: context managers that are decorators as well.

The mode belongs to the thread that sets it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from weft import _C

_modes = _C._autograd
F = TypeVar("F", bound=Callable[..., Any])

is_grad_enabled: Callable[[], bool] = _modes.is_grad_enabled
is_inference_mode_enabled: Callable[[], bool] = _modes.is_inference_enabled


_GENERATOR = 0x20  # inspect.CO_GENERATOR, without the import


def _decorate(mode: Any, function: F) -> F:
    """`function` with each call inside a fresh copy of `mode`.

    A generator function runs inside it too; the mode of whoever takes its values is left alone.
    """
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & _GENERATOR:

        @functools.wraps(function)
        def generate(*args: Any, **kwargs: Any) -> Any:
            return _run_generator(mode, function(*args, **kwargs))

        return generate  # type: ignore[return-value]

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with mode.clone():
            return function(*args, **kwargs)

    wrapped._weft_mode = mode  # type: ignore[attr-defined]  # programs enter it as well
    return wrapped  # type: ignore[return-value]


def _run_generator(mode: Any, generator: Any) -> Any:
    """Every step of the generator inside `mode`; what is sent or thrown in goes through."""
    try:
        with mode.clone():
            value = next(generator)
        while True:
            try:
                sent = yield value
            except GeneratorExit:
                with mode.clone():
                    generator.close()
                raise
            except BaseException as error:
                with mode.clone():
                    value = generator.throw(error)
            else:
                with mode.clone():
                    value = generator.send(sent)
    except StopIteration as end:
        return end.value


no_grad = _modes.no_grad
enable_grad = _modes.enable_grad


class _DecoratorContextManager:
    """A context manager that decorates functions: each call runs inside a fresh copy of it."""

    def clone(self) -> _DecoratorContextManager:
        """Another context manager for the same mode."""
        return type(self)()

    def __call__(self, function: F) -> F:
        return _decorate(self, function)

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, *exception: object) -> None:
        raise NotImplementedError


class set_grad_enabled(_DecoratorContextManager):
    """Sets grad mode to `mode` at once; as a context manager it restores the old one at the end."""

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled: expected a bool, got {type(mode).__name__}")
        self.mode = mode
        self._old = _modes.set_grad_enabled(mode)

    def clone(self) -> set_grad_enabled:
        return set_grad_enabled(self.mode)

    def __call__(self, function: F) -> F:
        _modes.set_grad_enabled(self._old)  # a decorator changes nothing until the call
        return super().__call__(function)

    def __enter__(self) -> None:
        _modes.set_grad_enabled(self.mode)

    def __exit__(self, *exception: object) -> None:
        _modes.set_grad_enabled(self._old)


class set_multithreading_enabled(_DecoratorContextManager):
    """Keeps `mode`. It has no effect: a backward pass runs in the thread that calls it."""

    _enabled = True

    def __init__(self, mode: bool) -> None:
        self.mode, self._old = mode, set_multithreading_enabled._enabled
        set_multithreading_enabled._enabled = mode

    def clone(self) -> set_multithreading_enabled:
        return set_multithreading_enabled(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        set_multithreading_enabled._enabled = self._old


class inference_mode(_DecoratorContextManager):
    """`no_grad` whose results can never take part in a graph; `inference_mode(False)` ends it.

    Tensors made inside (`x.is_inference()`) may not be changed in place, saved for backward or
    given requires_grad outside; clone() makes ordinary ones of them.
    """

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        if isinstance(mode, bool):
            return self
        self.mode = True
        return self(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def clone(self) -> inference_mode:
        return inference_mode(self.mode)

    def __enter__(self) -> None:
        self._old = (
            _modes.set_grad_enabled(not self.mode),
            _modes.set_inference_enabled(self.mode),
        )

    def __exit__(self, *exception: object) -> None:
        grad, inference = self._old
        _modes.set_grad_enabled(grad)
        _modes.set_inference_enabled(inference)
