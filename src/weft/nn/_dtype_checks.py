"""Dtypes that functions of networks refuse."""

from __future__ import annotations

from weft import _C
from weft._C import Tensor


def check_floating(function: str, x: Tensor) -> None:
    if not x.is_floating_point():
        raise NotImplementedError(f"{function}: expected a floating dtype, got {x.dtype}")


def check_no_integers(function: str, x: Tensor) -> None:
    """bools and complex numbers pass."""
    if not (x.is_floating_point() or x.is_complex() or x.dtype == _C.bool):
        kind = str(x.dtype).rpartition(".")[2]
        raise NotImplementedError(f"{function}: expected no dtype of integers, got {kind}")
