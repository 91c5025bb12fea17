"""torch._vmap_internals: the name of vmap before weft.func, which libraries still import."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from weft import func as transforms

__all__ = ["_vmap", "vmap"]


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """weft.vmap, with a FutureWarning that names it."""
    text = "Please use `torch.vmap` instead of `torch._vmap_internals.vmap`."
    warnings.warn(text, FutureWarning, stacklevel=2)
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0,
    allow_none_pass_through: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """weft.vmap. allow_none_pass_through is taken and changes nothing."""
    return transforms.vmap(func, in_dims, out_dims)
