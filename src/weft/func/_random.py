"""Operators that draw random numbers, for a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Tensor
from weft.func._operators import Operator
from weft.func._rules import inserted

if TYPE_CHECKING:
    from weft.func._level import Level

MODES = ("error", "different", "same")


def perform(level: Level, op: Operator, given: Sequence[Any], batched: bool) -> Any:
    """ "different": every sample draws; "same": all draw the same."""
    if op.name == "dropout" and not (op.value(given, "train") and op.value(given, "p")):
        return given[0]
    if level.randomness == "error":
        raise RuntimeError(
            "vmap: expected randomness='different' or 'same' for operators that draw, got "
            f"{op.name} with 'error'"
        )
    if op.in_place and level.samples(given[0]) is None and (batched or level.randomness != "same"):
        raise RuntimeError(
            f"vmap: expected {op.name} in place on a tensor of the batch, got one that is the same "
            "for all samples"
        )
    if level.randomness == "different":
        return _different(level, op, given)
    if not batched:
        with level.outside():
            return op.call(given)
    return _same(level, op, given)


def _different(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """At once where the operator draws each element alone."""
    sizes = [i for i, argument in enumerate(op.arguments) if argument.is_size]
    with level.outside():
        if sizes:
            changed = list(given)
            size = changed[sizes[0]]
            size = list(size) if isinstance(size, (list, tuple)) else [size]
            changed[sizes[0]] = [level.size, *size]
            return level.wrap(op.call(changed))
        ranks = [each.dim() for each in given if isinstance(each, Tensor)]
        if ranks and op.name not in _ALONG_ROWS and not (op.in_place and ranks[0] < max(ranks)):
            made = op.call([_aligned(level, each, max(ranks)) for each in given])
            return given[0] if op.in_place else level.wrap(made)
    spread = [level.wrap(level.expanded(v)) if isinstance(v, Tensor) else v for v in given]
    return level.one_by_one(op.name, op.call, spread)


_ALONG_ROWS = ("multinomial",)  # draws without replacement, from the elements of a row


def _aligned(level: Level, value: Any, rank: int) -> Any:
    """A tensor as those of all samples, each with as many dimensions as the largest operand has."""
    if not isinstance(value, Tensor):
        return value
    return inserted(level.expanded(value), rank - value.dim())


def _same(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Each sample draws from the same state of the generator."""
    generator: Any = next((each for each in given if isinstance(each, _C.Generator)), None)
    read = _C.get_rng_state if generator is None else generator.get_state
    write = _C.set_rng_state if generator is None else generator.set_state
    state = read()

    def call(sample: Sequence[Any]) -> Any:
        write(state)
        return op.call(sample)

    made = level.one_by_one(op.name, call, list(given))
    return given[0] if op.in_place else made
