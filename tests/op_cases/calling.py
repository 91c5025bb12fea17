"""Calls table rows, in weft and (for parity) the operator of the same name in PyTorch."""

from __future__ import annotations

from typing import Any

from weft import _C, _ops

from .spec import S

ROWS = {row.key: row for row in _ops.load()}


def function_of(key: str, suffix: str = "") -> Any:
    """The Python function of a row, all overloads of its name; `suffix` "_" is the in-place form."""
    return getattr(_C._aten, ROWS[key].name + suffix)


def call(key: str, sample: S, suffix: str = "", **extra: Any) -> Any:
    """Runs the row on the sample."""
    return function_of(key, suffix)(*sample.args, **sample.kwargs, **extra)


def call_torch(key: str, sample: S) -> Any:
    """Runs PyTorch's operator with the row's name and overload; AttributeError when it has none."""
    import torch

    name, _, overload = key.partition(".")
    return getattr(getattr(torch.ops.aten, name), overload or "default")(*sample.args, **sample.kwargs)
