"""Tables of functions by what they are for, in which functions register themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Rules(dict[Any, Callable[..., Any]]):
    """Functions by what they are for. `base`: a table that stands behind this one.

    >>> rules = Rules()
    >>> @rules("add", "plus")
    ... def add(a, b):
    ...     return a + b
    >>> rules["plus"](1, 2)
    3
    """

    def __init__(self, base: Mapping[Any, Callable[..., Any]] | None = None) -> None:
        super().__init__(base or {})
        self._own: set[Any] = set()

    def __call__(self, *kinds: Any) -> Callable[[F], F]:
        """Registers a function; ValueError where another one stands for a kind already."""

        def register(rule: F) -> F:
            for kind in kinds:
                if kind in self._own:
                    known = self[kind].__qualname__
                    raise ValueError(f"rule: expected one for {kind}, got {known} and {rule}")
                self._own.add(kind)
                self[kind] = rule
            return rule

        return register
