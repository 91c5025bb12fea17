"""Arguments and results of transforms: nested lists, tuples and dicts of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft._C import Tensor
from weft.func._histories import require_tensor
from weft.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten

Argnums = int | tuple[int, ...]
#: whose rows and columns would be halves of a complex derivative
JACOBIANS = ("jacrev", "jacfwd")


def checked_argnums(op: str, argnums: Any, count: int) -> list[int]:
    """The places of arguments, counted from 0. RuntimeError for others than there are."""
    several = isinstance(argnums, tuple)
    positions = list(argnums) if several else [argnums]
    if not positions or not all(type(each) is int for each in positions):
        raise RuntimeError(f"{op}: expected argnums as an int or a tuple of ints, got {argnums!r}")
    for place in positions:
        if not -count <= place < count:
            raise RuntimeError(
                f"{op}: expected argnums within {count} positional arguments, got {place}"
            )
    found = [place % count for place in positions]
    if len(set(found)) != len(found):
        raise RuntimeError(f"{op}: expected argnums without repetition, got {argnums}")
    return found


class Chosen:
    """The arguments that a transform differentiates for: their tensors, and their structure."""

    def __init__(self, op: str, argnums: Argnums, args: tuple[Any, ...]) -> None:
        self._positions = checked_argnums(op, argnums, len(args))
        self._args = args
        self._several = isinstance(argnums, tuple)
        parts = [args[place] for place in self._positions]
        leaves, self._spec = tree_flatten(parts)
        real = op in JACOBIANS
        self.tensors = [require_tensor(op, "arguments", each, real) for each in leaves]

    def call(self, func: Callable[..., Any], tensors: list[Tensor], kwargs: dict[str, Any]) -> Any:
        """func with these tensors in place of those given."""
        args = list(self._args)
        for place, value in zip(self._positions, tree_unflatten(tensors, self._spec)):
            args[place] = value
        return func(*args, **kwargs)

    def others(self, kwargs: dict[str, Any]) -> list[Tensor]:
        """The tensors among the other arguments."""
        rest = [each for i, each in enumerate(self._args) if i not in self._positions]
        return [leaf for leaf in tree_leaves([rest, kwargs]) if isinstance(leaf, Tensor)]

    def like(self, leaves: list[Any]) -> Any:
        """A value for each tensor, in the structure of the arguments."""
        parts = tree_unflatten(leaves, self._spec)
        return tuple(parts) if self._several else parts[0]


def split_aux(op: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """(output, aux) of a function. TypeError unless it gave a pair."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{op}: expected a function that returns (output, aux) for has_aux=True, got "
            f"{type(result).__name__}"
        )
    return result


def output_tensors(op: str, output: Any) -> tuple[list[Tensor], TreeSpec]:
    """The tensors that a function returned, floating or complex, and their structure."""
    leaves, spec = tree_flatten(output)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{op}: expected a function that returns tensors, got {type(leaf).__name__}"
            )
        require_tensor(op, "outputs", leaf, op in JACOBIANS)
    if not leaves:
        raise RuntimeError(f"{op}: expected a function that returns tensors, got none")
    return leaves, spec
