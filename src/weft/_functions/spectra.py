"""Windows, and Fourier transforms of short stretches of a signal."""

from __future__ import annotations

import math
from typing import Any

from weft import _C, fft
from weft._C import Tensor
from weft._functions.padding import pad
from weft._runtime.exports import list_own as _list_own
from weft._runtime.samples import whole
from weft._runtime.torch_function import declare as _declare

# ---- windows ----


def _positions(name: str, length: int, periodic: bool, dtype: Any) -> tuple[Tensor, Any]:
    """k / (length - 1), or k / length where periodic, in float64; and the dtype to give."""
    if length < 0:
        raise RuntimeError(f"{name}: expected window_length >= 0, got {length}")
    kind = _C.get_default_dtype() if dtype is None else dtype
    if not kind.is_floating_point:
        raise RuntimeError(f"{name}: expected a floating dtype, got {kind}")
    span = length if periodic else length - 1
    return _C.arange(length, dtype=_C.float64) / max(span, 1), kind


def _finished(window: Tensor, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    window = _C.ones(1, dtype=dtype) if window.numel() == 1 else window.to(dtype)
    window = window if device is None else window.to(device)
    return window.requires_grad_() if requires_grad else window


def _is_periodic(
    name: str, periodic: bool | None, shape: float | None, more: float | None = None
) -> bool:
    """The parameters of a window's shape follow `periodic`, which may not be left out then."""
    if periodic is None and (shape is not None or more is not None):
        raise TypeError(f"{name}: expected periodic before what shapes the window, got none")
    return periodic is None or periodic


def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Half a cosine wave lifted to [0, 1].

    RuntimeError for a negative length and for dtypes that are not floating.

    >>> weft.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    x, kind = _positions("hann_window", window_length, periodic, dtype)
    return _finished(0.5 - 0.5 * (x * (2 * math.pi)).cos(), kind, device, requires_grad)


def hamming_window(
    window_length: int, periodic: bool | None = None, alpha: float | None = None,
    beta: float | None = None, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """alpha - beta * cos; 0.54 and 0.46 by default.

    Errors are those of hann_window; TypeError for alpha or beta without periodic.

    >>> weft.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    around = _is_periodic("hamming_window", periodic, alpha, beta)
    x, kind = _positions("hamming_window", window_length, around, dtype)
    high, low = 0.54 if alpha is None else alpha, 0.46 if beta is None else beta
    return _finished(high - low * (x * (2 * math.pi)).cos(), kind, device, requires_grad)


def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """0.42 - 0.5 cos + 0.08 cos of twice the angle.

    Errors are those of hann_window.

    >>> weft.blackman_window(4, periodic=False)
    tensor([0.0000, 0.6300, 0.6300, 0.0000])
    """
    x, kind = _positions("blackman_window", window_length, periodic, dtype)
    angle = x * (2 * math.pi)
    window = (0.42 - 0.5 * angle.cos() + 0.08 * (2 * angle).cos()).clamp_min(0)
    return _finished(window, kind, device, requires_grad)


def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A triangle.

    Errors are those of hann_window.

    >>> weft.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    x, kind = _positions("bartlett_window", window_length, periodic, dtype)
    return _finished(1 - (2 * x - 1).abs(), kind, device, requires_grad)


def kaiser_window(
    window_length: int, periodic: bool | None = None, beta: float | None = None, *,
    dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """i0(beta * sqrt(1 - x^2)) / i0(beta) for x over [-1, 1]; beta is 12 by default.

    Errors are those of hann_window; TypeError for beta without periodic.

    >>> weft.kaiser_window(3, periodic=False)
    tensor([5.2773e-05, 1.0000e+00, 5.2773e-05])
    """
    around = _is_periodic("kaiser_window", periodic, beta)
    x, kind = _positions("kaiser_window", window_length, around, dtype)
    shape = 12.0 if beta is None else float(beta)
    arch = (1 - (2 * x - 1).square()).clamp_min(0).sqrt()
    top = _C.tensor(shape, dtype=_C.float64).i0()
    return _finished((arch * shape).i0() / top, kind, device, requires_grad)


# ---- short stretches ----


def _real_dtype(x: Tensor) -> Any:
    if not x.is_complex():
        return x.dtype
    return _C.float64 if x.dtype == _C.complex128 else _C.float32


def _whole_window(
    function: str, window: Tensor | None, length: int | None, n_fft: int, dtype: Any
) -> Tensor:
    """The window with zeros around it, n_fft long."""
    length = n_fft if length is None else length
    if not 0 < length <= n_fft:
        raise RuntimeError(f"{function}: expected win_length in [1, {n_fft}], got {length}")
    if window is None:
        window = _C.ones(length, dtype=dtype)
    if tuple(window.shape) != (length,):
        raise RuntimeError(
            f"{function}: expected a window of shape ({length},), got {tuple(window.shape)}"
        )
    left = (n_fft - length) // 2
    return _C.constant_pad_nd(window, [left, n_fft - length - left])


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The spectra of windows of [n, l] or [l], hop_length (n_fft // 4) apart: [n, f, windows].

    center pads so that window t lies around entry t * hop_length. onesided (the default for real
    signals) leaves out the mirrored half. return_complex must be true, or false for parts in a last
    dimension of 2. Raises RuntimeError for other numbers of dimensions, and for lengths that do not
    fit.

    >>> weft.stft(weft.ones(8), 4, hop_length=4, window=weft.ones(4), return_complex=True).abs()
    tensor([[4., 4., 4.],
            [0., 0., 0.],
            [0., 0., 0.]])
    """
    if input.dim() not in (1, 2):
        raise RuntimeError(f"stft: expected 1 or 2 dims, got shape {tuple(input.shape)}")
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(f"stft: expected a floating or complex dtype, got {input.dtype}")
    is_complex = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None and not is_complex:
        raise RuntimeError("stft: expected return_complex as True or False, got None")
    if align_to_window is not None:
        raise NotImplementedError(f"stft: expected align_to_window=None, got {align_to_window}")
    hop = n_fft // 4 if hop_length is None else hop_length
    x = input.unsqueeze(0) if input.dim() == 1 else input
    if center:
        half = n_fft // 2
        x = pad(x.unsqueeze(1), [half, half], pad_mode).squeeze(1)
    if not 0 < n_fft <= x.size(1) or hop <= 0:
        raise RuntimeError(
            f"stft: expected n_fft in [1, {x.size(1)}] and hop_length > 0, got {n_fft} and {hop}"
        )
    frames = x.unfold(1, n_fft, hop)
    frames = frames * _whole_window("stft", window, win_length, n_fft, _real_dtype(x))
    half_only = not is_complex if onesided is None else onesided
    if half_only and is_complex:
        raise RuntimeError("stft: expected onesided=False for complex numbers, got True")
    norm = "ortho" if normalized else None
    spectra = fft.rfft(frames, norm=norm) if half_only else fft.fft(frames, norm=norm)
    spectra = spectra.transpose(1, 2)
    spectra = spectra.squeeze(0) if input.dim() == 1 else spectra
    return spectra if return_complex is not False else _C.view_as_real(spectra)


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal (of `length` entries) whose windows have the spectra [n, f, windows] or [f, t]:
    the inverse of stft. RuntimeError where the windows leave a gap.

    The dtype is that of the parts.

    >>> spectra = weft.stft(weft.ones(8), 4, window=weft.ones(4), return_complex=True)
    >>> weft.istft(spectra, 4, window=weft.ones(4))
    tensor([1., 1., 1., 1., 1., 1., 1., 1.])
    """
    if not input.is_complex() or input.dim() not in (2, 3):
        raise RuntimeError(
            f"istft: expected a complex tensor of 2 or 3 dims, got {input.dtype} of shape "
            f"{tuple(input.shape)}"
        )
    hop = n_fft // 4 if hop_length is None else hop_length
    spectra = (input.unsqueeze(0) if input.dim() == 2 else input).transpose(1, 2)
    half_only = spectra.size(2) != n_fft if onesided is None else onesided
    bins = n_fft // 2 + 1 if half_only else n_fft
    if spectra.size(2) != bins or hop <= 0 or spectra.size(1) == 0:
        raise RuntimeError(
            f"istft: expected {bins} frequencies, at least 1 window and hop_length > 0, got shape "
            f"{tuple(input.shape)} and {hop}"
        )
    norm = "ortho" if normalized else None
    if half_only and return_complex:
        raise RuntimeError("istft: expected onesided=False for return_complex, got True")
    if return_complex:
        frames = fft.ifft(spectra, norm=norm)
    else:  # the second half of a real signal's spectrum is the first one's mirror
        frames = fft.irfft(spectra[..., : n_fft // 2 + 1], n_fft, norm=norm)
    taper = _whole_window("istft", window, win_length, n_fft, _real_dtype(input))
    count = frames.size(1)
    total = n_fft + hop * (count - 1)
    positions = (_C.arange(count) * hop).unsqueeze(1) + _C.arange(n_fft)
    positions = positions.reshape(-1)
    signal = (frames * taper).flatten(1)
    signal = signal.new_zeros((signal.size(0), total)).index_add(1, positions, signal)
    weight = (taper * taper).expand(count, -1).reshape(-1)
    weight = weight.new_zeros(total).index_add(0, positions, weight)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start
    signal, weight = signal[:, start:end], weight[start:end]
    if weight.numel() and not bool((whole(weight).detach().abs() > 1e-11).all()):
        raise RuntimeError("istft: expected windows that leave no gap, got one that is 0 there")
    signal = signal / weight
    if length is not None and signal.size(1) < length:
        signal = _C.constant_pad_nd(signal, [0, length - signal.size(1)])
    return signal.squeeze(0) if input.dim() == 2 else signal


_declare(globals(), ("stft",))
_list_own(vars())
