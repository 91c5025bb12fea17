"""Tensors of modules by name, as libraries exchange them."""

from __future__ import annotations

from typing import Any

from weft._C import Tensor
from weft.nn.modules.module import Module

_MISSING = object()


def swap_tensor(
    module: Module, name: str, tensor: Tensor | None, allow_missing: bool = False
) -> Any:
    """Puts a tensor, or None, in the place of a parameter, a buffer or an attribute that is one of
    the two, and gives what was there.

    TypeError for other values; KeyError for names that are empty or have a dot; AttributeError
    where nothing has the name, unless `allow_missing`.
    """
    if "." in name or not name:
        raise KeyError(f"swap_tensor: expected the name of a member, got {name!r}")
    held: Any = next((h for h in (module._parameters, module._buffers) if name in h), None)
    before = getattr(module, name, _MISSING) if held is None else held[name]
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute {name!r}")
    for value in (tensor, before):
        if not isinstance(value, Tensor | None) and value is not _MISSING:
            raise TypeError(f"swap_tensor: expected a tensor, got {type(value).__name__}")
    if held is None:
        setattr(module, name, tensor)
    else:
        held[name] = tensor
    return before
