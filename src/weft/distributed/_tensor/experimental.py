"""What PyTorch tries out for distributed tensors, where libraries import it from."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["implicit_replication"]


def implicit_replication() -> NoReturn:
    """Refuses: a plain tensor beside a DTensor must say how it is laid out. NotImplementedError."""
    raise NotImplementedError(
        "implicit_replication: expected tensors that DTensor.from_local or distribute_tensor laid "
        "out, got plain ones beside them"
    )
