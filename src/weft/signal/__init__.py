"""Signals: `torch.signal`."""

from weft.signal import windows

__all__ = ["windows"]
