"""Tensors that wrap others: libraries ask for them before they look at memory."""

from __future__ import annotations

from typing import Any

__all__ = ["is_traceable_wrapper_subclass"]


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor can be taken apart into others, by its class's `__tensor_flatten__` and
    `__tensor_unflatten__`. No tensor of weft is one."""
    parts = ("__tensor_flatten__", "__tensor_unflatten__")
    return all(hasattr(t if isinstance(t, type) else type(t), part) for part in parts)
