"""Recurrent layers of quantised networks, whose products alone are quantised, and the operators of
quantised networks that are exported, whose integers are in plain tensors."""

from __future__ import annotations

from typing import Any

import weft.nn.functional as F
from weft import _C
from weft._C import Tensor
from weft.jit.archive import quantized_integers  # noqa: F401, which registers
from weft.jit.archive.functions import composed
from weft.jit.archive.quantized import CellParams, LinearPackedParams
from weft.jit.archive.quantized_operators import linear_dynamic


@composed("quantized::make_quantized_cell_params_dynamic")
def make_cell_params(
    w_ih: LinearPackedParams, w_hh: LinearPackedParams, bias_ih: Tensor, bias_hh: Tensor,
    reduce_range: bool = False,
) -> CellParams:  # fmt: skip
    return CellParams(w_ih, w_hh, reduce_range)


def _lstm_gates(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = gates.chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru_gates(x: Tensor, state: Tensor, h: Tensor) -> Tensor:
    (xr, xz, xn), (hr, hz, hn) = x.chunk(3, 1), state.chunk(3, 1)
    z = (xz + hz).sigmoid()
    n = (xn + (xr + hr).sigmoid() * hn).tanh()
    return (h - n) * z + n


@composed("quantized::quantized_lstm_cell_dynamic")
def lstm_cell(
    input: Tensor, hx: list[Tensor], w_ih: LinearPackedParams, w_hh: LinearPackedParams,
    bias_ih: Tensor, bias_hh: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    gates = linear_dynamic(input, w_ih, True) + linear_dynamic(hx[0], w_hh, True)
    return _lstm_gates(gates, hx[1])


@composed("quantized::quantized_gru_cell_dynamic")
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: LinearPackedParams, w_hh: LinearPackedParams, b_ih: Tensor,
    b_hh: Tensor,
) -> Tensor:  # fmt: skip
    return _gru_gates(linear_dynamic(input, w_ih, True), linear_dynamic(hx, w_hh, True), hx)


@composed("quantized::quantized_rnn_tanh_cell_dynamic")
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: LinearPackedParams, w_hh: LinearPackedParams, b_ih: Tensor,
    b_hh: Tensor,
) -> Tensor:  # fmt: skip
    return (linear_dynamic(input, w_ih, True) + linear_dynamic(hx, w_hh, True)).tanh()


@composed("quantized::quantized_rnn_relu_cell_dynamic")
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: LinearPackedParams, w_hh: LinearPackedParams, b_ih: Tensor,
    b_hh: Tensor,
) -> Tensor:  # fmt: skip
    return (linear_dynamic(input, w_ih, True) + linear_dynamic(hx, w_hh, True)).relu()


def _places(length: int, reverse: bool) -> list[int]:
    return [length - 1 - t if reverse else t for t in range(length)]


def _layers(
    input: Tensor, h_0: Tensor, c_0: Tensor | None, params: list[CellParams], num_layers: int,
    dropout: float, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor, list[Tensor]]:  # fmt: skip
    """What layers of LSTMs, or without c_0 of GRUs, give; their last h, and c."""
    x = input.transpose(0, 1) if batch_first else input
    directions = 2 if bidirectional else 1
    hs: list[Tensor] = []
    cs: list[Tensor] = []
    for layer in range(num_layers):
        rows: list[Tensor] = []
        for direction in range(directions):
            k = layer * directions + direction
            p, h = params[k], h_0[k]
            c = h if c_0 is None else c_0[k]
            gates = linear_dynamic(x, p.w_ih, p.reduce)
            steps: list[Tensor] = [h for _ in range(x.size(0))]
            for t in _places(x.size(0), direction == 1):
                of_state = linear_dynamic(h, p.w_hh, p.reduce)
                if c_0 is None:
                    h = _gru_gates(gates[t], of_state, h)
                else:
                    h, c = _lstm_gates(gates[t] + of_state, c)
                steps[t] = h
            hs.append(h)
            cs.append(c)
            rows.append(_C.stack(steps))
        x = rows[0] if directions == 1 else _C.cat(rows, -1)
        if dropout > 0 and layer + 1 < num_layers:
            x = F.dropout(x, dropout)
    return x.transpose(0, 1) if batch_first else x, _C.stack(hs), cs


@composed("aten::quantized_lstm")
def quantized_lstm(
    input: Tensor, hx: list[Tensor], params: list[CellParams], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool, *,
    dtype: Any = None, use_dynamic: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    drop = dropout if train else 0.0
    x, h, cs = _layers(input, hx[0], hx[1], params, num_layers, drop, bidirectional, batch_first)
    return x, h, _C.stack(cs)


@composed("aten::quantized_gru")
def quantized_gru(
    input: Tensor, hx: Tensor, params: list[CellParams], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    drop = dropout if train else 0.0
    x, h, _ = _layers(input, hx, None, params, num_layers, drop, bidirectional, batch_first)
    return x, h


# Exported programs --------------------------------------------------------------------------------


@composed("quantized_decomposed::quantize_per_tensor")
def to_integers(
    input: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int, dtype: _C.dtype
) -> Tensor:
    q = (input * (1.0 / scale)).round() + zero_point
    return q.clamp(quant_min, quant_max).to(dtype)


@composed("quantized_decomposed::dequantize_per_tensor")
def from_integers(
    input: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int, dtype: _C.dtype,
    *, out_dtype: _C.dtype | None = None,
) -> Tensor:  # fmt: skip
    wide = _C.float32 if out_dtype is None else out_dtype
    return (input.to(wide) - zero_point) * scale


@composed("quantized_decomposed::quantize_per_channel")
def to_integers_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, quant_min: int, quant_max: int,
    dtype: _C.dtype,
) -> Tensor:  # fmt: skip
    shape = [-1 if dim == axis else 1 for dim in range(input.dim())]
    q = (input * (1.0 / scales.view(shape))).round() + zero_points.view(shape)
    return q.clamp(quant_min, quant_max).to(dtype)


@composed("quantized_decomposed::dequantize_per_channel")
def from_integers_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor | None, axis: int, quant_min: int,
    quant_max: int, dtype: _C.dtype, *, out_dtype: _C.dtype | None = None,
) -> Tensor:  # fmt: skip
    shape = [-1 if dim == axis else 1 for dim in range(input.dim())]
    wide = input.to(_C.float32 if out_dtype is None else out_dtype)
    if zero_points is not None:
        wide = wide - zero_points.view(shape)
    return (wide * scales.view(shape)).to(wide.dtype)
