"""Which way scaled_dot_product_attention goes: there is one on the CPU, whatever is asked for."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager


class SDPBackend(enum.Enum):
    """The ways that PyTorch has. Here MATH stands for the one there is.

    >>> weft.nn.attention.SDPBackend.MATH.name
    'MATH'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[None]:
    """Asks for some of the ways within a block; it changes nothing on the CPU.

    >>> with weft.nn.attention.sdpa_kernel(weft.nn.attention.SDPBackend.MATH):
    ...     pass
    """
    listed = [backends] if isinstance(backends, SDPBackend) else list(backends)
    for backend in listed:
        if not isinstance(backend, SDPBackend):
            raise AssertionError(
                f"sdpa_kernel: expected SDPBackend members, got {type(backend).__name__}"
            )
    yield
