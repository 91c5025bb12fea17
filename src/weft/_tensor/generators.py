"""Copies of generators: what the extension does not give them."""

from __future__ import annotations

from typing import Any

from weft._C import Generator, Tensor


def standing_at(seed: int, state: Tensor) -> Any:
    """A generator of this seed and state."""
    made: Any = Generator()
    made.manual_seed(seed)
    made.set_state(state)
    return made


def clone_state(self: Any) -> Any:
    """Another generator that stands where this one does, and goes on by itself.

    >>> one = weft.Generator().manual_seed(3)
    >>> other = one.clone_state()
    >>> weft.equal(weft.rand(2, generator=one), weft.rand(2, generator=other))
    True
    """
    return standing_at(self.initial_seed(), self.get_state())


def _reduce(self: Any) -> tuple[Any, ...]:
    return standing_at, (self.initial_seed(), self.get_state())


Generator.clone_state = clone_state  # type: ignore[attr-defined]
Generator.__reduce__ = _reduce  # type: ignore[method-assign]
