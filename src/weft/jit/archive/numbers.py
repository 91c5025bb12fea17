"""TorchScript's numbers of dtypes: its programs know dtypes, layouts and memory formats as ints."""

from __future__ import annotations

from typing import Any

from weft import _C

# TorchScript's numbers of dtypes, those first that are met most.
_MET_MOST = (_C.float32, _C.int64, _C.bool)
_NUMBERS = tuple((d._number, d) for d in dict.fromkeys((*_MET_MOST, *_C._dtypes)))
NUMBERED_DTYPES: dict[int, Any] = dict(_NUMBERS)


def dtype_of(number: int) -> _C.dtype:
    """The dtype of TorchScript's number; RuntimeError for a number that has none."""
    for known, dtype in _NUMBERS:
        if number == known:
            return dtype
    raise RuntimeError(f"dtype: expected the number of a dtype, got {number}")


def optional_dtype_of(number: int | None) -> _C.dtype | None:
    """The dtype of TorchScript's number, if there is one."""
    return None if number is None else dtype_of(number)


def number_of(dtype: _C.dtype) -> int:
    """TorchScript's number of a dtype."""
    for number, known in _NUMBERS:
        if dtype == known:
            return number
    raise RuntimeError("dtype: expected one of TorchScript")
