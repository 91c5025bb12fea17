"""Arguments that functions of networks refuse."""

from __future__ import annotations

from weft import _C
from weft._C import Tensor


def check_tensors(function: str, input: Tensor, target: Tensor) -> None:
    for x in (input, target):
        if not isinstance(x, Tensor):
            raise TypeError(f"{function}: expected a tensor, got {type(x).__name__}")


def check_floating(function: str, x: Tensor) -> None:
    if not x.is_floating_point():
        raise NotImplementedError(f"{function}: expected a floating dtype, got {x.dtype}")


def check_one_dtype(function: str, name: str, x: Tensor, expected: Tensor) -> None:
    """`x` is the argument `name`."""
    if x.dtype != expected.dtype:
        raise RuntimeError(f"{function}: expected {name} of dtype {expected.dtype}, got {x.dtype}")


def check_length(function: str, name: str, x: Tensor, length: int) -> None:
    """`x` is the argument `name`, a vector."""
    if x.dim() != 1 or x.size(0) != length:
        raise RuntimeError(
            f"{function}: expected {name} of shape ({length},), got {tuple(x.shape)}"
        )


def check_classes(function: str, target: Tensor) -> None:
    """Classes are int64."""
    if target.dtype != _C.int64:
        raise RuntimeError(f"{function}: expected a target of dtype int64, got {target.dtype}")


def check_full(function: str, x: Tensor) -> None:
    """No integers, complex numbers or 16 bits."""
    if x.dtype != _C.float32 and x.dtype != _C.float64:
        raise NotImplementedError(f"{function}: expected float32 or float64, got {x.dtype}")


def check_no_integers(function: str, x: Tensor) -> None:
    """bools and complex numbers pass."""
    if not (x.is_floating_point() or x.is_complex() or x.dtype == _C.bool):
        kind = str(x.dtype).rpartition(".")[2]
        raise NotImplementedError(f"{function}: expected no dtype of integers, got {kind}")
