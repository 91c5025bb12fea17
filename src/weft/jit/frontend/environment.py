"""What names mean at a place of the program, and how meanings merge where paths meet.

A scope belongs to one block of the graph. Assignments go to the innermost scope; where a block ends
the statement that made it decides what becomes of them (see control_flow.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weft.jit.ir import types as ty

if TYPE_CHECKING:
    from weft.jit.frontend.values import Sugared


class Undefined:
    """A name that has no usable value here; using it shows `message`."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint


class Scope:
    """Names set in one block. `refined` tells which of them are the outer value, known better."""

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self.names: dict[str, Sugared | Undefined] = {}
        self.refined: dict[str, Sugared | Undefined] = {}  # name -> the value before refinement
        self.declared: dict[str, ty.Type] = {}

    def find(self, name: str) -> Any:
        """The meaning of a name, or None."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def set(self, name: str, value: Sugared | Undefined) -> None:
        """Assigns a name in this scope."""
        self.names[name] = value
        self.refined.pop(name, None)

    def refine(self, name: str, value: Sugared) -> None:
        """Within this scope the name is known to be of a narrower type."""
        before = self.refined.get(name, self.find(name))
        self.names[name] = value
        self.refined[name] = before

    def declare(self, name: str, type: ty.Type) -> None:
        """Fixes the type of a name: `x: Optional[int] = None`."""
        self.declared[name] = type

    def declared_type(self, name: str) -> ty.Type | None:
        """The type a name was declared with, if any."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.declared:
                return scope.declared[name]
            scope = scope.parent
        return None

    def changed(self) -> Iterator[str]:
        """Names that were assigned here; those that were only refined are left out."""
        return (name for name in self.names if name not in self.refined)


class Flow:
    """How a block can end: by reaching its end, or by return, break, continue or raise.

    FALL etc. are the kinds of exits; a block has a frozenset of them.
    """

    FALL, RETURN, BREAK, CONTINUE, RAISE = "fall", "return", "break", "continue", "raise"


FALLS: frozenset[str] = frozenset((Flow.FALL,))
RAISES: frozenset[str] = frozenset((Flow.RAISE,))
# The variables that remember an exit taken, where it is only known at run time.
FLAGS = {Flow.RETURN: "$returned", Flow.BREAK: "$broke", Flow.CONTINUE: "$continued"}
RESULT = "$result"


def sure(exits: frozenset[str]) -> frozenset[str]:
    """The exits without raise: a path that raises never gets to what comes after."""
    return exits - RAISES
