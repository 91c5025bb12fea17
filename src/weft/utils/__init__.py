"""Utilities around tensors: data loading (imported when first used), hooks."""

from typing import TYPE_CHECKING, Any

from weft.utils import hooks

if TYPE_CHECKING:
    from weft.utils import data

__all__ = ["data", "hooks"]


def __getattr__(name: str) -> Any:
    if name == "data":
        import importlib

        return importlib.import_module("weft.utils.data")
    raise AttributeError(f"module 'weft.utils' has no attribute {name!r}")
