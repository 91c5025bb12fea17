"""Results that come later, from another thread or the same one."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A result that somebody sets.

    >>> future = weft.futures.Future()
    >>> later = future.then(lambda done: done.value() + 1)
    >>> future.set_result(1)
    >>> later.wait()
    2
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._result: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._result.done()

    def wait(self) -> T:
        """The result, when it is there; raises the error that was set instead."""
        return self._result.result()

    def value(self) -> T:
        """The result. RuntimeError before it is there."""
        if not self.done():
            raise RuntimeError("Future.value: expected a future that is done, got one that is not")
        return self._result.result()

    def set_result(self, result: T) -> None:
        """Sets the result. RuntimeError for a second one."""
        self._set(lambda: self._result.set_result(result))

    def set_exception(self, result: BaseException) -> None:
        """Sets an error, which wait raises."""
        if not isinstance(result, BaseException):
            raise TypeError(f"Future.set_exception: expected an error, got {type(result).__name__}")
        self._set(lambda: self._result.set_exception(result))

    def _set(self, how: Callable[[], None]) -> None:
        try:
            how()
        except concurrent.futures.InvalidStateError:
            raise RuntimeError("Future: expected no result yet, got a second one") from None

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Calls callback(self) when the result is there; at once if it is."""
        self._result.add_done_callback(lambda _: callback(self))

    def _following(self) -> Future[Any]:
        """A future that is done behind this one, and is waited for in the same way."""
        return Future()

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future of what callback(self) returns."""
        result: Future[S] = self._following()

        def call(done: Future[T]) -> None:
            try:
                value = callback(done)
            except Exception as error:
                result.set_exception(error)
            else:
                result.set_result(value)

        self.add_done_callback(call)
        return result


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of the list, done when all of them are."""
    result: Future[list[Future[Any]]] = Future()
    left, lock = set(range(len(futures))), threading.Lock()

    def count(place: int) -> None:
        with lock:
            left.discard(place)
            is_last = not left
        if is_last:
            result.set_result(futures)

    if not futures:
        result.set_result(futures)
    for place, future in enumerate(futures):
        future.add_done_callback(lambda _, place=place: count(place))  # type: ignore[misc]
    return result


def wait_all(futures: list[Future[T]]) -> list[T]:
    """The results of all, when they are there. Raises the first error."""
    return [future.wait() for future in futures]
