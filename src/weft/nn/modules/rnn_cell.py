"""Single steps of the recurrent layers, for loops written by hand."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.module import Module
from weft.nn.modules.rnn import _STEPS, State, _fill
from weft.nn.parameter import Parameter


class RNNCellBase(Module):
    """What the cells share: weights [num_chunks * hidden, ...], two biases, and the step.

    A cell of a program gives its number of gates and a `forward` of its own.

    >>> isinstance(weft.nn.GRUCell(3, 4), weft.nn.RNNCellBase)
    True
    """

    _mode: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        shapes = {
            "weight_ih": (gates, input_size),
            "weight_hh": (gates, hidden_size),
            "bias_ih": (gates,),
            "bias_hh": (gates,),
        }
        for name, shape in shapes.items():
            wanted = bias or name.startswith("weight")
            value = Parameter(_C.empty(shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all parameters from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        _fill(self, self.hidden_size)

    def _step(self, input: Tensor, state: State | None) -> State:
        if input.dim() not in (1, 2):
            raise ValueError(self._wrong_input(input))
        if input.size(-1) != self.input_size:
            raise RuntimeError(self._wrong_input(input))
        shape = [*input.shape[:-1], self.hidden_size]
        if state is None:
            zeros = _C.zeros(shape, dtype=input.dtype, device=input.device)
            state = (zeros, zeros) if self._mode == "LSTM" else (zeros,)
        for part in state:
            if part.dim() not in (1, 2):
                raise ValueError(self._wrong_state(shape, part))
            if list(part.shape) != shape:
                raise RuntimeError(self._wrong_state(shape, part))
        from_input = F.linear(input, self.weight_ih, self.bias_ih)
        from_hidden = F.linear(state[0], self.weight_hh, self.bias_hh)
        return _STEPS[self._mode][0](from_input, state, from_hidden)

    def _wrong_input(self, input: Tensor) -> str:
        return (
            f"{type(self).__name__}: expected input of 1 or 2 dimensions, the last "
            f"{self.input_size}, got shape {tuple(input.shape)}"
        )

    def _wrong_state(self, shape: list[int], state: Tensor) -> str:
        return (
            f"{type(self).__name__}: expected a hidden state of shape {tuple(shape)}, "
            f"got {tuple(state.shape)}"
        )

    def extra_repr(self) -> str:
        bias = "" if self.bias else ", bias=False"
        return f"{self.input_size}, {self.hidden_size}{bias}"


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu with nonlinearity='relu'.

    Input [n, input_size] or [input_size]; the state alike, zeros unless given. Raises RuntimeError
    or ValueError for sizes that do not fit. The dtype, floating, is that of the parameters.

    >>> weft.nn.RNNCell(3, 4)(weft.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    _mode = "RNN_TANH"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"RNNCell: expected nonlinearity 'tanh' or 'relu', got {nonlinearity!r}"
            )
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity
        self._mode = f"RNN_{nonlinearity.upper()}"

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._mode = f"RNN_{self.nonlinearity.upper()}"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next hidden state [n, hidden_size]."""
        return self._step(input, None if hx is None else (hx,))[0]

    def extra_repr(self) -> str:
        relu = ", nonlinearity=relu" if self.nonlinearity == "relu" else ""
        return super().extra_repr() + relu


class _GatedCell(RNNCellBase):
    """One without a choice of activations."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, _STEPS[self._mode][1], device, dtype)


class LSTMCell(_GatedCell):
    """One step of LSTM.

    Input [n, input_size] or [input_size]; the state is (h, c) alike, zeros unless given. Raises
    RuntimeError or ValueError for sizes that do not fit. The dtype, floating, is that of the
    parameters.

    >>> h, c = weft.nn.LSTMCell(3, 4)(weft.ones(2, 3))
    >>> h.shape, c.shape
    (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    _mode = "LSTM"

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The next (h, c), both [n, hidden_size]."""
        if isinstance(hx, Tensor):
            raise TypeError(f"LSTMCell: expected a pair (h, c), got shape {tuple(hx.shape)}")
        if hx is not None and len(hx) != 2:
            raise RuntimeError(f"LSTMCell: expected a pair (h, c), got {len(hx)} states")
        hidden, memory = self._step(input, hx)
        return hidden, memory


class GRUCell(_GatedCell):
    """One step of GRU.

    Input [n, input_size] or [input_size]; the state alike, zeros unless given. Raises RuntimeError
    or ValueError for sizes that do not fit. The dtype, floating, is that of the parameters.

    >>> weft.nn.GRUCell(3, 4)(weft.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    _mode = "GRU"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next hidden state [n, hidden_size]."""
        return self._step(input, None if hx is None else (hx,))[0]
