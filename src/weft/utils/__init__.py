"""Utilities around tensors: hooks; what else there is comes when used."""

import importlib
from typing import TYPE_CHECKING, Any

from weft.utils import hooks

if TYPE_CHECKING:
    from weft.utils import benchmark, checkpoint, data, dlpack
    from weft.utils.picture import sharing, show

__all__ = ["benchmark", "checkpoint", "data", "dlpack", "hooks", "sharing", "show"]


def __getattr__(name: str) -> Any:
    if name in ("_pytree", "benchmark", "checkpoint", "data", "dlpack"):
        return importlib.import_module(f"weft.utils.{name}")
    if name in ("sharing", "show"):
        from weft.utils import picture

        return getattr(picture, name)
    raise AttributeError(f"module 'weft.utils' has no attribute {name!r}")
