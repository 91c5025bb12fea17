"""Cases of the Fourier transforms. Gradients, and float64: tests/test_fft.py."""

from __future__ import annotations

import numpy as np

from .spec import A, Fails, S, case


def _fft(x: np.ndarray, dim: list[int], sign: int, scale: float) -> np.ndarray:
    whole = np.fft.fftn(x, axes=dim) if sign < 0 else np.fft.ifftn(x, axes=dim, norm="forward")
    return whole * scale


def _half(x: np.ndarray, dim: int, scale: float) -> np.ndarray:
    return np.fft.rfft(x, axis=dim) * scale


def _real(x: np.ndarray, dim: int, n: int, scale: float) -> np.ndarray:
    return np.fft.irfft(x, n, axis=dim, norm="forward") * scale


_Z = ("complex64",)
case("_fft", [S(A((2, 6)), [1], -1, 0.5), S(A((3, 4)), [0, -1], 1, 1.0), S(A((0, 4)), [1], 1, 1.0)], _fft, dtypes=_Z, grad=False,
     tolerance=60)  # fmt: skip
case("_fft_half", [S(A((2, 6)), 1, 0.5), S(A((5, 2)), 0, 1.0), S(A((1,)), -1, 1.0)], _half, dtypes=("float32",), grad=False,
     tolerance=60)  # fmt: skip
case("_fft_real", [S(A((2, 4)), 1, 6, 0.5), S(A((2, 4)), 1, 7, 1.0), S(A((1,)), 0, 1, 1.0)], _real, dtypes=_Z, grad=False,
     tolerance=60, fails=[Fails(S(A((2, 4)), 1, 5, 1.0), RuntimeError, "_fft_real: expected 3 entries for 5 real numbers, got 4")])  # fmt: skip
