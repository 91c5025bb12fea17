"""weft.amp for the CPU, under its older name."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft.amp import GradScaler as _GradScaler
from weft.amp import autocast as _autocast

__all__ = ["GradScaler", "autocast"]


class autocast(_autocast):
    """weft.autocast("cpu").

    >>> with autocast():
    ...     print((weft.ones(1, 1) @ weft.ones(1, 1)).dtype)
    torch.bfloat16
    """

    def __init__(
        self, enabled: bool = True, dtype: Any = _C.bfloat16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """weft.amp.GradScaler("cpu")."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("cpu", *args, **kwargs)
