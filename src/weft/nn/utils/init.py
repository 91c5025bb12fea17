"""Modules whose parameters are not initialised."""

from __future__ import annotations

import inspect
from typing import Any

from weft.nn.modules.module import Module


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """`module_cls(*args, **kwargs)` without the time that drawing its parameters takes.

    Parameters and buffers have their shapes and dtypes over memory that nothing was written to.
    Raises RuntimeError for other classes than of modules and for those that take no device.

    >>> weft.nn.utils.skip_init(weft.nn.Linear, 5, 1).weight.shape
    torch.Size([1, 5])
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"skip_init: expected a class of modules, got {module_cls!r}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(
            f"skip_init: expected a module that takes a device, got {module_cls.__name__}"
        )
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **{**kwargs, "device": "meta"}).to_empty(device=device)
