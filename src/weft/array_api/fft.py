"""Fourier transforms by the standard: weft's own, whose `dim` is called `axis` or `axes`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft._C import Tensor
from weft._runtime.public import weft

_ALONG_ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_ALONG_SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")


def _along_one(name: str) -> Callable[..., Tensor]:
    def call(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Tensor:
        return getattr(weft.fft, name)(x, n, axis, norm)

    call.__name__ = call.__qualname__ = name
    return call


def _along_several(name: str) -> Callable[..., Tensor]:
    def call(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
        return getattr(weft.fft, name)(x, s, axes, norm)

    call.__name__ = call.__qualname__ = name
    return call


globals().update({name: _along_one(name) for name in _ALONG_ONE})
globals().update({name: _along_several(name) for name in _ALONG_SEVERAL})


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of fft's results, for samples a distance d apart."""
    return weft.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of rfft's results, for samples a distance d apart."""
    return weft.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """With the frequency zero in the middle."""
    return weft.fft.fftshift(x, axes) if x.dim() and axes != () else x.clone()


def ifftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """What fftshift undoes."""
    return weft.fft.ifftshift(x, axes) if x.dim() and axes != () else x.clone()


__all__ = [*_ALONG_ONE, *_ALONG_SEVERAL, "fftfreq", "fftshift", "ifftshift", "rfftfreq"]
