"""TorchScript's numbers of dtypes: its programs know dtypes, layouts and memory formats as ints."""

from __future__ import annotations

from typing import Any

import weft

# TorchScript's numbers of dtypes, those first that are met most.
_MET_MOST = (weft.float32, weft.int64, weft.bool)
_NUMBERS = tuple((d._number, d) for d in dict.fromkeys((*_MET_MOST, *weft._C._dtypes)))
NUMBERED_DTYPES: dict[int, Any] = dict(_NUMBERS)


def dtype_of(number: int) -> weft.dtype:
    """The dtype of TorchScript's number; RuntimeError for a number that has none."""
    for known, dtype in _NUMBERS:
        if number == known:
            return dtype
    raise RuntimeError(f"dtype: expected the number of a dtype, got {number}")


def optional_dtype_of(number: int | None) -> weft.dtype | None:
    """The dtype of TorchScript's number, if there is one."""
    return None if number is None else dtype_of(number)


def number_of(dtype: weft.dtype) -> int:
    """TorchScript's number of a dtype."""
    for number, known in _NUMBERS:
        if dtype == known:
            return number
    raise RuntimeError("dtype: expected one of TorchScript")
