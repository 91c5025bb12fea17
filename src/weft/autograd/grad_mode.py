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


class _Mode:
    """A context manager that decorates functions: each call runs inside a fresh copy of it."""

    def clone(self) -> _Mode:
        """Another context manager for the same mode."""
        return type(self)()

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, *exception: object) -> None:
        raise NotImplementedError


class _FixedGrad(_Mode):
    """Sets grad mode to a fixed value; usable as `@no_grad` and as `@no_grad()`."""

    _enabled: bool
    __slots__ = ("_old",)

    def __new__(cls, function: Any = None) -> Any:
        mode = super().__new__(cls)
        return mode if function is None else mode(function)

    def __enter__(self) -> None:
        self._old = _modes.set_grad_enabled(self._enabled)

    def __exit__(self, *exception: object) -> None:
        _modes.set_grad_enabled(self._old)


class no_grad(_FixedGrad):
    """Operators inside record no graph: results do not require grad.

    Example: `with weft.no_grad(): weight -= 0.1 * weight.grad`
    """

    _enabled = False
    __slots__ = ()


class enable_grad(_FixedGrad):
    """Operators inside record a graph, even within `no_grad`."""

    _enabled = True
    __slots__ = ()


class set_grad_enabled(_Mode):
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


class inference_mode(_Mode):
    """`no_grad` that also leaves out the bookkeeping of views; `inference_mode(False)` ends it."""

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
