"""fork and wait in Python: the call runs at once, and its result is handed out later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Future(Generic[T]):
    """A result that is there already; programs have real ones."""

    def __init__(self, value: T) -> None:
        self._value = value

    def wait(self) -> T:
        """The result."""
        return self._value

    value = wait

    def done(self) -> bool:
        """True."""
        return True


def fork(func: Callable[..., T], *args: Any, **kwargs: Any) -> Future[T]:
    """In a program: starts func(*args) beside it. In Python: calls it."""
    return Future(func(*args, **kwargs))


def wait(future: Any) -> Any:
    """The result of a fork, when it is there."""
    return future.wait()


_fork, _wait = fork, wait  # their names in older programs
fork.__weft_jit__ = "fork"  # type: ignore[attr-defined]
wait.__weft_jit__ = "wait"  # type: ignore[attr-defined]
