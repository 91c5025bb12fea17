"""Calls that PyTorch refuses, through weft."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .convert import Unconvertible, to_weft


def refusals(info: Any, ours: Any) -> Iterator[tuple[bool, str]]:
    """For each error sample of an operator that PyTorch refuses: whether weft does too, and
    PyTorch's text."""
    if info.error_inputs_func is None:
        return
    for each in info.error_inputs("cpu"):
        sample = each.sample_input
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        try:
            info.op(*args, **kwargs)
        except Exception as error:
            yield _is_refused(ours, args, kwargs), str(error).partition("\n")[0]


def _is_refused(ours: Any, args: Any, kwargs: Any) -> bool:
    try:
        converted_args, converted_kwargs = to_weft((args, kwargs), {})
        ours(*converted_args, **converted_kwargs)
    except (Exception, Unconvertible):
        return True
    return False
