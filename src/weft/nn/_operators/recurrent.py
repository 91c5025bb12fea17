"""Recurrent layers and cells as operators, of padded tensors and of packed sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft.nn.functional as F
from weft import _C
from weft._C import Tensor
from weft._runtime.torch_function import declare as _declare
from weft.nn.modules.rnn import _gru_step, _lstm_step, _recurrent_layer, _relu_step, _tanh_step
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
            input = output if directions == 1 else _C.cat((before, output), -1)
            if dropout > 0 and train and place + 1 < num_layers * directions:
                input = F.dropout(input, dropout, True)
    return input, _C.stack(firsts, 0), _C.stack(lasts, 0)


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


def lstm_padded(
    input: Tensor, hx: list[Tensor], params: list[Tensor], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    return _run_padded("LSTM", input, (hx[0], hx[1]), params, has_biases, num_layers, dropout,
                       train, bidirectional, batch_first)  # fmt: skip


def lstm_packed(
    data: Tensor, batch_sizes: Tensor, hx: list[Tensor], params: list[Tensor], has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    return _run_layers("LSTM", data, batch_sizes, (hx[0], hx[1]), params, has_biases,
                       num_layers, dropout, train, bidirectional)  # fmt: skip


def _with_one_state(mode: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The operators of a mode whose cells have no memory, of padded and of packed input."""

    def padded(
        input: Tensor, hx: Tensor, params: list[Tensor], has_biases: bool, num_layers: int,
        dropout: float, train: bool, bidirectional: bool, batch_first: bool,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        return _run_padded(mode, input, (hx,), params, has_biases, num_layers, dropout, train,
                           bidirectional, batch_first)[:2]  # fmt: skip

    def packed(
        data: Tensor, batch_sizes: Tensor, hx: Tensor, params: list[Tensor], has_biases: bool,
        num_layers: int, dropout: float, train: bool, bidirectional: bool,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        return _run_layers(mode, data, batch_sizes, (hx,), params, has_biases, num_layers,
                           dropout, train, bidirectional)[:2]  # fmt: skip

    for function in (padded, packed):  # archives find an operator again by the name
        function.__qualname__ = function.__name__ = f"{mode.lower()}_{function.__name__}"
    return padded, packed


rnn_tanh_padded, rnn_tanh_packed = _with_one_state("RNN_TANH")
rnn_relu_padded, rnn_relu_packed = _with_one_state("RNN_RELU")
gru_padded, gru_packed = _with_one_state("GRU")

# Both kinds of input by one name ------------------------------------------------------------------


def lstm(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Layers of LSTM cells: the outputs, and the last states and cells of each layer.

    lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    takes input [t, n, features] (batch_first: [n, t, features]) and hx = [states, cells]; params
    are the weights of input and states, then both biases, of each layer and direction.
    lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional) takes
    the parts of a packed sequence.

    >>> start, params = [weft.zeros(1, 1, 1)] * 2, [weft.ones(4, 2), weft.ones(4, 1)]
    >>> weft.lstm(weft.ones(1, 1, 2), start, params, False, 1, 0.0, False, False, False)[0]
    tensor([[[0.6083]]])
    """
    return _chosen(lstm_padded, lstm_packed, args, kwargs)


def gru(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Layers of gated recurrent units: the outputs, and the last states of each layer.

    Arguments are those of lstm; hx is the tensor of the first states.

    >>> start, params = weft.zeros(1, 1, 1), [weft.ones(3, 2), weft.ones(3, 1)]
    >>> weft.gru(weft.ones(1, 1, 2), start, params, False, 1, 0.0, False, False, False)[0]
    tensor([[[0.1149]]])
    """
    return _chosen(gru_padded, gru_packed, args, kwargs)


def rnn_tanh(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Layers of recurrent units with tanh: the outputs, and the last states of each layer.

    Arguments are those of lstm; hx is the tensor of the first states.

    >>> start, params = weft.zeros(1, 1, 1), [weft.ones(1, 2), weft.ones(1, 1)]
    >>> weft.rnn_tanh(weft.ones(1, 1, 2), start, params, False, 1, 0.0, False, False, False)[0]
    tensor([[[0.9640]]])
    """
    return _chosen(rnn_tanh_padded, rnn_tanh_packed, args, kwargs)


def rnn_relu(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Layers of recurrent units with relu: the outputs, and the last states of each layer.

    Arguments are those of lstm; hx is the tensor of the first states.

    >>> start, params = weft.zeros(1, 1, 1), [weft.ones(1, 2), weft.ones(1, 1)]
    >>> weft.rnn_relu(weft.ones(1, 1, 2), start, params, False, 1, 0.0, False, False, False)[0]
    tensor([[[2.]]])
    """
    return _chosen(rnn_relu_padded, rnn_relu_packed, args, kwargs)


def _chosen(
    padded: Callable[..., Any], packed: Callable[..., Any], args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:  # fmt: skip
    """The call by the kind of input: the parameters are the fourth argument of a packed one."""
    is_packed = "batch_sizes" in kwargs or (len(args) > 3 and isinstance(args[3], (list, tuple)))
    return packed(*args, **kwargs) if is_packed else padded(*args, **kwargs)


# Packed sequences --------------------------------------------------------------------------------


def _pack_padded_sequence(
    input: Tensor, lengths: Tensor, batch_first: bool
) -> tuple[Tensor, Tensor]:
    """The data and the batch sizes of nn.utils.rnn.pack_padded_sequence."""
    packed = pack_padded_sequence(input, lengths, batch_first)
    return packed.data, packed.batch_sizes


def _pad_packed_sequence(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float, total_length: int
) -> tuple[Tensor, Tensor]:
    """The sequences of nn.utils.rnn.pad_packed_sequence, and their lengths."""
    packed = PackedSequence(data, batch_sizes)
    return pad_packed_sequence(packed, batch_first, padding_value, total_length)


# Cells -------------------------------------------------------------------------------------------


def _run_cell(
    step: Callable[..., Any], input: Tensor, state: tuple[Tensor, ...],
    weights: tuple[Tensor, Tensor], biases: tuple[Tensor | None, Tensor | None],
) -> Any:  # fmt: skip
    inputs = F.linear(input, weights[0], biases[0])
    return step(inputs, state, F.linear(state[0], weights[1], biases[1]))


def lstm_cell(
    input: Tensor, hx: list[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The next state and cell of nn.LSTMCell; hx is [state, cell].

    >>> start = [weft.zeros(1, 1), weft.zeros(1, 1)]
    >>> weft.lstm_cell(weft.ones(1, 2), start, weft.ones(4, 2), weft.ones(4, 1))
    (tensor([[0.6083]]), tensor([[0.8491]]))
    """
    return _run_cell(_lstm_step, input, (hx[0], hx[1]), (w_ih, w_hh), (b_ih, b_hh))


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The next state of nn.GRUCell.

    >>> weft.gru_cell(weft.ones(1, 2), weft.zeros(1, 1), weft.ones(3, 2), weft.ones(3, 1))
    tensor([[0.1149]])
    """
    return _run_cell(_gru_step, input, (hx,), (w_ih, w_hh), (b_ih, b_hh))[0]


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The next state of nn.RNNCell with tanh.

    >>> weft.rnn_tanh_cell(weft.ones(1, 2), weft.zeros(1, 1), weft.ones(1, 2), weft.ones(1, 1))
    tensor([[0.9640]])
    """
    return _run_cell(_tanh_step, input, (hx,), (w_ih, w_hh), (b_ih, b_hh))[0]


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The next state of nn.RNNCell with relu.

    >>> weft.rnn_relu_cell(weft.ones(1, 2), weft.zeros(1, 1), weft.ones(1, 2), weft.ones(1, 1))
    tensor([[2.]])
    """
    return _run_cell(_relu_step, input, (hx,), (w_ih, w_hh), (b_ih, b_hh))[0]


OVERLOADS: dict[str, tuple[Callable[..., Any], ...]] = {
    "gru": (gru_padded, gru_packed),
    "lstm": (lstm_padded, lstm_packed),
    "rnn_relu": (rnn_relu_padded, rnn_relu_packed),
    "rnn_tanh": (rnn_tanh_padded, rnn_tanh_packed),
}
__all__ = [
    "_pack_padded_sequence", "_pad_packed_sequence", "gru", "gru_cell", "lstm", "lstm_cell",
    "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell",
]  # fmt: skip

_declare(globals(), __all__)
