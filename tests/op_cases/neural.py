"""Cases of convolution, pooling, normalisation and classification losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from .spec import A, Fails, I, K, S, case, distinct, probability, unit


def _two(v: Any) -> tuple[int, int]:
    return tuple(v) if isinstance(v, (list, tuple)) else (v, v)  # type: ignore[return-value]


def _windows(x: np.ndarray, kernel: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int] = (1, 1)) -> np.ndarray:
    """[n, c, h_out, w_out, kh, kw]"""
    span = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    view = np.lib.stride_tricks.sliding_window_view(x, span, (2, 3))
    return view[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def _conv2d(x: np.ndarray, w: np.ndarray, b: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> np.ndarray:
    (ph, pw), images = _two(padding), x if x.ndim == 4 else x[None]
    padded = np.pad(images, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    parts = [
        np.einsum("nchwij,ocij->nohw", _windows(xs, w.shape[2:], _two(stride), _two(dilation)), ws)  # type: ignore[arg-type]
        for xs, ws in zip(np.split(padded, groups, 1), np.split(w, groups, 0))
    ]
    y = np.concatenate(parts, 1) + (0 if b is None else b[:, None, None])
    return y if x.ndim == 4 else y[0]


case("conv2d", [
    S(A((2, 3, 6, 5)), A((4, 3, 3, 3))),
    S(A((2, 3, 6, 5)), A((4, 3, 3, 2)), A((4,)), [2, 1], [1, 0]),
    S(A((1, 4, 7, 7)), A((4, 2, 3, 3)), A((4,)), [1, 1], [1, 1], [2, 2], 2),
    S(A((1, 4, 5, 5)), A((4, 1, 3, 3)), None, [1, 1], [1, 1], [1, 1], 4),
    S(A((2, 3, 4, 4)), A((5, 3, 1, 1)), A((5,))),
    S(A((3, 6, 5)), A((4, 3, 3, 3)), A((4,))),
], _conv2d, tolerance=60, fails=(
    Fails(S(A((1, 3, 5, 5)), A((4, 2, 3, 3))), RuntimeError,
          "conv2d: expected a weight of shape (O, C / groups, kH, kW) for input (1, 3, 5, 5) and groups 1, got (4, 2, 3, 3)"),
))  # fmt: skip


def _conv2d_sum(x: np.ndarray, w: np.ndarray, b: Any, residual: Any, relu: bool, *window: Any) -> np.ndarray:
    y = _conv2d(x, w, b, *window) + (0 if residual is None else residual)
    return np.maximum(y, 0) if relu else y


case("_conv2d_sum", [
    S(A((2, 3, 6, 5)), A((4, 3, 3, 3)), None, None, True),
    S(A((2, 3, 6, 5)), A((4, 3, 3, 2)), A((4,)), A((2, 4, 3, 4)), True, [2, 1], [1, 0]),
    S(A((1, 4, 7, 7)), A((8, 2, 3, 3)), A((8,)), A((8, 1, 1)), False, [1, 1], [1, 1], [2, 2], 2),
], _conv2d_sum, tolerance=60)  # fmt: skip
case("_conv2d_sum.high", [
    S(A((1, 16, 5, 5)), A((16, 16, 3, 3)), A((16,)), None, 0.5),
    S(A((2, 3, 6, 5)), A((4, 3, 3, 2)), None, A((2, 4, 3, 4)), 0.25, [2, 1], [1, 0]),
], lambda x, w, b, residual, high, *window: np.clip(_conv2d_sum(x, w, b, residual, False, *window), 0, high),
    tolerance=60)  # fmt: skip


def _max_pool(x: np.ndarray, kernel: Any, stride: Any = (), padding: Any = 0) -> np.ndarray:
    ph, pw = _two(padding)
    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)), constant_values=-np.inf)
    return _windows(padded, _two(kernel), _two(stride or kernel)).max((-1, -2))


_POOLS = [S(A((2, 3, 6, 6)), [2, 2]), S(A((1, 2, 7, 5)), [3, 2], [2, 1]), S(A((1, 2, 6, 6)), [3, 3], [2, 2], [1, 1])]
case("max_pool2d", _POOLS, _max_pool, domain=distinct)


def _avg_pool(x: np.ndarray, kernel: Any, stride: Any = (), padding: Any = 0) -> np.ndarray:
    ph, pw = _two(padding)
    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    return _windows(padded, _two(kernel), _two(stride or kernel)).mean((-1, -2))


case("avg_pool2d", _POOLS, _avg_pool, tolerance=4)


def _adaptive(x: np.ndarray, size: Any) -> np.ndarray:
    def edges(n: int, out: int) -> list[tuple[int, int]]:
        return [(i * n // out, -((-(i + 1) * n) // out)) for i in range(out)]

    h, w = size
    return np.stack([np.stack([x[..., a:b, c:d].mean((-1, -2)) for c, d in edges(x.shape[-1], w)], -1) for a, b in edges(x.shape[-2], h)], -2)


case("adaptive_avg_pool2d", [S(A((2, 3, 6, 5)), [1, 1]), S(A((2, 3, 7, 5)), [3, 2])], _adaptive, tolerance=4)


def _batch_norm(x: np.ndarray, w: Any, b: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float, _: bool) -> np.ndarray:
    shape = (1, -1) + (1,) * (x.ndim - 2)
    axes = (0, *range(2, x.ndim))
    if training:
        mean, var = x.mean(axes), x.var(axes)
    y = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + eps)
    return y * (1 if w is None else w.reshape(shape)) + (0 if b is None else b.reshape(shape))


case("batch_norm", [
    S(A((4, 3, 2, 2)), A((3,)), A((3,)), None, None, True, 0.1, 1e-5, False),
    S(A((5, 3)), None, None, None, None, True, 0.1, 1e-5, False),
], _batch_norm, tolerance=100)  # fmt: skip


def _group_norm(x: np.ndarray, groups: int, w: Any = None, b: Any = None, eps: float = 1e-5, _: bool = True) -> np.ndarray:
    rows = x.reshape(x.shape[0], groups, -1)
    y = ((rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + eps)).reshape(x.shape)
    shape = (1, -1) + (1,) * (x.ndim - 2)
    return y * (1 if w is None else w.reshape(shape)) + (0 if b is None else b.reshape(shape))


case("group_norm", [S(A((2, 6, 3)), 2), S(A((3, 4, 2, 5)), 2, A((4,)), A((4,)), 1e-3)], _group_norm, tolerance=20,
     fails=(Fails(S(A((2, 5)), 2), RuntimeError, "group_norm: expected groups that divide the channels of [n, c, ...], got 2 groups for shape (2, 5)"),
            Fails(S(A((2, 4)), 2, A((3,))), RuntimeError, "group_norm: expected weight of shape (4,), got (3,)")))  # fmt: skip

# ---- losses ----
_REDUCE = (lambda x: x, np.mean, np.sum)


def _nll(x: np.ndarray, target: np.ndarray, weight: Any = None, reduction: int = 1, ignore_index: int = -100) -> np.ndarray:
    scale = np.ones(x.shape[1]) if weight is None else weight
    kept = target != ignore_index
    each = np.where(kept, -x[np.arange(len(x)), np.where(kept, target, 0)] * scale[np.where(kept, target, 0)], 0)
    if reduction == 1:
        return each.sum() / (scale[np.where(kept, target, 0)] * kept).sum()
    return _REDUCE[reduction](each)


_TARGETS = [S(A((5, 4)), I((5,), 0, 4), None, r) for r in (0, 1, 2)] + [S(A((5, 4)), I((5,), 0, 4), K((4,)), 1), S(A((5, 4)), I((5,), 0, 4), None, 1, 2)]
case("nll_loss", _TARGETS, _nll, tolerance=4,
     fails=(Fails(S(A((2, 3)), I((2,), 7, 8)), IndexError, "nll_loss: expected a target in [0, 2], got 7"),))  # fmt: skip


def _cross_entropy(x: np.ndarray, target: np.ndarray, *rest: Any) -> np.ndarray:
    return _nll(x - np.log(np.sum(np.exp(x), 1, keepdims=True)), target, *rest)


case("cross_entropy_loss", _TARGETS, _cross_entropy, tolerance=8)


def _bce(x: np.ndarray, y: np.ndarray, weight: Any = None, pos_weight: Any = None, reduction: int = 1) -> np.ndarray:
    return _REDUCE[reduction](np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x))))


case("binary_cross_entropy_with_logits", [S(A((3, 4)), A((3, 4))), S(A((3, 4)), A((3, 4)), None, None, 2)], _bce, tolerance=8)


def _chances(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -y * np.log(p) - (1 - y) * np.log1p(-p)


case("_cross_entropy_of_chances", [S(A((3, 4)), A((3, 4))), S(A((2, 3)), A((3,)))], _chances, domain=probability, tolerance=8)


def _conv1d(x: np.ndarray, w: np.ndarray, b: Any = None, stride: Any = (1,), padding: Any = (0,)) -> np.ndarray:
    return _conv2d(x[:, :, None], w[:, :, None], b, (1, stride[0]), (0, padding[0]))[:, :, 0]


case("conv1d", [S(A((2, 3, 9)), A((4, 3, 3)), A((4,))), S(A((2, 3, 9)), A((4, 3, 3)), None, [2], [1])], _conv1d, tolerance=60)
case("conv1d.padding", [S(A((2, 3, 9)), A((4, 3, 3)), A((4,)), [1], "same")], lambda x, w, b, s, p: _conv1d(x, w, b, s, (1,)), tolerance=60)
case("conv2d.padding", [S(A((2, 3, 6, 5)), A((4, 3, 3, 3)), A((4,)), [1, 1], "same")], lambda x, w, b, s, p: _conv2d(x, w, b, s, 1), tolerance=60)


def _conv_transpose(x: np.ndarray, w: np.ndarray, b: Any = None, stride: Any = (1, 1)) -> np.ndarray:
    stride = stride[0]
    wide = np.zeros((*x.shape[:2], *(stride * (n - 1) + 1 for n in x.shape[2:])), x.dtype)
    wide[:, :, ::stride, ::stride] = x
    return _conv2d(wide, w.swapaxes(0, 1)[:, :, ::-1, ::-1], b, 1, [k - 1 for k in w.shape[2:]])


case("conv_transpose2d.input", [S(A((2, 3, 4, 5)), A((3, 4, 3, 3)), A((4,))), S(A((1, 3, 4, 4)), A((3, 2, 2, 2)), None, [2, 2])],
     _conv_transpose, tolerance=60)  # fmt: skip


def _max_pool_indices(x: np.ndarray, kernel: Any) -> Any:
    h, w = x.shape[2:]
    places = np.broadcast_to(np.arange(h * w, dtype=x.dtype).reshape(h, w), x.shape)
    values, where = (_windows(v, _two(kernel), _two(kernel)) for v in (x, places))
    flat = values.reshape(*values.shape[:4], -1).argmax(-1)[..., None]
    return _max_pool(x, kernel), np.take_along_axis(where.reshape(*where.shape[:4], -1), flat, -1)[..., 0].astype("int64")


case("max_pool2d_with_indices", [S(A((2, 3, 6, 6)), [2, 2])], _max_pool_indices, domain=distinct)
case("nll_loss_nd", _TARGETS, _nll, tolerance=4)
case("nll_loss_forward", [S(A((5, 4)), I((5,), 0, 4), None, 1, -100)], lambda x, t, *r: (_nll(x, t, *r), np.float64(len(t)).astype(x.dtype)),
     tolerance=4, gradgrad=False)  # fmt: skip


# ---- recurrent layers ----


def _sigma(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _recurrent_cell(mode: str, x: np.ndarray, gates: np.ndarray, h: np.ndarray, c: np.ndarray | None) -> tuple[np.ndarray, Any]:
    if mode == "LSTM":
        entry, forget, cell, output = np.split(gates, 4, -1)
        memory = _sigma(forget) * c + _sigma(entry) * np.tanh(cell)
        return _sigma(output) * np.tanh(memory), memory
    if mode == "GRU":
        (reset, update, new), (to_reset, to_update, to_new) = np.split(x, 3, -1), np.split(gates, 3, -1)
        fresh = np.tanh(new + _sigma(reset + to_reset) * to_new)
        return fresh + _sigma(update + to_update) * (h - fresh), None
    return (np.maximum(gates, 0) if mode == "RNN_RELU" else np.tanh(gates)), None


def _recurrent_steps(x: np.ndarray, sizes: Any, h: np.ndarray, c: Any, w: np.ndarray, b: Any, p: Any, mode: str, backwards: bool) -> tuple[np.ndarray, ...]:
    counts = [x.shape[1]] * len(x) if sizes is None else sizes.tolist()
    parts = np.split(x.reshape(-1, x.shape[-1]), np.cumsum(counts)[:-1])
    h, c, made = h.copy(), None if c is None else c.copy(), [h] * len(parts)
    for t in range(len(parts))[:: -1 if backwards else 1]:
        n = counts[t]
        gates = h[:n] @ w.T + (0 if b is None else b) + (0 if mode == "GRU" else parts[t])
        state, memory = _recurrent_cell(mode, parts[t], gates, h[:n], None if c is None else c[:n])
        h[:n] = state if p is None else state @ p.T
        if c is not None:
            c[:n] = memory
        made[t] = h[:n].copy()
    return np.concatenate(made).reshape(*x.shape[:-1], -1), h, np.zeros(0, x.dtype) if c is None else c


def _recurrent_layer(x: np.ndarray, sizes: Any, h: np.ndarray, c: Any, w_x: np.ndarray, w: np.ndarray, b_x: Any, b: Any, p: Any, mode: str, backwards: bool) -> tuple[np.ndarray, ...]:
    return _recurrent_steps(x @ w_x.T + (0 if b_x is None else b_x), sizes, h, c, w, b, p, mode, backwards)


_LAYERS = [
    S(A((3, 2, 3)), None, A((2, 4)), A((2, 4)), A((16, 3)), A((16, 4)), A((16,)), A((16,)), None, "LSTM", False),
    S(A((3, 2, 3)), None, A((2, 2)), A((2, 4)), A((16, 3)), A((16, 2)), None, None, A((2, 4)), "LSTM", True),
    S(A((4, 3)), I((2,), 2, 3), A((3, 2)), A((3, 2)), A((8, 3)), A((8, 2)), None, A((8,)), None, "LSTM", True),
    S(A((3, 2, 3)), None, A((2, 4)), None, A((12, 3)), A((12, 4)), A((12,)), A((12,)), None, "GRU", True),
    S(A((3, 3)), I((3,), 1, 2), A((2, 4)), None, A((12, 3)), A((12, 4)), None, None, None, "GRU", False),
    S(A((3, 2, 3)), None, A((2, 4)), None, A((4, 3)), A((4, 4)), A((4,)), A((4,)), None, "RNN_TANH", False),
    S(A((3, 2, 3)), None, A((2, 4)), None, A((4, 3)), A((4, 4)), None, A((4,)), None, "RNN_RELU", True),
]  # fmt: skip
_REST = (A((2, 4)), None, A((4, 4)), A((4, 4)), None, None, None)
case("_recurrent_layer", _LAYERS, _recurrent_layer, domain=unit, tolerance=20, fails=(
    Fails(S(A((2, 2, 4)), None, *_REST, "ELMAN", False), RuntimeError,
          "RNN: expected mode 'LSTM', 'GRU', 'RNN_TANH' or 'RNN_RELU', got 'ELMAN'"),
    Fails(S(A((2, 2, 4)), None, *_REST, "LSTM", False), RuntimeError, "RNN: expected a memory for LSTM, got None"),
    Fails(S(A((2, 2, 4)), None, *_REST, "GRU", False), RuntimeError, "RNN: expected a weight of shape (12, 4), got (4, 4)"),
    Fails(S(A((0, 2, 4)), None, *_REST, "RNN_TANH", False), RuntimeError, "RNN: expected at least 1 step, got 0"),
    Fails(S(A((2, 3, 4)), None, *_REST, "RNN_TANH", False), RuntimeError, "RNN: expected steps of shape (t, 2, features), got (2, 3, 4)"),
    Fails(S(A((3, 4)), I((1,), 3, 4), *_REST, "RNN_TANH", False), RuntimeError,
          "RNN: expected batch sizes that do not grow, at most 2, got 3 after 2"),
    Fails(S(A((3, 4)), I((2,), 1, 2), *_REST, "RNN_TANH", False), RuntimeError,
          "RNN: expected batch sizes whose sum is 3, got 2"),
))  # fmt: skip
