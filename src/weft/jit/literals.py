"""Tells the IR which objects of weft may be constants, and how they are written and read."""

from __future__ import annotations

from typing import Any

from weft import _C
from weft._C import Generator, Tensor
from weft.jit.ir import literals
from weft.jit.ir import types as ty


def _named(name: str) -> Any:
    """The dtype, layout or memory format of a name such as "torch.float32"."""
    value = getattr(_C, name.removeprefix("torch."), None)
    if not isinstance(value, (_C.dtype, _C.layout, _C.memory_format)):
        raise ValueError(f"constant: expected a dtype, layout or memory format, got {name}")
    return value


literals.register(_C.dtype, ty.DTYPE, str)
literals.register(_C.layout, ty.LAYOUT, str)
literals.register(_C.memory_format, ty.MEMORY_FORMAT, str)
literals.register(_C.device, ty.DEVICE, lambda device: f"device({literals.quote(str(device))})")
literals.register(Tensor, ty.TENSOR, None)
literals.register(Generator, ty.GENERATOR, None)
literals.NAMED["torch"] = _named
literals.CALLED["device"] = _C.device
