"""TorchScript's numbers of dtypes: its programs know dtypes, layouts and memory formats as ints."""

from __future__ import annotations

from typing import Any

import weft

# TorchScript's numbers of dtypes, those first that are met most.
_NUMBERS = (
    (6, weft.float32), (4, weft.int64), (11, weft.bool), (7, weft.float64), (5, weft.float16),
    (15, weft.bfloat16), (3, weft.int32), (0, weft.uint8), (1, weft.int8), (2, weft.int16),
    (9, weft.complex64), (10, weft.complex128), (27, weft.uint16), (28, weft.uint32),
    (29, weft.uint64),
)  # fmt: skip
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
