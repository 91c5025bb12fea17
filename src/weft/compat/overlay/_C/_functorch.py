"""torch._C._functorch: what libraries ask of tensors inside vmap."""

from typing import Any


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a tensor is a sample of a batch, as a function under vmap sees it."""
    return getattr(tensor, "_batch", None) is not None
