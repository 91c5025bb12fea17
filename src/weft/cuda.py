"""weft.cuda: says that this build has no GPU, so that programs choose the CPU."""

from __future__ import annotations


def is_available() -> bool:
    """False: tensors of this build live on the CPU."""
    return False


def device_count() -> int:
    """0."""
    return 0
