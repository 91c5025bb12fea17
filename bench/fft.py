"""Fourier transforms: many short lines, images, and one long line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.case import Group

group = Group("fft")


def _complex(*shape: int) -> Callable[[Any], dict[str, Any]]:
    return lambda torch: {"x": torch.randn(*shape, dtype=torch.complex64), "fft": torch.fft}


def _real(*shape: int) -> Callable[[Any], dict[str, Any]]:
    return lambda torch: {"x": torch.randn(*shape), "fft": torch.fft}


group.add("fft, 16x1024", "fft.fft(x)", _complex(16, 1024))
group.add("fft, 64x1000", "fft.fft(x)", _complex(64, 1000))
group.add("fft, 64x509", "fft.fft(x)", _complex(64, 509))
group.add("fft(dim=0), 512x64", "fft.fft(x, dim=0)", _complex(512, 64))
group.add("rfft, 64x512", "fft.rfft(x)", _real(64, 512))
group.add("rfft, 1000x400", "fft.rfft(x)", _real(1000, 400))
group.add("rfft, 1000x375", "fft.rfft(x)", _real(1000, 375))
group.add("irfft, 64x257", "fft.irfft(x)", _complex(64, 257))
group.add("irfft, 1000x201", "fft.irfft(x)", _complex(1000, 201))
group.add("fft2, 256x256", "fft.fft2(x)", _complex(256, 256))
group.add("rfft2, 256x256", "fft.rfft2(x)", _real(256, 256))
group.add("fft, one line of 1024", "fft.fft(x)", _complex(1024))
group.add("fft, one line of 256K", "fft.fft(x)", _complex(1 << 18))
group.add("fft, one line of 1M", "fft.fft(x)", _complex(1 << 20))
group.add("rfft, one line of 256K", "fft.rfft(x)", _real(1 << 18))
