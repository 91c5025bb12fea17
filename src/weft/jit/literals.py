"""Tells the IR which objects of weft may be constants, and how they are written and read."""

from __future__ import annotations

from typing import Any

import weft
from weft.jit.ir import literals
from weft.jit.ir import types as ty


def _named(name: str) -> Any:
    """The dtype, layout or memory format of a name such as "torch.float32"."""
    value = getattr(weft, name.removeprefix("torch."), None)
    if not isinstance(value, (weft.dtype, weft.layout, weft.memory_format)):
        raise ValueError(f"constant: expected a dtype, layout or memory format, got {name}")
    return value


literals.register(weft.dtype, ty.DTYPE, str)
literals.register(weft.layout, ty.LAYOUT, str)
literals.register(weft.memory_format, ty.MEMORY_FORMAT, str)
literals.register(weft.device, ty.DEVICE, lambda device: f"device({literals.quote(str(device))})")
literals.register(weft.Tensor, ty.TENSOR, None)
literals.register(weft.Generator, ty.GENERATOR, None)
literals.NAMED["torch"] = _named
literals.CALLED["device"] = weft.device
