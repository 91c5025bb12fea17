"""Recurrent layers over PackedSequence: fewer sequences take part with each step."""

from __future__ import annotations

from collections.abc import Callable

import weft
from weft._C import Tensor
from weft._runtime.data_dependent import data_dependent
from weft.nn import functional as F

State = tuple[Tensor, ...]


@data_dependent
def sequences_of(batch_sizes: Tensor) -> int:
    """How many sequences were packed."""
    return int(batch_sizes[0])


@data_dependent
def loop_packed(
    step: Callable[[Tensor, State, Tensor], State],
    steps: Tensor,
    batch_sizes: Tensor,
    start: State,
    weight: Tensor,
    bias: Tensor | None,
    projection: Tensor | None,
    backwards: bool,
) -> tuple[Tensor, State]:
    """The outputs of all steps [sum of lengths, features] and each sequence's last state."""
    sizes: list[int] = batch_sizes.tolist()
    parts = steps.split(sizes, 0)
    have = sizes[-1] if backwards else sizes[0]
    state = tuple(part[:have] for part in start)
    outputs: list[Tensor] = []
    ended: list[Tensor] = []  # one after another, the members of the states of those that are over
    for x in parts[::-1] if backwards else parts:
        need = x.size(0)
        if have < need:  # backwards: a sequence joins at its last step, with its own start
            joined = zip(state, start)
            state = tuple(weft.cat((part, first[have:need])) for part, first in joined)
        elif need < have:  # the shortest sequences are over
            ended += [part[need:] for part in state]
            state = tuple(part[:need] for part in state)
        have = need
        state = step(x, state, F.linear(state[0], weight, bias))
        if projection is not None:
            state = (F.linear(state[0], projection), *state[1:])
        outputs.append(state[0])
    if len(ended) > 0:
        count = len(state)
        state = tuple(
            weft.cat([part, *ended[place::count][::-1]]) for place, part in enumerate(state)
        )
    return weft.cat(outputs[::-1] if backwards else outputs), state
