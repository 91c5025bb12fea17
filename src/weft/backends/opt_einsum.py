"""Flags of opt_einsum, which orders einsum's products for PyTorch: weft orders them by itself."""

from __future__ import annotations

from typing import Any

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """False."""
    return False


def get_opt_einsum() -> Any:
    """None."""
    return None
