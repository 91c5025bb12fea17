"""What Python functions of rows have in common: ints of 64 bits, and errors of the right class."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

INT_MIN, INT_MAX = -(2**63), 2**63 - 1


def check_int(value: int) -> int:
    """The int, which must fit 64 bits; OverflowError otherwise."""
    if not INT_MIN <= value <= INT_MAX:
        raise OverflowError(f"int: expected a result of 64 bits, got {value}")
    return value


def int64(function: Callable[..., int]) -> Callable[..., int]:
    """The function, its result checked."""
    return lambda *args: check_int(function(*args))


def no_complex(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, a complex result of real arguments refused."""

    def checked(*args: Any) -> Any:
        result = function(*args)
        if isinstance(result, complex) and not any(isinstance(a, complex) for a in args):
            raise ValueError("pow: expected a real result, got a complex one")
        return result

    return checked


def number(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function over any numbers: int results checked, bool taken as int."""

    def checked(*args: Any) -> Any:
        result = no_complex(function)(*args)
        return check_int(result) if type(result) is int else result

    return checked


def to_float(function: Callable[..., Any]) -> Callable[..., float]:
    """The function, its result as a float."""
    return lambda *args: float(function(*args))


def round_half_even(value: float) -> float:
    """`value` rounded to the nearest whole number, as a float; infinities and NaN stay."""
    return math.copysign(round(value), value) if math.isfinite(value) else value
