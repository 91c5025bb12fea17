"""Recurrent layers beside their cells, where weights are packed and where they stay as they lie."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft import nn

pytestmark = pytest.mark.threads

CELLS = {"RNN": (nn.RNN, nn.RNNCell), "LSTM": (nn.LSTM, nn.LSTMCell), "GRU": (nn.GRU, nn.GRUCell)}


def results(layer: Any, x: Any, state: Any, without: str = "none") -> list[Any]:
    """Outputs and last states, and the gradients of all that they come of but some parameters."""
    output, last = layer(x, state)
    parts = [output, *(last if isinstance(last, tuple) else (last,))]
    states = state if isinstance(state, tuple) else (state,)
    weights = [weft.linspace(-1, 2, p.numel(), dtype=p.dtype).view(p.shape) for p in parts]
    total = sum((p * w).sum() for p, w in zip(parts, weights))
    parameters = [p for name, p in layer.named_parameters() if without not in name]
    return [*parts, *weft.autograd.grad(total, [x, *states, *parameters])]


def start(kind: str, rows: int, size: int, out: int, dtype: Any) -> Any:
    hidden = weft.randn(1, rows, out, dtype=dtype, requires_grad=True)
    memory = weft.randn(1, rows, size, dtype=dtype, requires_grad=True)
    return (hidden, memory) if kind == "LSTM" else hidden


class ByCell(nn.Module):
    """A layer, step by step of the operators of its cell."""

    def __init__(self, kind: str, layer: Any) -> None:
        super().__init__()
        bias = layer.bias
        self.cell = CELLS[kind][1](layer.input_size, layer.hidden_size, bias, dtype=weft.float64)
        for name, parameter in self.cell.named_parameters():
            parameter.data = getattr(layer, f"{name}_l0").data

    def forward(self, x: Any, state: Any) -> Any:
        several = isinstance(state, tuple)
        state, outputs = tuple(s[0] for s in state) if several else state[0], []
        for step in x:
            state = self.cell(step, state)
            outputs.append(state[0] if several else state)
        last = tuple(s.unsqueeze(0) for s in state) if several else state.unsqueeze(0)
        return weft.stack(outputs), last


# Sizes around those of strips (8 to 32 columns); fewer than 32 rows in all are not packed.
@pytest.mark.parametrize("size", [1, 7, 8, 12, 23, 24, 25, 33, 50])
@pytest.mark.parametrize(("rows", "steps"), [(1, 3), (1, 40), (2, 17), (4, 9), (7, 6), (33, 2)])
@pytest.mark.parametrize("kind", CELLS)
def test_layers_are_their_cells_step_by_step(kind: str, rows: int, steps: int, size: int) -> None:
    bias = size % 2 == 0
    layer = CELLS[kind][0](3, size, bias=bias, dtype=weft.float64)
    x = weft.randn(steps, rows, 3, dtype=weft.float64, requires_grad=True)
    state = start(kind, rows, size, size, weft.float64)
    found = results(layer, x, state)
    expected = results(ByCell(kind, layer), x, state)
    # Each step adds up `size` products, each gradient all rows of all steps.
    bound = weft.finfo(weft.float64).eps * (size + 8) * steps * rows
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert (one - other).abs().max() <= bound * max(1.0, float(other.abs().max()))


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
@pytest.mark.parametrize(("kind", "projection"), [*((kind, 0) for kind in CELLS), ("LSTM", 150)])
def test_bits_do_not_depend_on_threads(kind: str, projection: int, dtype: Any) -> None:
    """Nothing of the steps; the gradient of a weight is one large product, as of any layer."""
    more = {"proj_size": projection} if projection else {}
    layer = CELLS[kind][0](5, 203, dtype=dtype, **more)
    x = weft.randn(12, 6, 5, dtype=dtype, requires_grad=True)
    state = start(kind, 6, 203, projection or 203, dtype)
    found = []
    for threads in (1, 2, 3):
        weft.set_num_threads(threads)
        found.append(results(layer, x, state, without="weight_h"))
    for many in found[1:]:
        for one, other in zip(found[0], many, strict=True):
            assert weft.equal(one, other)
