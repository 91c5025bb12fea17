"""weft.mps: says that this build has none of Apple's GPUs."""

from __future__ import annotations


def is_available() -> bool:
    """False: tensors of this build live on the CPU."""
    return False


def device_count() -> int:
    """0."""
    return 0


def empty_cache() -> None:
    """Nothing to do."""


def manual_seed(seed: int) -> None:
    """Nothing to do: no device has a generator."""


def manual_seed_all(seed: int) -> None:
    """Nothing to do: no device has a generator."""
