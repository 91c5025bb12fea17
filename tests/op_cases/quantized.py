"""Cases of the operators on integers of quantised networks."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .spec import case

_DRAWN = np.random.default_rng(0)


def _bytes(*shape: int) -> np.ndarray:
    return _DRAWN.integers(0, 256, shape, dtype=np.uint8)


def _weight(*shape: int, zero: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Integers, scales and zero points."""
    zeros = _DRAWN.integers(-9, 9, shape[:1]) if zero else np.zeros(shape[:1], np.int64)
    scales = _DRAWN.uniform(0.001, 0.01, shape[:1]).astype(np.float32)
    return _DRAWN.integers(-128, 128, shape).astype(np.int8), scales, zeros


def requantized(
    sums: np.ndarray, in_scale: float, scales: np.ndarray, bias: Any, relu: bool, scale: float,
    zero: int,
) -> np.ndarray:  # fmt: skip
    """Sums of products, with rows last, as bytes: float32 at each step, as the kernels."""
    both = np.float32(in_scale) * scales
    more = 0 if bias is None else bias / both
    x = (sums.astype(np.float32) + np.float32(more)) * (both / np.float32(scale))
    return np.clip(np.rint(x) + zero, zero if relu else 0, 255).astype(np.uint8)


def sums_of(x: np.ndarray, x_zero: int, w: np.ndarray, w_zeros: np.ndarray) -> np.ndarray:
    """x @ w.T of what integers stand for, less the scales."""
    wide = w.astype(np.int64) - w_zeros.reshape(-1, 1)
    return (x.astype(np.int64) - x_zero) @ wide.T


def _given(*arrays: Any) -> tuple[Any, ...]:
    return tuple(weft.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arrays)


def _check_linear(function: Any) -> None:
    for m, k, n in ((1, 8, 5), (7, 13, 33), (40, 130, 70), (2, 600, 32)):
        for zero, relu in ((False, False), (True, True)):
            x, (w, scales, zeros) = _bytes(m, k), _weight(n, k, zero=zero)
            bias = _DRAWN.standard_normal(n).astype(np.float32)
            given = _given(x, 0.02, 7, w, scales, zeros, bias, relu, 0.05, 110)
            wanted = requantized(sums_of(x, 7, w, zeros), 0.02, scales, bias, relu, 0.05, 110)
            assert np.array_equal(function(*given).numpy(), wanted)


def _check_dynamic(function: Any) -> None:
    x = _DRAWN.standard_normal((3, 17)).astype(np.float32)
    w, scales, zeros = _weight(9, 17, zero=True)
    bias = _DRAWN.standard_normal(9).astype(np.float32)
    found = function(*_given(x, w, scales, zeros, bias, True, False))
    low, high = min(x.min(), 0), max(x.max(), 0)
    step = np.float32((float(high) - float(low)) / 255)
    zero = int(np.rint(-low / step))
    q = np.clip(np.rint(x / step) + zero, 0, 255)
    wanted = sums_of(q, zero, w, zeros) * (step * scales) + bias
    assert np.abs(found.numpy() - np.maximum(wanted, 0)).max() < 0.02


def _check_conv(function: Any) -> None:
    for channels, out, groups, kernel, stride, padding, dilation in (
        (3, 5, 1, (3, 3), (2, 1), (1, 2), (1, 1)), (8, 16, 2, (1, 3), (1, 1), (0, 1), (1, 2)),
        (18, 18, 18, (3, 3), (1, 2), (1, 1), (1, 1)), (8, 40, 1, (1, 1), (1, 1), (0, 0), (1, 1)),
        (6, 12, 6, (2, 2, 2), (1, 2, 1), (1, 0, 1), (1, 1, 1)), (6, 4, 2, (3,), (2,), (1,), (1,)),
    ):  # fmt: skip
        x = _bytes(2, channels, *range(6, 6 + len(kernel)))
        w, scales, zeros = _weight(out, channels // groups, *kernel, zero=groups == 1 or channels > 8)
        lists = list(stride), list(padding), list(dilation)
        given = _given(x, 0.02, 9, w, scales, zeros, None, *lists, groups, False, 0.03, 100)
        found = function(*given).numpy()
        wide = w.astype(np.float64) - zeros.reshape(-1, *[1] * (w.ndim - 1))
        conv = getattr(weft.nn.functional, f"conv{len(kernel)}d")
        moved = _given(x.astype(np.float64) - 9, wide)
        sums = conv(*moved, None, *lists, groups).numpy()
        rows = np.moveaxis(sums, 1, -1)
        wanted = requantized(rows, 0.02, scales, None, False, 0.03, 100)
        assert np.array_equal(np.moveaxis(found, 1, -1), wanted)
        assert np.array_equal(function(*given).numpy(), found)


def _check_pairs(function: Any) -> None:
    a, b = _bytes(5, 37), _bytes(5, 37)
    steps = 0.02, 3, 0.03, 250
    for right in (b, b[:1]):
        x, y = a - np.float32(3), right - np.float32(250)
        sums = x * np.float32(0.02) + y * np.float32(0.03)
        products = x * y * (np.float32(0.02) * np.float32(0.03))
        for name, exact in (("_quantized_add", sums), ("_quantized_mul", products)):
            for relu in (False, True):
                given = _given(a, *steps[:2], right, *steps[2:], relu, 0.041, 90)
                found = getattr(weft.ops.aten, name)(*given).numpy()
                wanted = np.clip(np.rint(exact / np.float32(0.041)) + 90, 90 if relu else 0, 255)
                assert (found == wanted).mean() > 0.98
                assert np.abs(found.astype(int) - wanted).max() <= 1


def _check_steps(function: Any) -> None:
    x = np.linspace(-3, 9, 1001, dtype=np.float32)
    for dtype, low, high in ((weft.uint8, 0, 255), (weft.int8, -128, 127), (weft.int32, -9999, 9999)):
        q = weft.ops.aten._quantize(*_given(x), 0.0411, 5, dtype)
        wanted = np.clip(np.rint(x * (np.float32(1) / np.float32(0.0411))) + 5, low, high)
        assert q.dtype == dtype and np.array_equal(q.numpy(), wanted)
        back = weft.ops.aten._dequantize(q, 0.0411, 5).numpy()
        assert np.array_equal(back, (wanted.astype(np.float32) - 5) * np.float32(0.0411))
    nothing = weft.ops.aten._quantize(weft.tensor([float("nan"), 1e30, -1e30]), 0.5, 3, weft.uint8)
    assert nothing.tolist() == [0, 255, 0]


case("_quantize", check=_check_steps, grad=False)
case("_dequantize", check=_check_steps, grad=False)
case("_quantized_linear", check=_check_linear, grad=False)
case("_quantized_linear_dynamic", check=_check_dynamic, grad=False)
case("_quantized_conv", check=_check_conv, grad=False)
case("_quantized_add", check=_check_pairs, grad=False)
case("_quantized_mul", check=_check_pairs, grad=False)
