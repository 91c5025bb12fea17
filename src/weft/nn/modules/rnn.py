"""Recurrent layers and cells: RNN, LSTM and GRU over [t, n, features] (or batch first)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from weft import _C
from weft._C import Tensor
from weft._runtime.data_dependent import data_dependent
from weft.amp.autocast_mode import is_autocast_enabled
from weft.nn import functional as F
from weft.nn import init
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter
from weft.nn.utils.rnn import PackedSequence

_lstm_cell = _C._aten._lstm_cell
_recurrent_layer = _C._aten._recurrent_layer
State = tuple[Tensor, ...]
Input = TypeVar("Input", Tensor, PackedSequence)

# Steps ----------------------------------------------------------------------------------------
# Each takes what the input contributes [n, gates * hidden], the state, what the hidden state
# contributes, and gives the next state, whose first member is the output.


def _tanh_step(x: Tensor, state: State, h: Tensor) -> State:
    return ((x + h).tanh(),)


def _relu_step(x: Tensor, state: State, h: Tensor) -> State:
    return ((x + h).relu(),)


def _lstm_step(x: Tensor, state: State, h: Tensor) -> State:
    entry, forget, cell, output = (x + h).chunk(4, -1)
    hidden, memory = _lstm_cell(entry, forget, cell, output, state[1])
    return hidden, memory


def _gru_step(x: Tensor, state: State, h: Tensor) -> State:
    reset_x, update_x, new_x = x.chunk(3, -1)
    reset_h, update_h, new_h = h.chunk(3, -1)
    new = (new_x + (reset_x + reset_h).sigmoid() * new_h).tanh()
    return (new + (update_x + update_h).sigmoid() * (state[0] - new),)


_STEPS: dict[str, tuple[Callable[[Tensor, State, Tensor], State], int]] = {
    "RNN_TANH": (_tanh_step, 1),
    "RNN_RELU": (_relu_step, 1),
    "LSTM": (_lstm_step, 4),
    "GRU": (_gru_step, 3),
}


@data_dependent
def _sequences_of(batch_sizes: Tensor) -> int:
    """How many sequences were packed."""
    return int(batch_sizes[0])


def _fill(module: Module, hidden_size: int) -> None:
    bound = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0
    for parameter in module.parameters():
        init.uniform_(parameter, -bound, bound)


# Layers ---------------------------------------------------------------------------------------


class RNNBase(Module):
    """What the recurrent layers share: parameters, layers and directions.

    `mode` is "LSTM", "GRU", "RNN_TANH" or "RNN_RELU"; the other arguments are those of LSTM.

    >>> [name for name, _ in weft.nn.RNNBase("GRU", 3, 4).named_parameters()]
    ['weight_ih_l0', 'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0']
    """

    _computed_attributes = ("_flat_weights_names", "_flat_weights")

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        for argument, size in (
            ("input_size", input_size),
            ("hidden_size", hidden_size),
            ("num_layers", num_layers),
        ):
            if not isinstance(size, int):
                raise TypeError(f"{name}: expected {argument} as an int, got {size!r}")
            if size <= 0:
                raise ValueError(f"{name}: expected {argument} above 0, got {size}")
        for argument, flag in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(flag, bool):
                raise TypeError(f"{name}: expected {argument} as a bool, got {flag!r}")
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(f"{name}: expected dropout between 0 and 1, got {dropout}")
        if not 0 <= proj_size < hidden_size or (proj_size and mode != "LSTM"):
            raise ValueError(
                f"{name}: expected proj_size 0, or for LSTM less than hidden_size {hidden_size}, "
                f"got {proj_size}"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                f"{name}: dropout acts between layers, expected num_layers above 1, got 1",
                stacklevel=3,
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        # The names of the parameters, for each layer and direction.
        self._all_weights: list[Any] = []
        self._make_parameters(device, dtype)
        self.reset_parameters()

    def _make_parameters(self, device: Any, dtype: Any) -> None:
        gates = _STEPS[self.mode][1] * self.hidden_size
        directions = 2 if self.bidirectional else 1
        outputs = self.proj_size or self.hidden_size
        for layer in range(self.num_layers):
            inputs = outputs * directions if layer else self.input_size
            for direction in range(directions):
                suffix = f"_l{layer}{'_reverse' if direction else ''}"
                shapes: dict[str, tuple[int, ...]] = {
                    f"weight_ih{suffix}": (gates, inputs),
                    f"weight_hh{suffix}": (gates, outputs),
                }
                if self.bias:
                    shapes |= {f"bias_ih{suffix}": (gates,), f"bias_hh{suffix}": (gates,)}
                if self.proj_size:
                    shapes[f"weight_hr{suffix}"] = (self.proj_size, self.hidden_size)
                for name, shape in shapes.items():
                    value = Parameter(_C.empty(shape, device=device, dtype=dtype))
                    self.register_parameter(name, value)
                self._all_weights.append(list(shapes))

    def reset_parameters(self) -> None:
        """Draws all parameters from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        _fill(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Does nothing: the parameters need no common memory here."""

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _start(self, input: Tensor, sequences: int, given: State | None) -> State:
        """The first states [layers * directions, n, size], checked, or zeros."""
        count = len(self._all_weights)
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)
        shapes = tuple((count, sequences, size) for size in sizes)
        if self.mode != "LSTM":
            shapes = shapes[:1]
        if given is None:
            return tuple(
                _C.zeros(shape, dtype=input.dtype, device=input.device) for shape in shapes
            )
        for state, shape in zip(given, shapes):
            if list(state.shape) != list(shape):
                raise RuntimeError(
                    f"{type(self).__name__}: expected a hidden state of shape {shape}, "
                    f"got {tuple(state.shape)}"
                )
        return given

    def _run(self, input: Any, given: State | None) -> tuple[Any, State]:
        """Output and last states for an input in the layout the module was made for."""
        if isinstance(input, PackedSequence):
            return self._run_packed(input, given)
        if input.dim() not in (2, 3):
            raise ValueError(self._wrong_input(input))
        if input.size(-1) != self.input_size:
            raise RuntimeError(self._wrong_input(input))
        dtype = self.weight_ih_l0.dtype
        if input.dtype != dtype and not is_autocast_enabled("cpu"):
            raise ValueError(
                f"{type(self).__name__}: expected an input of the weights' dtype {dtype}, got "
                f"{input.dtype}"
            )
        single = input.dim() == 2
        batch = 0 if self.batch_first else 1
        if single:
            input = input.unsqueeze(batch)
            given = None if given is None else tuple(state.unsqueeze(1) for state in given)
        if self.batch_first:
            input = input.transpose(0, 1)
        output, states = self._run_layers(input, None, self._start(input, input.size(1), given))
        if self.batch_first:
            output = output.transpose(0, 1)
        if single:
            return output.squeeze(batch), tuple(state.squeeze(1) for state in states)
        return output, states

    def _run_packed(
        self, input: PackedSequence, given: State | None
    ) -> tuple[PackedSequence, State]:
        """Output and last states, these in the order of the sequences as they came."""
        data, sizes = input.data, input.batch_sizes
        order, back = input.sorted_indices, input.unsorted_indices
        if data.dim() != 2 or data.size(-1) != self.input_size:
            raise RuntimeError(
                f"{type(self).__name__}: expected packed data of 2 dimensions, the last "
                f"{self.input_size}, got shape {tuple(data.shape)}"
            )
        start = self._start(data, _sequences_of(sizes), given)
        if given is not None and order is not None:
            start = tuple(state.index_select(1, order) for state in start)
        output, states = self._run_layers(data, sizes, start)
        if back is not None:
            states = tuple(state.index_select(1, back) for state in states)
        return PackedSequence(output, sizes, order, back), states

    def _wrong_input(self, input: Tensor) -> str:
        return (
            f"{type(self).__name__}: expected input of 2 or 3 dimensions, the last "
            f"{self.input_size}, got shape {tuple(input.shape)}"
        )

    def _run_layers(
        self, input: Tensor, sizes: Tensor | None, start: State
    ) -> tuple[Tensor, State]:
        """Outputs and last states of [t, n, features], or of packed data with its batch sizes."""
        directions = 2 if self.bidirectional else 1
        last: tuple[State, ...] = ()
        before = input  # what the layer's first direction gave
        # A loop over names, which are constants: weft.jit unrolls it.
        for place, names in enumerate(self._all_weights):
            state = tuple(part[place] for part in start)
            backwards = place % directions == 1
            output, state = self._run_direction(input, sizes, state, names, backwards)
            last = (*last, state)
            if place % directions + 1 < directions:
                before = output
                continue
            input = output if directions == 1 else _C.cat((before, output), -1)
            if self.dropout and self.training and place + 1 < len(self._all_weights):
                input = F.dropout(input, self.dropout, True)
        return input, tuple(_C.stack(part, 0) for part in zip(*last))

    def _run_direction(
        self,
        input: Tensor,
        sizes: Tensor | None,
        state: State,
        names: tuple[str, ...],
        backwards: bool,
    ) -> tuple[Tensor, State]:
        weights = tuple(getattr(self, name) for name in names)
        biases = weights[2:4] if self.bias else (None, None)
        projection = weights[-1] if self.proj_size else None
        memory = state[1] if self.mode == "LSTM" else None
        output, hidden, memory = _recurrent_layer(
            input, sizes, state[0], memory, *weights[:2], *biases, projection, self.mode, backwards
        )
        return output, (hidden, memory) if self.mode == "LSTM" else (hidden,)

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        for name, default in defaults.items():
            if getattr(self, name) != default:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts)


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu with nonlinearity='relu'.

    Arguments, shapes and errors are those of LSTM; the state is one tensor. The dtype, floating, is
    that of the parameters.

    >>> output, h = weft.nn.RNN(3, 4, bidirectional=True)(weft.zeros(5, 2, 3))
    >>> output.shape, h.shape
    (torch.Size([5, 2, 8]), torch.Size([2, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN: expected nonlinearity 'tanh' or 'relu', got {nonlinearity!r}")
        mode = f"RNN_{nonlinearity.upper()}"
        super().__init__(mode, input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity

    def forward(self, input: Input, hx: Tensor | None = None) -> tuple[Input, Tensor]:
        """The outputs of all steps and the last hidden state of each layer and direction."""
        output, (hidden,) = self._run(input, None if hx is None else (hx,))
        return output, hidden


class LSTM(RNNBase):
    """Long short-term memory: the state is (h, c); gates are ordered i, f, g, o.

    Input [t, n, input_size], or [n, t, input_size] with batch_first, or [t, input_size], or a
    PackedSequence; an initial state may follow. Gives the output [t, n, directions * hidden_size]
    and the last state, [num_layers * directions, n, hidden_size] each; proj_size projects h. Raises
    RuntimeError or ValueError for sizes that do not fit. The dtype, floating, is that of the
    parameters.

    >>> lstm = weft.nn.LSTM(3, 4, num_layers=2)
    >>> output, (h, c) = lstm(weft.zeros(5, 1, 3))
    >>> output.shape, h.shape, c.shape
    (torch.Size([5, 1, 4]), torch.Size([2, 1, 4]), torch.Size([2, 1, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def forward(
        self, input: Input, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Input, tuple[Tensor, Tensor]]:
        """The outputs of all steps and the last (h, c) of each layer and direction."""
        output, (hidden, memory) = self._run(input, None if hx is None else (hx[0], hx[1]))
        return output, (hidden, memory)


class GRU(RNNBase):
    """Gated recurrent unit; gates are ordered reset, update, new.

    Arguments, shapes and errors are those of LSTM; the state is one tensor. The dtype, floating, is
    that of the parameters.

    >>> output, h = weft.nn.GRU(3, 4)(weft.zeros(5, 2, 3))
    >>> output.shape, h.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Input, hx: Tensor | None = None) -> tuple[Input, Tensor]:
        """The outputs of all steps and the last hidden state of each layer and direction."""
        output, (hidden,) = self._run(input, None if hx is None else (hx,))
        return output, hidden
