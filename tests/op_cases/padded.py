"""Cases of padding, resampling along a dimension, and pixels rearranged."""

from __future__ import annotations

import itertools

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


def _around(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Places inside and outside of an image."""
    return rng.uniform(-1.3, 1.3, shape)


def _weights(at: float, n: int, align: bool, order: int) -> list[tuple[int, float]]:
    place = (at + 1) * (n - 1) / 2 if align else ((at + 1) * n - 1) / 2
    low, slope = int(np.floor(place)), (n - 1) / 2 if align else n / 2
    shares = [(low + 1 - place, place - low), (-slope, slope), (0.0, 0.0)][order]
    return [(low + i, share) for i, share in enumerate(shares) if 0 <= low + i < n]


def _sample_grid(
    x: np.ndarray, grid: np.ndarray, mode: int, padding: int, align: bool, order: list[int]
) -> np.ndarray:
    """Bilinear, with zeros outside."""
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    for n, *at in np.ndindex(*grid.shape[:-1]):
        place = grid[(n, *at)]
        dims = range(len(place))
        taps = [_weights(place[d], x.shape[-1 - d], align, order[d]) for d in reversed(dims)]
        for combination in itertools.product(*taps):
            pixel = tuple(i for i, _ in combination)
            share = np.prod([weight for _, weight in combination])
            out[(n, slice(None), *at)] += share * x[(n, slice(None), *pixel)]
    return out


_GRID = S(A((1, 2, 3, 4)), A((1, 2, 2, 2), _around), 0, 0, False, [0, 0, 0])
_VOLUME = S(A((2, 1, 3, 2, 4)), A((2, 1, 1, 300, 3), _around), 0, 0, True, [0, 0, 0])
case("_sample_grid", [_GRID, _VOLUME, S(A((1, 2, 3, 4)), A((1, 2, 2, 2), _around), 0, 0, True, [1, 0, 0]),
                      S(A((1, 1, 3, 4)), A((1, 2, 2, 2), _around), 0, 0, False, [1, 1, 2])],
     _sample_grid, tolerance=64, parity=False, fails=(
         Fails(S(A((1, 1, 3, 4)), A((1, 2, 2, 3)), 0, 0, True, [0, 0, 0]), RuntimeError, "grid_sampler: expected an input (n, c, h, w) and a grid (n, h, w, 2), or (n, c, d, h, w) and (n, d, h, w, 3), got (1, 1, 3, 4) and (1, 2, 2, 3)"),
         Fails(S(A((1, 1, 3, 4)), A((1, 2, 2, 2)), 3, 0, True, [0, 0, 0]), RuntimeError, "grid_sampler: expected mode 0, 1 or, for images, 2, got 3"),
         Fails(S(A((1, 1, 1, 3, 4)), A((1, 1, 2, 2, 3)), 2, 0, True, [0, 0, 0]), RuntimeError,
               "grid_sampler: expected mode 0, 1 or, for images, 2, got 2"),
         Fails(S(A((1, 1, 3, 4)), A((1, 2, 2, 2)), 0, -1, True, [0, 0, 0]), RuntimeError, "grid_sampler: expected padding mode 0, 1 or 2, got -1"),
         Fails(S(A((1, 1, 3, 4)), A((1, 2, 2, 2)), 0, 0, True, [0]), RuntimeError, "grid_sampler: expected 3 orders, got 1"),
         Fails(S(A((1, 0, 3, 4)), A((1, 2, 2, 2)), 0, 0, True, [0, 0, 0]), RuntimeError, "grid_sampler: expected a non-empty input, got (1, 0, 3, 4)"),
     ))  # fmt: skip
_PLACES = (0, 0, False)
for _name, _samples in {
    "grid_sampler": [S(A((1, 2, 3, 4)), A((1, 2, 2, 2), _around), *_PLACES)],
    "grid_sampler_2d": [S(A((2, 1, 3, 2)), A((2, 1, 3, 2), _around), *_PLACES)],
    "grid_sampler_3d": [S(A((2, 1, 3, 2, 4)), A((2, 1, 1, 3, 3), _around), *_PLACES)],
}.items():
    case(
        _name,
        _samples,
        lambda x, grid, mode, padding, align: _sample_grid(x, grid, mode, padding, align, [0] * 3),
        tolerance=64,
    )


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
