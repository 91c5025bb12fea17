"""Cases of padding, resampling along a dimension, and pixels rearranged."""

from __future__ import annotations

import numpy as np

from .spec import ALL, A, Fails, I, K, S, case


def _pad(x: np.ndarray, pad: list[int], value: float = 0) -> np.ndarray:
    y = x
    for i in range(len(pad) // 2):
        widths = [(0, 0)] * x.ndim
        widths[-1 - i] = (max(pad[2 * i], 0), max(pad[2 * i + 1], 0))
        y = np.pad(y, widths, constant_values=value)
        size = y.shape[-1 - i]
        y = np.take(y, range(max(-pad[2 * i], 0), size - max(-pad[2 * i + 1], 0)), -1 - i)
    return y


case("constant_pad_nd",
     [S(A((3, 4)), [1, 2]), S(A((2, 3, 4)), [0, 1, 2, -1], 1), S(A((4,)), [-1, -2]), S(A((3, 4)), [-4, 1]), S(A((0, 2)), [1, 1, 2, 0])], _pad,
     dtypes=ALL, fails=(
         Fails(S(A((4,)), [1, 1, 1, 1]), RuntimeError, "constant_pad_nd: expected two numbers for each of at most 1 dims, got (1, 1, 1, 1)"),
         Fails(S(A((4,)), [-3, -2]), RuntimeError,
               "constant_pad_nd: expected sizes of at least 0 after padding, got -1 for dim 0 of shape (4,) and pad (-3, -2)"),
     ))  # fmt: skip


def _resample(x: np.ndarray, dim: int, index: np.ndarray, weight: np.ndarray) -> np.ndarray:
    entries = np.moveaxis(x, dim, 0)[index]  # [outputs, taps, ...]
    return np.moveaxis(np.einsum("ot...,ot->o...", entries, weight), 0, dim)


case("_resample", [S(A((2, 5)), 1, I((7, 2), 0, 5), K((7, 2))), S(A((2, 5, 3)), 1, I((4, 3), 0, 5), K((4, 3))), S(A((6,)), 0, I((2, 1), 0, 6), K((2, 1)))],
     _resample, tolerance=8, parity=False,
     fails=(Fails(S(A((4,)), 0, I((1, 1), 4, 5), K((1, 1))), IndexError, "_resample: expected indices in [0, 3], got 4"),))  # fmt: skip


def _gather_taps(x: np.ndarray, index: np.ndarray, weight: np.ndarray) -> np.ndarray:
    shares = np.where(index < 0, 0, weight)
    parts = [
        x[n][:, np.maximum(index[n], 0)] * shares[n] for n in range(len(x))
    ]  # (c, taps, results)
    return np.stack(parts).sum(2)


case("_gather_taps", [S(A((2, 3, 5)), I((2, 4, 6), -1, 5), A((2, 4, 6))), S(A((1, 2, 3)), I((1, 1, 600), -1, 3), A((1, 1, 600)))],
     _gather_taps, tolerance=8, parity=False, fails=(
         Fails(S(A((1, 2, 4)), I((1, 1, 1), 4, 5), A((1, 1, 1))), IndexError, "_gather_taps: expected indices in [-1, 3], got 4"),
         Fails(S(A((1, 2, 4)), I((1, 1), 0, 4), A((1, 1))), RuntimeError, "_gather_taps: expected an int64 index (n, taps, results), got int64 of shape (1, 1)"),
         Fails(S(A((1, 2, 4)), I((1, 1, 2), 0, 4), A((1, 2, 2))), RuntimeError,
               "_gather_taps: expected weights of shape (1, 1, 2), got (1, 2, 2)"),
         Fails(S(A((2, 4)), I((1, 1, 2), -1, 0), A((1, 1, 2))), RuntimeError,
               "_gather_taps: expected an input of 1 images in 3 dims, got shape (2, 4)"),
     ))  # fmt: skip


def _shuffle(x: np.ndarray, r: int) -> np.ndarray:
    *lead, c, h, w = x.shape
    parts = x.reshape(*lead, c // (r * r), r, r, h, w)
    turned = np.einsum("...cijhw->...chiwj", parts)
    return turned.reshape(*lead, c // (r * r), h * r, w * r)


def _unshuffle(x: np.ndarray, r: int) -> np.ndarray:
    *lead, c, h, w = x.shape
    parts = x.reshape(*lead, c, h // r, r, w // r, r)
    return np.einsum("...chiwj->...cijhw", parts).reshape(*lead, c * r * r, h // r, w // r)


case("pixel_shuffle", [S(A((2, 8, 2, 3)), 2), S(A((9, 1, 2)), 3)], _shuffle, dtypes=ALL,
     fails=(Fails(S(A((3, 2, 2)), 2), RuntimeError, "pixel_shuffle: expected channels divisible by the square of 2, got shape (3, 2, 2)"),))  # fmt: skip
case("pixel_unshuffle", [S(A((2, 2, 4, 6)), 2), S(A((1, 3, 6)), 3)], _unshuffle, dtypes=ALL,
     fails=(Fails(S(A((1, 3, 2)), 2), RuntimeError, "pixel_unshuffle: expected H and W divisible by 2, got shape (1, 3, 2)"),))  # fmt: skip
case("channel_shuffle", [S(A((2, 6, 3)), 3), S(A((1, 4, 2, 2)), 2)],
     lambda x, g: np.swapaxes(x.reshape(x.shape[0], g, x.shape[1] // g, -1), 1, 2).reshape(x.shape), dtypes=ALL,
     fails=(Fails(S(A((1, 3, 2)), 2), RuntimeError, "channel_shuffle: expected channels divisible by groups, got shape (1, 3, 2) and groups 2"),))  # fmt: skip
