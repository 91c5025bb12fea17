"""Recurrent operators, of padded tensors and of packed sequences: the loops of weft's layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft
import weft.nn.functional as F
from weft._C import Tensor
from weft.jit.archive.functions import composed
from weft.nn.modules.rnn import (
    _gru_step,
    _lstm_step,
    _recurrent_layer,
    _relu_step,
    _tanh_step,
)
from weft.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

# Layers ------------------------------------------------------------------------------------------


def _run_layers(
    mode: str, input: Tensor, sizes: Tensor | None, starts: tuple[Tensor, ...],
    params: list[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The outputs of all steps [t, n, features], or of packed data with its batch sizes, and the
    first and the last part of the states behind them. Of each layer and direction `params` has the
    weights, then the biases, then the projection."""
    directions = 2 if bidirectional else 1
    projected = starts[0].size(-1) != starts[-1].size(-1)
    each = (4 if has_biases else 2) + (1 if projected else 0)
    before = input
    firsts: list[Tensor] = []
    lasts: list[Tensor] = []
    for place in range(num_layers * directions):
        at = place * each
        output, hidden, memory = _recurrent_layer(
            input,
            sizes,
            starts[0][place],
            starts[1][place] if len(starts) > 1 else None,
            params[at],
            params[at + 1],
            params[at + 2] if has_biases else None,
            params[at + 3] if has_biases else None,
            params[at + each - 1] if projected else None,
            mode,
            place % directions == 1,
        )
        firsts.append(hidden)
        lasts.append(memory)
        if place % directions + 1 < directions:
            before = output
        else:
            input = output if directions == 1 else weft.cat((before, output), -1)
            if dropout > 0 and train and place + 1 < num_layers * directions:
                input = F.dropout(input, dropout, True)
    return input, weft.stack(firsts, 0), weft.stack(lasts, 0)


def _run_padded(
    mode: str, input: Tensor, starts: tuple[Tensor, ...], params: list[Tensor],
    has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    steps = input.transpose(0, 1) if batch_first else input
    output, first, last = _run_layers(
        mode, steps, None, starts, params, has_biases, num_layers, dropout, train, bidirectional
    )
    return output.transpose(0, 1) if batch_first else output, first, last


@composed("aten::lstm")
def lstm(
    input: Tensor, hx: list[Tensor], params: list[Tensor], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    return _run_padded("LSTM", input, (hx[0], hx[1]), params, has_biases, num_layers, dropout,
                       train, bidirectional, batch_first)  # fmt: skip


@composed("aten::lstm")
def lstm_data(
    data: Tensor, batch_sizes: Tensor, hx: list[Tensor], params: list[Tensor], has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    return _run_layers("LSTM", data, batch_sizes, (hx[0], hx[1]), params, has_biases,
                       num_layers, dropout, train, bidirectional)  # fmt: skip


@composed("aten::rnn_tanh")
def rnn_tanh(
    input: Tensor, hx: Tensor, params: list[Tensor], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _run_padded("RNN_TANH", input, (hx,), params, has_biases, num_layers, dropout, train,
                       bidirectional, batch_first)[:2]  # fmt: skip


@composed("aten::rnn_tanh")
def rnn_tanh_data(
    data: Tensor, batch_sizes: Tensor, hx: Tensor, params: list[Tensor], has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _run_layers("RNN_TANH", data, batch_sizes, (hx,), params, has_biases, num_layers,
                       dropout, train, bidirectional)[:2]  # fmt: skip


@composed("aten::rnn_relu")
def rnn_relu(
    input: Tensor, hx: Tensor, params: list[Tensor], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _run_padded("RNN_RELU", input, (hx,), params, has_biases, num_layers, dropout, train,
                       bidirectional, batch_first)[:2]  # fmt: skip


@composed("aten::rnn_relu")
def rnn_relu_data(
    data: Tensor, batch_sizes: Tensor, hx: Tensor, params: list[Tensor], has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _run_layers("RNN_RELU", data, batch_sizes, (hx,), params, has_biases, num_layers,
                       dropout, train, bidirectional)[:2]  # fmt: skip


@composed("aten::gru")
def gru(
    input: Tensor, hx: Tensor, params: list[Tensor], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _run_padded("GRU", input, (hx,), params, has_biases, num_layers, dropout, train,
                       bidirectional, batch_first)[:2]  # fmt: skip


@composed("aten::gru")
def gru_data(
    data: Tensor, batch_sizes: Tensor, hx: Tensor, params: list[Tensor], has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _run_layers("GRU", data, batch_sizes, (hx,), params, has_biases, num_layers,
                       dropout, train, bidirectional)[:2]  # fmt: skip


# Packed sequences --------------------------------------------------------------------------------


@composed("aten::_pack_padded_sequence")
def _pack_padded_sequence(
    input: Tensor, lengths: Tensor, batch_first: bool
) -> tuple[Tensor, Tensor]:
    packed = pack_padded_sequence(input, lengths, batch_first)
    return packed.data, packed.batch_sizes


@composed("aten::_pad_packed_sequence")
def _pad_packed_sequence(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float, total_length: int
) -> tuple[Tensor, Tensor]:
    packed = PackedSequence(data, batch_sizes)
    return pad_packed_sequence(packed, batch_first, padding_value, total_length)


# Cells -------------------------------------------------------------------------------------------


def _run_cell(
    step: Callable[..., Any], input: Tensor, state: tuple[Tensor, ...],
    weights: tuple[Tensor, Tensor], biases: tuple[Tensor | None, Tensor | None],
) -> Any:  # fmt: skip
    inputs = F.linear(input, weights[0], biases[0])
    return step(inputs, state, F.linear(state[0], weights[1], biases[1]))


@composed("aten::lstm_cell")
def lstm_cell(
    input: Tensor, hx: list[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _run_cell(_lstm_step, input, (hx[0], hx[1]), (w_ih, w_hh), (b_ih, b_hh))


@composed("aten::gru_cell")
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:  # fmt: skip
    return _run_cell(_gru_step, input, (hx,), (w_ih, w_hh), (b_ih, b_hh))[0]


@composed("aten::rnn_tanh_cell")
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:  # fmt: skip
    return _run_cell(_tanh_step, input, (hx,), (w_ih, w_hh), (b_ih, b_hh))[0]


@composed("aten::rnn_relu_cell")
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:  # fmt: skip
    return _run_cell(_relu_step, input, (hx,), (w_ih, w_hh), (b_ih, b_hh))[0]
