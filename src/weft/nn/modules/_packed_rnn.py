"""Recurrent layers over PackedSequence: fewer sequences take part with each step."""

from __future__ import annotations

from typing import Any

import weft
from weft import Tensor
from weft.nn import functional as F
from weft.nn.utils.rnn import PackedSequence

State = tuple[Tensor, ...]


def run_packed(layers: Any, input: PackedSequence, given: State | None) -> tuple[Any, State]:
    """Output (a PackedSequence) and last states, in the order of the sequences as they came."""
    data, sizes = input.data, input.batch_sizes.tolist()
    if data.dim() != 2 or data.size(-1) != layers.input_size:
        raise RuntimeError(
            f"{type(layers).__name__}: expected packed data of 2 dimensions, the last "
            f"{layers.input_size}, got shape {tuple(data.shape)}"
        )
    if given is not None and input.sorted_indices is not None:
        given = tuple(state.index_select(1, input.sorted_indices) for state in given)
    start = layers._start(data[: sizes[0]].unsqueeze(0), given)
    directions = 2 if layers.bidirectional else 1
    last: list[State] = []
    before = data
    for place, names in enumerate(layers._names):
        state = tuple(part[place] for part in start)
        output, state = _run_direction(layers, data, sizes, state, names, place % directions == 1)
        last.append(state)
        if place % directions + 1 < directions:
            before = output
            continue
        data = output if directions == 1 else weft.cat((before, output), -1)
        if layers.dropout and layers.training and place + 1 < len(layers._names):
            data = F.dropout(data, layers.dropout, True)
    states = tuple(weft.stack(part, 0) for part in zip(*last))
    if input.unsorted_indices is not None:
        states = tuple(state.index_select(1, input.unsorted_indices) for state in states)
    order = (input.sorted_indices, input.unsorted_indices)
    return PackedSequence(data, input.batch_sizes, *order), states


def _run_direction(
    layers: Any, data: Tensor, sizes: list[int], start: State, names: Any, backwards: bool
) -> tuple[Tensor, State]:
    advance = layers._stepper(names)
    steps = layers._of_input(data, names).split(sizes, 0)
    outputs: list[Tensor] = []
    if backwards:  # a sequence joins at its last step, with its own start
        state = tuple(part[: sizes[-1]] for part in start)
        for x in reversed(steps):
            have, need = state[0].size(0), x.size(0)
            if have < need:
                joined = zip(state, start)
                state = tuple(weft.cat((part, first[have:need])) for part, first in joined)
            state = advance(x, state)
            outputs.append(state[0])
        return weft.cat(outputs[::-1]), state
    state, ended = start, []
    for x in steps:
        have, need = state[0].size(0), x.size(0)
        if need < have:  # the shortest sequences are over
            ended.append(tuple(part[need:] for part in state))
            state = tuple(part[:need] for part in state)
        state = advance(x, state)
        outputs.append(state[0])
    pieces = [state, *reversed(ended)]
    return weft.cat(outputs), tuple(weft.cat(parts) for parts in zip(*pieces))
