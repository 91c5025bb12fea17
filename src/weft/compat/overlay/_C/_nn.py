"""torch._C._nn: how the arguments of Module.to are read."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft.nn.modules.module import _parse_to as _device_and_dtype


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Device, dtype, non_blocking and memory_format, None for those that are not given."""
    memory_format = kwargs.pop("memory_format", None)
    flags = [arg for arg in args if isinstance(arg, bool)]
    non_blocking = kwargs.get("non_blocking", flags[0] if flags else False)
    return (*_device_and_dtype(*args, **kwargs), non_blocking, memory_format)


def __getattr__(name: str) -> Any:
    return getattr(_C._nn, name)
