"""Recurrent layers: LSTM, GRU and RNN of one layer and direction."""

from __future__ import annotations

from typing import Any

from weft.onnx._symbols import Symbol
from weft.onnx._table import mapping

# The blocks of the weights, in ONNX's order: i, o, f, c of LSTM and z, r, h of GRU.
_ORDER = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


@mapping("_recurrent_layer")
def _recurrent(
    g: Any, x: Symbol, batch_sizes: Any, hidden: Symbol, memory: Any, weight_ih: Symbol,
    weight_hh: Symbol, bias_ih: Any, bias_hh: Any, projection: Any, mode: str, backwards: bool,
) -> Any:  # fmt: skip
    if batch_sizes is not None or projection is not None:
        given = "packed sequences" if batch_sizes is not None else "projections"
        raise ValueError(f"{mode}: expected a layer that ONNX has, got one with {given}")
    kind = mode.partition("_")[0]
    activation = "Relu" if mode == "RNN_RELU" else "Tanh"
    own: dict[str, dict[str, Any]] = {
        "GRU": {"linear_before_reset": 1},
        "RNN": {"activations": [activation]},
    }
    bias = None
    if bias_ih is not None and bias_hh is not None:
        parts = [_ordered(g, each, kind) for each in (bias_ih, bias_hh)]
        bias = g.unsqueeze(g.call("cat", parts, 0), 0)
    size = weight_hh.shape[1]
    inputs = (_ordered(g, weight_ih, kind), _ordered(g, weight_hh, kind))
    states = [each if each is None else g.unsqueeze(each, 0) for each in (hidden, memory)]
    made = g.op(
        kind, x, *(g.unsqueeze(each, 0) for each in inputs), bias, None, *states,
        outputs=3 if kind == "LSTM" else 2, direction="reverse" if backwards else "forward",
        hidden_size=size, **own.get(kind, {}),
    )  # fmt: skip
    steps = g.squeeze(made[0], 1)  # [steps, directions, samples, features]
    steps = g.sized(steps, [*x.shape[:2], size])
    last = [g.sized(g.squeeze(each, 0), [x.shape[1], size]) for each in made[1:]]
    return (steps, last[0], last[1] if len(last) > 1 else last[0])


def _ordered(g: Any, weight: Symbol, kind: str) -> Symbol:
    """The blocks of a weight or bias as ONNX has them."""
    order = _ORDER[kind]
    if len(order) == 1:
        return weight
    size = weight.shape[0] // len(order)
    if weight.value is not None:
        held = weight.value.reshape(len(order), size, -1)[list(order)]
        return g.constant(held.reshape(weight.value.shape), name=f"{weight.name}_onnx")
    parts = g.op("Split", weight, g.ints([size] * len(order)), outputs=len(order), axis=0)
    return g.op("Concat", *(parts[i] for i in order), axis=0)


@mapping("_lstm_cell")
def _lstm_cell(g: Any, entry: Any, forget: Any, cell: Any, output: Any, memory: Any) -> Any:
    entry, forget, output = (g.op("Sigmoid", gate) for gate in (entry, forget, output))
    after = forget * memory + entry * g.op("Tanh", cell)
    return output * g.op("Tanh", after), after


@mapping("_gru_cell")
def _gru_cell(
    g: Any, reset_x: Any, update_x: Any, new_x: Any, reset_h: Any, update_h: Any, new_h: Any, h: Any
) -> Any:
    reset, update = g.op("Sigmoid", reset_x + reset_h), g.op("Sigmoid", update_x + update_h)
    new = g.op("Tanh", new_x + reset * new_h)
    return new + update * (h - new)
