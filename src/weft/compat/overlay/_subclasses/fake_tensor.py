"""torch._subclasses.fake_tensor: whether a tensor stands for its sizes alone. None does."""

from __future__ import annotations

from typing import Any

__all__ = ["is_fake"]


def is_fake(x: Any) -> bool:
    """False: weft traces with tensors that have elements, or with the device meta."""
    return False
