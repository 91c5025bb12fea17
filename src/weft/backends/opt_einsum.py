"""Flags of opt_einsum, which orders einsum's products for PyTorch: weft orders them by itself."""

from __future__ import annotations

from typing import Any

from weft._runtime.absent import is_available as is_available

enabled = False
strategy: str | None = None


def get_opt_einsum() -> Any:
    """None."""
    return None
