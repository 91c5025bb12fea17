"""The rules of shapes, by operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.jit.ir.shape import Dim
from weft.jit.passes.shape_call import ShapeCall

Result = Sequence[Dim] | None
Rule = Callable[[ShapeCall], Result]

RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers the rule of these operators, by name or by name and overload."""

    def register(function: Rule) -> Rule:
        RULES.update({f"aten::{name}": function for name in names})
        return function

    return register
